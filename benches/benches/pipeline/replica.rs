//! The replica circuit: challenges of a layered labelling, which are SHA-256 for the most part, in segments of some 486,000
//! constraints each.
//!
//! The input is one of 40 partitions of 8 challenges each, with the sizes of [`Labelling::params`]. Challenges of one labelling
//! may be dealt to partitions at will, so it serves for larger partitions, too.

use super::circuits::{Bundle, Guest, Material, Ready};
use super::runs::Setting;
use super::{ALONE, Bench, LOG_DOMAIN, median, record};
use serde_json::Value;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use zkhost_engine::cuda::CudaConfig;
use zkhost_engine::synthesis::Synthesis;
use zkhost_runtime::Input;

/// Partitions whose kernels should hide everything else.
const BUSY_PARTITIONS: usize = 40;
/// Challenges that fill 93 % of a domain of 2^22.
const CHALLENGES: usize = 8;

/// A true input, and how its challenges are dealt.
struct Labelling {
    job: Value,
    challenges: Vec<Value>,
}

impl Labelling {
    fn read(path: &Path) -> io::Result<Self> {
        let mut job: Value = serde_json::from_slice(&fs::read(path)?)?;
        let partitions = job["partitions"].take();
        let of_partition = |partition: &Value| partition.as_array().cloned().unwrap_or_default();
        let challenges = partitions.as_array().into_iter().flatten().flat_map(of_partition).collect();
        Ok(Self { job, challenges })
    }

    fn params(partitions: usize, challenges: usize) -> String {
        format!(
            r#"{{"partitions": {partitions}, "challenges": {challenges}, "layers": 2, "base_parents": 6, "expander_parents": 8, "hashed_labels": 14, "depth": 3}}"#
        )
    }

    /// The input of so many partitions from the given one on, each of so many challenges.
    fn input(&self, first: usize, partitions: usize, challenges: usize) -> Vec<u8> {
        let dealt = self.challenges.chunks_exact(challenges).skip(first).take(partitions);
        let mut job = self.job.clone();
        job["partitions"] = dealt.map(|challenges| Value::from(challenges.to_vec())).collect();
        job.to_string().into_bytes()
    }
}

impl Bench {
    /// replica_busy and ten_partitions: from input to proofs, guests in their sandbox, one GPU.
    pub fn replica(&self, component: &Path, labelling: &Path) -> io::Result<()> {
        let labelling = Labelling::read(labelling)?;
        let one = Guest::load(component, Labelling::params(1, CHALLENGES));
        let material = one.material(&self.gpus[0], &labelling.input(0, 1, CHALLENGES).into());
        assert_eq!(material.key.log2_domain, LOG_DOMAIN);
        println!("replica: a witness of {:.1} MB", material.witness_bytes() as f64 / 1e6);
        let setting = self.set(1, CudaConfig::default(), &material, self.for_guests(), |_, gpu| gpu);
        let alone = |n| setting.run(&format!("alone {n}"), &material, Arc::new(Ready::new(&material, 1))).device_ms();
        let alone = median((0..ALONE).map(alone).collect());
        record("replica_busy", "one proof alone on the device", alone, "ms")?;

        for (bench, partitions) in [("replica_busy", BUSY_PARTITIONS), ("ten_partitions", 10)] {
            let together = one.with_params(Labelling::params(partitions, CHALLENGES));
            let input = labelling.input(0, partitions, CHALLENGES);
            let bytes = input.len() as f64 / 1e6;
            let input = Input::from(input);
            let inputs: Vec<Input> = (0..partitions).map(|n| labelling.input(n, 1, CHALLENGES).into()).collect();
            let from_one = format!("one input of {bytes:.1} MB");
            let job = || Arc::new(together.job(&input)) as Arc<dyn Synthesis>;
            self.timed(&setting, &material, (bench, partitions, &from_one), job)?;
            let jobs = || Arc::new(Bundle::new(&one, inputs.iter().cloned())) as Arc<dyn Synthesis>;
            self.timed(&setting, &material, (bench, partitions, "an input each"), jobs)?;
        }
        Ok(())
    }

    /// Wall and kernels' share of jobs of so many partitions, and the trace of one.
    fn timed(
        &self,
        setting: &Setting,
        material: &Material,
        (bench, partitions, of): (&str, usize, &str),
        job: impl Fn() -> Arc<dyn Synthesis>,
    ) -> io::Result<()> {
        let name = format!("{bench}-replica-{}", of.split(' ').take(2).collect::<Vec<_>>().join("-"));
        let (wall, share) = self.guests(setting, material, &name, job);
        let case = format!("replica component, {partitions} partitions, domain 2^22, {of}");
        record(bench, &case, wall, "ms")?;
        record(bench, &format!("{case}, kernels' share of the wall"), share, "%")
    }

    /// big_partition: one partition on the device, its key there.
    pub fn big(&self, component: &Path, labelling: &Path) -> io::Result<()> {
        let labelling = Labelling::read(labelling)?;
        for (log, challenges) in [(24, 34), (26, 137)] {
            let began = Instant::now();
            let guest = Guest::load(component, Labelling::params(1, challenges));
            println!("2^{log}: shape after {:.1} s", began.elapsed().as_secs_f64());
            let material = guest.material(&self.gpus[0], &labelling.input(0, 1, challenges).into());
            assert_eq!(material.key.log2_domain, log);
            println!("2^{log}: key after {:.1} s", began.elapsed().as_secs_f64());
            let setting = self.setting(1, CudaConfig::default(), &material);
            let plan = setting.gpus[0].plan(material.circuit.id).expect("the GPU takes the circuit");
            assert!(plan.is_resident(), "the key is in device memory");
            println!("2^{log}: on the device after {:.1} s", began.elapsed().as_secs_f64());
            let alone = |n| setting.run(&format!("big {n}"), &material, Arc::new(Ready::new(&material, 1)));
            let runs: Vec<_> = (0..ALONE).map(alone).collect();
            runs[0].keep(&format!("big_partition-2e{log}"));
            let ms = median(runs.iter().map(|run| run.device_ms()).collect());
            record("big_partition", &format!("replica, domain 2^{log}, time on the device"), ms / 1e3, "s")?;
        }
        Ok(())
    }
}

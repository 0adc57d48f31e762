//! The replica circuit: challenges of a layered labelling, which are SHA-256 for the most part, in segments of some 486,000
//! constraints each.
//!
//! The input is one of 40 partitions of 8 challenges each, with the sizes of [`Labelling::params`]. Challenges of one labelling
//! may be dealt to partitions at will, so it serves for larger partitions, too.

use super::circuits::{self, Bundle, Guest, Material, Ready};
use super::runs::Setting;
use super::{ALONE, Bench, LOG_DOMAIN, median, record};
use serde_json::Value;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zkhost_engine::cuda::CudaConfig;
use zkhost_engine::synthesis::Synthesis;
use zkhost_runtime::Input;

/// Partitions whose kernels should hide everything else.
const BUSY_PARTITIONS: usize = 40;
/// Challenges that fill 93 % of a domain of 2^22.
pub const CHALLENGES: usize = 8;

/// Jobs that are cancelled, each at another time of its proof.
const CANCELS: u32 = 10;

/// Half of the card for the scratch memory of one proof of 2^26, which two slots would not have room for.
const ONE_SLOT: CudaConfig = CudaConfig { slots: 1, scratch_percent: 50, memory_bytes_max: None, small_domains: false };

/// A true input, and how its challenges are dealt.
pub struct Labelling {
    job: Value,
    challenges: Vec<Value>,
}

impl Labelling {
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut job: Value = serde_json::from_slice(&fs::read(path)?)?;
        let partitions = job["partitions"].take();
        let of_partition = |partition: &Value| partition.as_array().cloned().unwrap_or_default();
        let challenges = partitions.as_array().into_iter().flatten().flat_map(of_partition).collect();
        Ok(Self { job, challenges })
    }

    pub fn params(partitions: usize, challenges: usize) -> String {
        format!(
            r#"{{"partitions": {partitions}, "challenges": {challenges}, "layers": 2, "base_parents": 6, "expander_parents": 8, "hashed_labels": 14, "depth": 3}}"#
        )
    }

    /// The input of so many partitions from the given one on, each of so many challenges; after the last comes the first.
    pub fn input(&self, first: usize, partitions: usize, challenges: usize) -> Vec<u8> {
        let dealt = self.challenges.chunks_exact(challenges).cycle().skip(first).take(partitions);
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
        let setting = self.set(1, CudaConfig::default(), &material, self.for_guests(1), |_, gpu| gpu);
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

    /// big_partition: one partition on the device, its key there. It is of so many partitions' constraints, each with public
    /// inputs of its own: a guest would take a minute and a half to record as many rows, and this is not about guests.
    pub fn big(&self, component: &Path, labelling: &Path) -> io::Result<()> {
        let labelling = Labelling::read(labelling)?;
        let guest = Guest::load(component, Labelling::params(1, CHALLENGES));
        for (log, count) in [(24, 4), (26, 17)] {
            let began = Instant::now();
            let assignment = |n| guest.assignment(&labelling.input(n, 1, CHALLENGES).into());
            let (assignment, segments) = circuits::joined(&(0..count).map(assignment).collect::<Vec<_>>());
            let r1cs = circuits::copies(guest.shape(), count);
            println!("2^{log}: {} constraints after {:.1} s", r1cs.constraints(), began.elapsed().as_secs_f64());
            let material = Material::new(&self.gpus[0], Arc::new(r1cs), segments, assignment);
            assert_eq!(material.key.log2_domain, log);
            println!("2^{log}: key after {:.1} s", began.elapsed().as_secs_f64());
            let setting = self.setting(1, ONE_SLOT, &material);
            let plan = setting.gpus[0].plan(material.circuit.id).expect("the GPU takes the circuit");
            assert!(plan.is_resident(), "the key is in device memory");
            println!("2^{log}: on the device after {:.1} s", began.elapsed().as_secs_f64());
            let alone = |n| setting.run(&format!("big {n}"), &material, Arc::new(Ready::new(&material, 1)));
            let runs: Vec<_> = (0..ALONE).map(alone).collect();
            runs[0].keep(&format!("big_partition-2e{log}"));
            let ms = median(runs.iter().map(|run| run.device_ms()).collect());
            let case = format!("replica x {count}, domain 2^{log}, time on the device");
            record("big_partition", &case, ms / 1e3, "s")?;
            // From every part of a proof: launches that are queued run to their end.
            let after = |n| Duration::from_secs_f64(ms / 1e3 * f64::from(n) / f64::from(CANCELS));
            let cancel = |n| setting.cancel(&format!("cancel {n}"), &material, after(n)).as_secs_f64() * 1e3;
            let longest = (0..CANCELS).map(cancel).fold(0.0, f64::max);
            record("cancel", &format!("one H200, domain 2^{log}, the longest of {CANCELS}"), longest, "ms")?;
        }
        Ok(())
    }
}

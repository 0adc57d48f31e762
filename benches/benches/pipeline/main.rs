//! The engine over real GPUs: how busy they are, what a pipeline costs beside a proof alone, which copies are hidden, how fast
//! the link is under load, and how it scales. Every proof is verified by the engine before it counts.
//!
//! ```text
//! pipeline [GROUP...]      groups: busy, copies, link, ten, guests, gpus, replica, big; all of them unless named
//! ```
//!
//! `ZKHOST_BENCH_SHA256` names the component of SHA-256; `ZKHOST_BENCH_REPLICA` that of the replica circuit, and
//! `ZKHOST_BENCH_LABELLING` an input of it (see [`replica`]). Does nothing, and says so, where there is no GPU or one of
//! them is not named.

mod circuits;
mod link;
mod replica;
mod runs;
mod scaling;

use circuits::{Bundle, Guest, Material, Ready};
use link::Load;
use runs::{Run, Setting};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Instant;
use zkhost_benches::Measurement;
use zkhost_cuda::Device;
use zkhost_cuda::device::MemoryLimits;
use zkhost_engine::arena::{Arena, slabs_on_every_node};
use zkhost_engine::cuda::{CudaConfig, CudaDevice, KeyStore, SLOTS};
use zkhost_engine::device as engine;
use zkhost_engine::ids::DeviceId;
use zkhost_engine::scheduler::Config;
use zkhost_engine::synthesis::Synthesis;

const ARENA_BYTES: u64 = 6 << 30;
const PARTITIONS: u32 = 20;
/// Proofs alone that are timed; the median counts.
const ALONE: usize = 5;
/// Jobs that are timed for one figure; the median counts.
const JOBS: usize = 3;
/// log2 of the domain of everything here.
const LOG_DOMAIN: u32 = 22;
/// Threads that verify.
const CHECKERS: usize = 4;
/// A card on which the key of full-size values has to be streamed, and the slots' share of it.
const SMALL_CARD: CudaConfig =
    CudaConfig { slots: 2, scratch_percent: 78, memory_bytes_max: Some(9 << 30), small_domains: false };

fn record(bench: &str, case: &str, ours: f64, unit: &str) -> io::Result<()> {
    Measurement { bench, case, ours, peer: None, peer_value: None, unit, checked: true }.record()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() - 1) / 2]
}

struct Bench {
    gpus: Vec<Arc<Device>>,
    arena: Arena,
    threads: usize,
}

impl Bench {
    /// As many GPUs, warm.
    fn setting(&self, gpus: usize, config: CudaConfig, material: &Material) -> Setting {
        self.set(gpus, config, material, self.ready(), |_, gpu| gpu)
    }

    fn set(
        &self,
        gpus: usize,
        config: CudaConfig,
        material: &Material,
        scheduler: Config,
        wrap: impl Fn(usize, Arc<CudaDevice>) -> Arc<dyn engine::Device>,
    ) -> Setting {
        self.gpus.iter().for_each(|gpu| gpu.set_memory_limits(MemoryLimits::default()));
        let setting = Setting::new(&self.gpus[..gpus], config, material, &self.arena, scheduler, wrap);
        setting.warm_up(material);
        setting
    }

    /// `JOBS` jobs of so many partitions; nothing may be page-locked meanwhile, and nothing fail.
    fn jobs(&self, setting: &Setting, material: &Material, partitions: u32) -> Vec<Run> {
        let before = (self.page_locks(), self.arena.page_lock_calls());
        let job = |number| {
            let run = setting.run(&format!("job {number}"), material, Arc::new(Ready::new(material, partitions)));
            assert_eq!((run.counters.retries, run.counters.device_losses), (0, 0));
            run
        };
        let runs = (0..JOBS).map(job).collect();
        assert_eq!((self.page_locks(), self.arena.page_lock_calls()), before, "nothing is page-locked after start-up");
        runs
    }

    /// kernel_busy and pipeline_wall.
    fn busy(&self, sha: &Material) -> io::Result<()> {
        for slots in [1, 2, 3] {
            let setting = self.setting(1, CudaConfig { slots, ..CudaConfig::default() }, sha);
            let case = format!("sha, domain 2^22, {PARTITIONS} partitions, {slots} slot(s)");
            let alone = |n| setting.run(&format!("alone {n}"), sha, Arc::new(Ready::new(sha, 1))).device_ms();
            let alone = median((0..ALONE).map(alone).collect());
            let runs = self.jobs(&setting, sha, PARTITIONS);
            record("kernel_busy", &case, median(runs.iter().map(|run| run.kernel_busy(DeviceId(0))).collect()), "%")?;
            let wall = median(runs.iter().map(|run| run.wall.as_secs_f64() * 1e3).collect());
            println!("alone {alone:.2} ms, {PARTITIONS} in {wall:.1} ms");
            record("pipeline_wall", &case, wall / (f64::from(PARTITIONS) * alone), "of one alone times their number")?;
            runs[0].keep(&format!("kernel_busy-{slots}-slots"));
        }
        Ok(())
    }

    /// copy_hidden: full-size witnesses, with the key in device memory and with the key streamed.
    fn copies(&self, squarings: &Material) -> io::Result<()> {
        println!("a witness of {:.1} MB", squarings.witness_bytes() as f64 / 1e6);
        let three = CudaConfig { slots: 3, ..CudaConfig::default() };
        let settings = [
            ("resident key", CudaConfig::default(), true),
            ("resident key, 3 slots", three, true),
            ("streamed key", SMALL_CARD, false),
        ];
        for (case, config, resident) in settings {
            let setting = self.setting(1, config, squarings);
            let plan = setting.gpus[0].plan(squarings.circuit.id).expect("the GPU takes the circuit");
            assert_eq!(plan.is_resident(), resident);
            let runs = self.jobs(&setting, squarings, PARTITIONS);
            let hidden = |run: &Run| {
                let gpu = &run.timeline.summary().devices[0];
                100.0 * gpu.hidden_copy_nanos as f64 / gpu.copy_nanos as f64
            };
            record(
                "copy_hidden",
                &format!("134 MB witnesses, {case}"),
                median(runs.iter().map(hidden).collect()),
                "%",
            )?;
            runs[0].keep(&format!("copy_hidden-{}", case.replace(", ", "-").replace(' ', "-")));
        }
        Ok(())
    }

    /// h2d_under_load: leases against vectors, under loads of several kinds.
    fn link(&self, guest: &Guest) -> io::Result<()> {
        let others = self.threads - 1;
        let full = Load::ALL.map(|load| (64, load, if load == Load::Idle { 0 } else { others }));
        let part = [(64, Load::Copy, others / 4), (64, Load::Copy, others / 2), (256, Load::Copy, others)];
        for (mebibytes, load, threads) in full.into_iter().chain(part) {
            let rates = link::under_load(&self.gpus[0], &self.arena, mebibytes << 20, (load, threads), guest);
            let case = format!("{mebibytes} MiB, {threads} threads {}", load.name());
            let [alone, beside] = rates.load;
            println!(
                "{case}: they move {alone:.1} GB/s alone, {beside:.1} beside copies; copies from memory that the driver \
                      allocated {:.1}, not cached {:.1}, by two streams {:.1}",
                rates.driver, rates.uncached, rates.two_streams
            );
            let (bench, peer, peer_value) = ("h2d_under_load", Some("heap vector"), Some(rates.heap));
            let ours = rates.lease;
            Measurement { bench, case: &case, ours, peer, peer_value, unit: "GB/s", checked: true }.record()?;
            record("h2d_load", &format!("{case}, alone"), alone, "GB/s")?;
            record("h2d_load", &format!("{case}, beside copies"), beside, "GB/s")?;
        }
        Ok(())
    }

    /// Assignments are there.
    fn ready(&self) -> Config {
        Config { synthesis_workers: self.threads, check_workers: CHECKERS, ..Config::default() }
    }

    /// Guests may take longer than proofs on so many GPUs: as many are at work as there are processors.
    fn for_guests(&self, gpus: usize) -> Config {
        let slots = gpus as u32 * u32::from(SLOTS);
        Config { credits_per_slot: (self.threads as u32).div_ceil(slots), ..self.ready() }
    }

    /// `JOBS` jobs from input to proofs: the walls' median in milliseconds, and that of the kernels' shares of them in percent.
    fn guests(
        &self,
        setting: &Setting,
        material: &Material,
        name: &str,
        job: impl Fn() -> Arc<dyn Synthesis>,
    ) -> (f64, f64) {
        let runs: Vec<_> = (0..JOBS).map(|n| setting.run(&format!("{name} {n}"), material, job())).collect();
        runs[0].keep(name);
        let share = |run: &Run| {
            let kernels = run.timeline.summary().devices[0].busy_nanos;
            100.0 * kernels as f64 / run.wall.as_nanos() as f64
        };
        (
            median(runs.iter().map(|run| run.wall.as_secs_f64() * 1e3).collect()),
            median(runs.iter().map(share).collect()),
        )
    }

    /// ten_partitions: from input to 1,920 bytes, guests in their sandbox.
    fn ten(&self, guest: &Guest, sha: &Material) -> io::Result<()> {
        let setting = self.set(1, CudaConfig::default(), sha, self.for_guests(1), |_, gpu| gpu);
        let ten = || Arc::new(Bundle::new(guest, (0..10).map(circuits::sha_input))) as Arc<dyn Synthesis>;
        let (wall, share) = self.guests(&setting, sha, "ten_partitions", ten);
        record("ten_partitions", "sha component, domain 2^22", wall, "ms")?;
        record("ten_partitions", "sha component, kernels' share of the wall", share, "%")
    }

    fn page_locks(&self) -> u64 {
        self.gpus.iter().map(|gpu| gpu.page_lock_calls()).sum()
    }
}

fn main() -> io::Result<()> {
    let groups: Vec<_> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let path = |name| std::env::var_os(name).map(PathBuf::from);
    let [sha256, replica, labelling] =
        ["ZKHOST_BENCH_SHA256", "ZKHOST_BENCH_REPLICA", "ZKHOST_BENCH_LABELLING"].map(path);
    let gpus: Vec<_> = (0..Device::count().unwrap_or(0)).filter_map(|number| Device::open(number).ok()).collect();
    let (Some(first), Some(sha256), Some(replica), Some(labelling)) = (gpus.first(), sha256, replica, labelling) else {
        println!("skipped: needs a GPU and the components of SHA-256 and of the replica circuit, with its input");
        return Ok(());
    };
    let store = KeyStore::new(Arc::new(circuits::Keys::default()));
    let locker = CudaDevice::new(first.clone(), CudaConfig { slots: 0, ..CudaConfig::default() }, store);
    let page_lock = locker.expect("the GPU works").page_lock();
    let began = Instant::now();
    let arena = Arena::new(&slabs_on_every_node(ARENA_BYTES), page_lock).expect("there is memory");
    println!("{} GiB page-locked in {:.2} s", ARENA_BYTES >> 30, began.elapsed().as_secs_f64());
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let bench = Bench { gpus, arena, threads };
    let wanted = |group: &str| groups.is_empty() || groups.iter().any(|named| named == group);

    if wanted("replica") {
        bench.replica(&replica, &labelling)?;
    }
    if wanted("big") {
        bench.big(&replica, &labelling)?;
    }
    let guest = Guest::load(&sha256, circuits::sha_params());
    if wanted("link") {
        bench.link(&guest)?;
    }
    if !["busy", "ten", "copies", "guests", "gpus"].into_iter().any(wanted) {
        return Ok(());
    }
    let sha = guest.material(&bench.gpus[0], &circuits::sha_input(0));
    assert_eq!(sha.key.log2_domain, LOG_DOMAIN);
    println!(
        "SHA-256: key made after {:.1} s, a witness of {:.1} MB",
        began.elapsed().as_secs_f64(),
        sha.witness_bytes() as f64 / 1e6
    );
    if wanted("busy") {
        bench.busy(&sha)?;
    }
    if wanted("ten") {
        bench.ten(&guest, &sha)?;
    }
    if wanted("guests") {
        bench.guests_on_gpus((&guest, &sha), &replica, &labelling)?;
    }
    if wanted("copies") || wanted("gpus") {
        let squarings = circuits::squarings(&bench.gpus[0], LOG_DOMAIN);
        if wanted("copies") {
            bench.copies(&squarings)?;
        }
        if wanted("gpus") {
            bench.gpus(&sha, &squarings)?;
        }
    }
    Ok(())
}

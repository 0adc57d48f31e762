//! The engine over real GPUs: how busy they are, what a pipeline costs beside a proof alone, which copies are hidden, how fast
//! the link is under load, and how it scales. Every proof is verified by the engine before it counts.
//!
//! ```text
//! pipeline [GROUP...]      groups: busy, copies, link, ten, gpus, replica, big; all of them unless named
//! ```
//!
//! `ZKHOST_BENCH_SHA256` names the component of SHA-256; `ZKHOST_BENCH_REPLICA` that of the replica circuit, and
//! `ZKHOST_BENCH_LABELLING` an input of it (see [`replica`]). Does nothing, and says so, where there is no GPU or one of
//! them is not named.

mod circuits;
mod link;
mod replica;
mod runs;

use circuits::{Bundle, Guest, Material, Ready};
use cudarc::driver::PushKernelArg;
use runs::{Failing, Run, Setting};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::thread;
use std::time::{Duration, Instant};
use zkhost_benches::Measurement;
use zkhost_cuda::Device;
use zkhost_cuda::device::{MemoryLimits, grid};
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
        let scheduler = Config { synthesis_workers: self.threads, check_workers: CHECKERS, ..Config::default() };
        self.set(gpus, config, material, scheduler, |_, gpu| gpu)
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

    /// h2d_under_load: leases against vectors.
    fn link(&self) -> io::Result<()> {
        for (mebibytes, thrashers) in [(64, 0), (64, 7), (64, 15), (256, 15)] {
            let [ours, driver, heap] = link::under_load(&self.gpus[0], &self.arena, mebibytes << 20, thrashers);
            let case = format!("{mebibytes} MiB, {thrashers} threads thrash");
            println!("memory that the driver allocated: {driver:.1} GB/s");
            let (bench, peer, peer_value) = ("h2d_under_load", Some("heap vector"), Some(heap));
            Measurement { bench, case: &case, ours, peer, peer_value, unit: "GB/s", checked: true }.record()?;
        }
        Ok(())
    }

    /// Guests take longer than proofs: as many are at work as there are processors.
    fn for_guests(&self) -> Config {
        let credits_per_slot = (self.threads as u32).div_ceil(u32::from(SLOTS));
        Config { synthesis_workers: self.threads, check_workers: CHECKERS, credits_per_slot, ..Config::default() }
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
        let setting = self.set(1, CudaConfig::default(), sha, self.for_guests(), |_, gpu| gpu);
        let ten = || Arc::new(Bundle::new(guest, (0..10).map(circuits::sha_input))) as Arc<dyn Synthesis>;
        let (wall, share) = self.guests(&setting, sha, "ten_partitions", ten);
        record("ten_partitions", "sha component, domain 2^22", wall, "ms")?;
        record("ten_partitions", "sha component, kernels' share of the wall", share, "%")
    }

    /// multi_gpu: throughput, links and one host copy of a streamed key, and a GPU that fails in the middle.
    fn gpus(&self, sha: &Material, squarings: &Material) -> io::Result<()> {
        let count = self.gpus.len();
        let rates = link::all_at_once(&self.gpus, &self.arena, 512 << 20);
        for (number, rate) in rates.iter().enumerate() {
            record("multi_gpu_link", &format!("GPU {number} of {count} while all copy"), *rate, "GB/s")?;
        }
        let one = self.setting(1, CudaConfig::default(), sha);
        let wall = |runs: &[Run]| median(runs.iter().map(|run| run.wall.as_secs_f64()).collect());
        let alone = wall(&self.jobs(&one, sha, 2 * PARTITIONS));
        drop(one);
        for gpus in 2..=count {
            let setting = self.setting(gpus, CudaConfig::default(), sha);
            let runs = self.jobs(&setting, sha, 2 * PARTITIONS * gpus as u32);
            record("multi_gpu", &gpus.to_string(), gpus as f64 * alone / wall(&runs), "of one GPU, higher is better")?;
            runs[0].keep(&format!("multi_gpu-{gpus}"));
        }
        let before = self.page_locks();
        let streamed = self.setting(count, SMALL_CARD, squarings);
        assert_eq!(self.page_locks() - before, 4, "one host copy of the key's four queries feeds all GPUs");
        self.jobs(&streamed, squarings, 10 * count as u32)[0].keep(&format!("multi_gpu-{count}-streamed"));
        drop(streamed);
        self.failing(sha)?;
        self.broken(sha)
    }

    fn page_locks(&self) -> u64 {
        self.gpus.iter().map(|gpu| gpu.page_lock_calls()).sum()
    }

    /// The last GPU is lost in the middle: its partitions finish on the others, or on the CPU if it was the only one.
    fn failing(&self, sha: &Material) -> io::Result<()> {
        let count = self.gpus.len();
        let scheduler = Config { synthesis_workers: self.threads, check_workers: CHECKERS, ..Config::default() };
        let setting = self.set(count, CudaConfig::default(), sha, scheduler, |number, gpu| {
            let fails_at = if number + 1 == count { PARTITIONS } else { u32::MAX };
            Arc::new(Failing { gpu, proofs: AtomicU32::new(0), fails_at })
        });
        let run = setting.run("failing", sha, Arc::new(Ready::new(sha, 2 * PARTITIONS * count as u32)));
        run.keep(&format!("multi_gpu-{count}-one-fails"));
        assert_eq!(run.counters.device_losses, 1, "one device was lost");
        record("multi_gpu_failure", &format!("{count}, one is lost"), run.wall.as_secs_f64() * 1e3, "ms")
    }

    /// A kernel of the last GPU writes where no memory is. The driver then gives up every context of the process: the CPU
    /// finishes the job, and every proof of it is there all the same.
    fn broken(&self, sha: &Material) -> io::Result<()> {
        let (count, Some(last)) = (self.gpus.len(), self.gpus.last()) else { return Ok(()) };
        let setting = self.setting(count, CudaConfig::default(), sha);
        let run = thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(60));
                break_context(last);
            });
            setting.run("broken", sha, Arc::new(Ready::new(sha, 6 * count as u32)))
        });
        run.keep(&format!("multi_gpu-{count}-broken"));
        println!("{} of {count} devices were lost", run.counters.device_losses);
        assert!(run.counters.device_losses > 0, "a device was lost");
        record("multi_gpu_failure", &format!("{count}, an illegal access"), run.wall.as_secs_f64() * 1e3, "ms")
    }
}

/// Run a kernel that writes where no memory is, as a bug would: the driver gives up the context.
fn break_context(device: &Arc<Device>) {
    let stream = device.stream().expect("the device works");
    let kernel = device.kernel("expand_positions").expect("the kernel exists");
    let (none, count, first, len, nowhere) = (0u64, 1u32 << 20, 0u32, 1u32 << 20, 0x10u64);
    let mut launch = stream.launch_builder(&kernel);
    launch.arg(&none).arg(&count).arg(&first).arg(&len).arg(&nowhere);
    // SAFETY: it is not safe, on purpose: the device faults at an address that is nobody's, which touches no other memory.
    unsafe { launch.launch(grid(count as usize / 256, 256, 0)) }.expect("a launch is queued");
    println!("{}", stream.synchronize().expect_err("the context is lost"));
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

    if wanted("link") {
        bench.link()?;
    }
    if wanted("replica") {
        bench.replica(&replica, &labelling)?;
    }
    if wanted("big") {
        bench.big(&replica, &labelling)?;
    }
    if !["busy", "ten", "copies", "gpus"].into_iter().any(wanted) {
        return Ok(());
    }
    let guest = Guest::load(&sha256, circuits::sha_params());
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

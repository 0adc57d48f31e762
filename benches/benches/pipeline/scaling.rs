//! Scaling over the GPUs of one host, and what is left when one of them fails.

use super::circuits::{self, Guest, Material, Ready};
use super::replica::{CHALLENGES, Labelling};
use super::runs::{Failing, Run};
use super::{Bench, PARTITIONS, SMALL_CARD, link, median, record};
use cudarc::driver::PushKernelArg;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::thread;
use std::time::Duration;
use zkhost_cuda::Device;
use zkhost_cuda::device::grid;
use zkhost_engine::cuda::CudaConfig;
use zkhost_engine::ids::DeviceId;
use zkhost_engine::synthesis::Synthesis;
use zkhost_runtime::Input;

/// Partitions or jobs of guests for each GPU.
const GUESTS_PER_GPU: usize = 40;

/// A number of jobs that keep so many GPUs busy.
type Jobs<'a> = &'a dyn Fn(usize) -> Vec<Arc<dyn Synthesis>>;

impl Bench {
    /// multi_gpu: throughput, links and one host copy of a streamed key, and a GPU that fails in the middle.
    pub fn gpus(&self, sha: &Material, squarings: &Material) -> io::Result<()> {
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

    /// multi_gpu from input to proofs, guests in their sandboxes: the replica circuit as one job of so many partitions and as
    /// a job for each GPU, and jobs of SHA-256 that have nothing to do with each other.
    pub fn guests_on_gpus(
        &self,
        (sha256, sha): (&Guest, &Material),
        replica: &Path,
        labelling: &Path,
    ) -> io::Result<()> {
        let labelling = Labelling::read(labelling)?;
        let one = Guest::load(replica, Labelling::params(1, CHALLENGES));
        let material = one.material(&self.gpus[0], &labelling.input(0, 1, CHALLENGES).into());
        let guest = |partitions| one.with_params(Labelling::params(partitions, CHALLENGES));
        let input = |partitions| Input::from(labelling.input(0, partitions, CHALLENGES));
        let of = |partitions: usize| -> Arc<dyn Synthesis> { Arc::new(guest(partitions).job(&input(partitions))) };
        self.scaling(&material, "replica, one job", &|gpus| vec![of(GUESTS_PER_GPU * gpus)])?;
        self.scaling(&material, "replica, a job a GPU", &|gpus| (0..gpus).map(|_| of(GUESTS_PER_GPU)).collect())?;
        let job = |number| Arc::new(sha256.job(&circuits::sha_input(number as u32))) as Arc<dyn Synthesis>;
        self.scaling(sha, "independent jobs of SHA-256", &|gpus| (0..GUESTS_PER_GPU * gpus).map(job).collect())
    }

    /// The throughput of every number of GPUs as a multiple of one's.
    fn scaling(&self, material: &Material, name: &str, jobs: Jobs<'_>) -> io::Result<()> {
        let mut alone = 0.0;
        for gpus in 1..=self.gpus.len() {
            let setting = self.set(gpus, CudaConfig::default(), material, self.for_guests(gpus), |_, gpu| gpu);
            let run = |number| setting.run_all(&format!("{name} {number}"), material, jobs(gpus));
            let runs: Vec<_> = (0..super::JOBS).map(run).collect();
            let wall = median(runs.iter().map(|run| run.wall.as_secs_f64()).collect());
            for number in 0..gpus as u16 {
                let share = |run: &Run| run.kernel_busy(DeviceId(number));
                let case = format!("{gpus}, {name}: kernels of GPU {number} busy");
                record("multi_gpu_busy", &case, median(runs.iter().map(share).collect()), "%")?;
            }
            println!("{gpus} GPU(s), {name}: {:.1} ms", wall * 1e3);
            match gpus {
                1 => alone = wall,
                _ => {
                    let multiple = gpus as f64 * alone / wall;
                    record("multi_gpu", &format!("{gpus}, {name}"), multiple, "of one GPU, higher is better")?;
                }
            }
            runs[0].keep(&format!("multi_gpu-{gpus}-{}", name.replace(", ", "-").replace(' ', "-")));
        }
        Ok(())
    }

    /// The last GPU is lost in the middle: its partitions finish on the others, or on the CPU if it was the only one.
    fn failing(&self, sha: &Material) -> io::Result<()> {
        let count = self.gpus.len();
        let setting = self.set(count, CudaConfig::default(), sha, self.ready(), |number, gpu| {
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

//! A CUDA device: selection, kernels, properties, streams and events.

use std::{
    collections::HashMap,
    fmt,
    str::FromStr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use cudarc::{
    driver::{CudaContext, CudaEvent, CudaFunction, CudaModule, CudaStream, LaunchArgs, LaunchConfig, result, sys},
    nvrtc::Ptx,
};

use crate::{
    error::{CudaError, Doing},
    memory::{Buffer, Plain, Slice},
};

include!(concat!(env!("OUT_DIR"), "/images.rs"));

/// Where to prove, as a user says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The first CUDA device if there is one that works, else the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// The CUDA device of this number.
    Cuda(usize),
    /// Every CUDA device that works, else the CPU.
    AllCuda,
}

impl FromStr for DeviceChoice {
    type Err = CudaError;

    fn from_str(text: &str) -> Result<Self, CudaError> {
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::AllCuda),
            _ => text
                .strip_prefix("cuda:")
                .filter(|number| number.bytes().all(|b| b.is_ascii_digit()))
                .and_then(|number| number.parse().ok())
                .map(Self::Cuda)
                .ok_or_else(|| CudaError::BadDeviceName(text.into())),
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(number) => write!(f, "cuda:{number}"),
            Self::AllCuda => f.write_str("cuda"),
        }
    }
}

impl DeviceChoice {
    /// Opens the device that was chosen, the first one if all were. None is the CPU; the sentence beside it says why a device that was asked for,
    /// or looked for, is not used.
    pub fn open(self) -> (Option<Arc<Device>>, Option<String>) {
        let number = match self {
            Self::Cpu => return (None, None),
            Self::Auto | Self::AllCuda => 0,
            Self::Cuda(number) => number,
        };
        match Device::open(number) {
            Ok(device) => (Some(device), None),
            Err(error) => (None, Some(format!("{error}; using the CPU"))),
        }
    }

    /// Opens all devices that were chosen. None are the CPU; sentences say why one is not used.
    pub fn open_all(self) -> (Vec<Arc<Device>>, Vec<String>) {
        let devices = match (self, Device::count()) {
            (Self::AllCuda, Ok(count @ 1..)) => (0..count).map(Self::Cuda).map(Self::open).collect(),
            _ => vec![self.open()],
        };
        let (devices, remarks): (Vec<_>, Vec<_>) = devices.into_iter().unzip();
        (devices.into_iter().flatten().collect(), remarks.into_iter().flatten().collect())
    }
}

/// How many device memory allocations may follow, and how large they may be in all. For tests of small cards and of
/// refused allocations.
#[derive(Clone, Copy, Debug)]
pub struct MemoryLimits {
    /// Bytes this device may hold for us at once.
    pub bytes_max: usize,
    /// Allocations that are granted before all others are refused.
    pub allocations_max: usize,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self { bytes_max: usize::MAX, allocations_max: usize::MAX }
    }
}

/// An open device with its kernels loaded. Shared by everything that runs on it; holds no other state of a computation.
pub struct Device {
    context: Arc<CudaContext>,
    modules: Vec<Arc<CudaModule>>,
    functions: Mutex<HashMap<&'static str, CudaFunction>>,
    limits: Mutex<MemoryLimits>,
    used_bytes: AtomicUsize,
    page_locks: AtomicU64,
    name: String,
    number: usize,
    multiprocessors: u32,
    shared_bytes_max: usize,
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cuda:{} ({})", self.number, self.name)
    }
}

impl Device {
    /// Devices that the driver lists.
    pub fn count() -> Result<usize, CudaError> {
        if IMAGES.is_empty() {
            return Err(CudaError::NoDevice(
                "this zkhost was built without kernels, because nvcc was not found then".into(),
            ));
        }
        // SAFETY: only looks for the driver's library and loads it, as every later call would.
        if !unsafe { sys::is_culib_present() } {
            return Err(CudaError::NoDevice("the driver's library libcuda.so is not installed".into()));
        }
        let count = result::init().and_then(|()| CudaContext::device_count());
        Ok(count.map_err(|e| CudaError::NoDevice(format!("the driver does not start: {e}")))? as usize)
    }

    /// Opens device `number` and loads the kernels.
    pub fn open(number: usize) -> Result<Arc<Self>, CudaError> {
        let count = Self::count()?;
        if number >= count {
            return Err(CudaError::NoDevice(format!("device cuda:{number} does not exist; the driver lists {count}")));
        }
        let context = CudaContext::new(number)
            .map_err(|e| CudaError::NoDevice(format!("cuda:{number} is busy or out of order: {e}")))?;
        let modules = IMAGES
            .iter()
            .map(|(_, image)| context.load_module(Ptx::from_binary(image.to_vec())))
            .collect::<Result<_, _>>()
            .map_err(|e| {
                CudaError::NoDevice(format!(
                    "cuda:{number} does not take our kernels (compute capability 8.0 and up do): {e}"
                ))
            })?;
        let attribute = |which| context.attribute(which).doing("asking for a property of the device");
        use sys::CUdevice_attribute_enum as Attribute;
        let multiprocessors = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as u32;
        let shared_bytes_max = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)? as usize;
        let name = context.name().doing("asking for the name of the device")?;
        Ok(Arc::new(Self {
            context,
            modules,
            functions: Mutex::default(),
            limits: Mutex::default(),
            used_bytes: AtomicUsize::new(0),
            page_locks: AtomicU64::new(0),
            name,
            number,
            multiprocessors,
            shared_bytes_max,
        }))
    }

    /// The device's name and number, such as "NVIDIA H200 (cuda:0)".
    pub fn describe(&self) -> String {
        format!("{} (cuda:{})", self.name, self.number)
    }

    /// Streaming multiprocessors.
    pub fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }

    /// Shared memory that one block may use, in bytes.
    pub fn shared_bytes_max(&self) -> usize {
        self.shared_bytes_max
    }

    /// Free and total device memory in bytes, all processes together.
    pub fn memory(&self) -> Result<(usize, usize), CudaError> {
        self.bind()?;
        result::mem_get_info().doing("asking for free memory")
    }

    /// Device memory that this process holds through [`Buffer`], in bytes.
    pub fn used_bytes(&self) -> usize {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// Restricts what may be allocated from now on.
    pub fn set_memory_limits(&self, limits: MemoryLimits) {
        *self.limits.lock().unwrap_or_else(|e| e.into_inner()) = limits;
    }

    /// Free memory that may be used, in bytes: what the card has, and no more than the limits leave.
    pub fn available_bytes(&self) -> Result<usize, CudaError> {
        let bytes_max = self.limits.lock().unwrap_or_else(|e| e.into_inner()).bytes_max;
        Ok(self.memory()?.0.min(bytes_max.saturating_sub(self.used_bytes())))
    }

    /// Device memory for `len` values, not initialised.
    pub fn allocate<T: Plain>(self: &Arc<Self>, len: usize) -> Result<Buffer<T>, CudaError> {
        Buffer::new(self, len)
    }

    /// How often host memory was page-locked for this device, in whichever way.
    pub fn page_lock_calls(&self) -> u64 {
        self.page_locks.load(Ordering::Relaxed)
    }

    pub(crate) fn count_page_lock(&self) {
        self.page_locks.fetch_add(1, Ordering::Relaxed);
    }

    /// The NUMA node that the device is attached to; 0 where the system does not tell.
    pub fn numa_node(&self) -> u32 {
        use sys::CUdevice_attribute_enum as Attribute;
        let number = |which| self.context.attribute(which).unwrap_or(0);
        let (domain, bus, slot) = (
            number(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID),
            number(Attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID),
            number(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID),
        );
        let path = format!("/sys/bus/pci/devices/{domain:04x}:{bus:02x}:{slot:02x}.0/numa_node");
        // The file says -1 where there is one node only.
        std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    }

    /// An event that is nowhere yet.
    pub fn event(self: &Arc<Self>) -> Result<Event, CudaError> {
        let flags = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
        Ok(Event { inner: self.context.new_event(flags).doing("creating an event")? })
    }

    /// A new stream of this device.
    pub fn stream(self: &Arc<Self>) -> Result<Stream, CudaError> {
        let inner = self.context.new_stream().doing("creating a stream")?;
        Ok(Stream { inner, device: self.clone() })
    }

    /// The kernel of this name, wherever it is defined. Makes the context current on this thread: what is asked of a kernel
    /// does not do so itself, and a thread may ask that has not used the device before.
    pub fn kernel(&self, name: &'static str) -> Result<Kernel, CudaError> {
        self.bind()?;
        let mut functions = self.functions.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(function) = functions.get(name) {
            return Ok(Kernel { function: function.clone() });
        }
        let function = self
            .modules
            .iter()
            .find_map(|module| module.load_function(name).ok())
            .ok_or_else(|| CudaError::Unsupported(format!("the kernel {name} is not in this build")))?;
        functions.insert(name, function.clone());
        Ok(Kernel { function })
    }

    /// Makes the device's context current on this thread, which raw driver calls need.
    pub(crate) fn bind(&self) -> Result<(), CudaError> {
        self.context.bind_to_thread().doing("selecting the device")
    }

    /// Counts an allocation, or refuses it.
    pub(crate) fn admit(&self, bytes: usize) -> Result<(), CudaError> {
        let mut limits = self.limits.lock().unwrap_or_else(|e| e.into_inner());
        let used_bytes = self.used_bytes();
        let fits = used_bytes.checked_add(bytes).is_some_and(|total| total <= limits.bytes_max);
        if !fits || limits.allocations_max == 0 {
            return Err(CudaError::OutOfMemory { asked_bytes: bytes, used_bytes });
        }
        limits.allocations_max -= 1;
        self.used_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Counts a free.
    pub(crate) fn release(&self, bytes: usize) {
        self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// A kernel, found once and launched often.
#[derive(Clone)]
pub struct Kernel {
    function: CudaFunction,
}

impl Kernel {
    /// Allows blocks of this kernel to use `bytes` of dynamic shared memory, beyond the default of 48 KiB.
    pub fn with_shared_bytes(self, bytes: usize) -> Result<Self, CudaError> {
        let attribute = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        self.function.set_attribute(attribute, bytes as i32).doing("raising a kernel's shared memory")?;
        Ok(self)
    }

    /// How many blocks of this kernel one multiprocessor holds at a time.
    pub fn blocks_per_multiprocessor(&self, threads: u32, shared_bytes: usize) -> Result<u32, CudaError> {
        self.function
            .occupancy_max_active_blocks_per_multiprocessor(threads, shared_bytes, None)
            .doing("asking for a kernel's occupancy")
    }
}

/// A queue of work on a device. Everything is asynchronous unless it says otherwise.
#[derive(Clone)]
pub struct Stream {
    inner: Arc<CudaStream>,
    device: Arc<Device>,
}

impl Stream {
    /// The stream's device.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Begins a launch of `kernel` on this stream; arguments follow with `arg`, the last call is `launch`.
    pub fn launch_builder<'a>(&'a self, kernel: &'a Kernel) -> LaunchArgs<'a> {
        self.inner.launch_builder(&kernel.function)
    }

    /// Waits until everything queued so far is done.
    pub fn synchronize(&self) -> Result<(), CudaError> {
        self.inner.synchronize().doing("waiting for the device")
    }

    /// Copies `source` to the start of `target` and waits for it.
    pub fn upload<T: Plain>(&self, target: Slice<'_, T>, source: &[T]) -> Result<(), CudaError> {
        self.device.bind()?;
        let target = target.slice(0, source.len())?;
        // SAFETY: the target lies in a live allocation and is exactly as long; the source lives until the wait below.
        unsafe { result::memcpy_htod_async(target.address(), source, self.inner.cu_stream()) }
            .doing("copying to the device")?;
        self.synchronize()
    }

    /// Copies `source` to the start of `target` without waiting.
    ///
    /// # Safety
    /// `source` must stay as it is, and allocated, until the stream has passed this copy.
    pub unsafe fn upload_async<T: Plain>(&self, target: Slice<'_, T>, source: &[T]) -> Result<(), CudaError> {
        self.device.bind()?;
        let target = target.slice(0, source.len())?;
        // SAFETY: the target lies in a live allocation and is exactly as long; the caller keeps the source.
        unsafe { result::memcpy_htod_async(target.address(), source, self.inner.cu_stream()) }
            .doing("copying to the device")
    }

    /// Copies `source`, exactly as long as `target`, to the host and waits for it.
    pub fn download<T: Plain>(&self, target: &mut [T], source: Slice<'_, T>) -> Result<(), CudaError> {
        self.device.bind()?;
        let source = source.slice(0, target.len())?;
        // A copy to memory that is not page-locked waits inside the driver for what is queued before it, and keeps other
        // threads from queueing meanwhile: so wait before it, which keeps nobody.
        self.synchronize()?;
        // SAFETY: the source lies in a live allocation and is exactly as long; the target is borrowed until the wait.
        unsafe { result::memcpy_dtoh_async(target, source.address(), self.inner.cu_stream()) }
            .doing("copying to the host")?;
        self.synchronize()
    }

    /// All of `source` on the host, when it is there.
    pub fn to_vec<T: Plain>(&self, source: Slice<'_, T>) -> Result<Vec<T>, CudaError> {
        let mut values = vec![T::zeroed(); source.len()];
        self.download(&mut values, source)?;
        Ok(values)
    }

    /// Copies `source` to the start of `target`, both on the device.
    pub fn copy<T: Plain>(&self, target: Slice<'_, T>, source: Slice<'_, T>) -> Result<(), CudaError> {
        self.device.bind()?;
        let target = target.slice(0, source.len())?;
        // SAFETY: both lie in live allocations and are equally long.
        unsafe { result::memcpy_dtod_async(target.address(), source.address(), source.bytes(), self.inner.cu_stream()) }
            .doing("copying on the device")
    }

    /// Sets all bytes of `target` to zero.
    pub fn clear<T: Plain>(&self, target: Slice<'_, T>) -> Result<(), CudaError> {
        if target.is_empty() {
            return Ok(());
        }
        self.device.bind()?;
        // SAFETY: the target lies in a live allocation of at least so many bytes; zero bytes are a value of T.
        unsafe { result::memset_d8_async(target.address(), 0, target.bytes(), self.inner.cu_stream()) }
            .doing("clearing device memory")
    }

    /// Makes work queued from now on wait for what `other` has queued so far.
    pub fn wait_for(&self, other: &Stream) -> Result<(), CudaError> {
        let event = other.inner.record_event(None).doing("recording an event")?;
        self.inner.wait(&event).doing("waiting for an event")
    }

    /// A new event behind everything queued so far.
    pub fn timestamp(&self) -> Result<Event, CudaError> {
        let event = self.device.event()?;
        self.record(&event)?;
        Ok(event)
    }

    /// Puts an event behind everything queued so far; it was elsewhere before, if anywhere.
    pub fn record(&self, event: &Event) -> Result<(), CudaError> {
        event.inner.record(&self.inner).doing("recording an event")
    }
}

/// A point in a stream's time.
pub struct Event {
    inner: CudaEvent,
}

impl Event {
    /// Milliseconds from this point to `later`, both having been reached; waits for them.
    pub fn milliseconds_to(&self, later: &Event) -> Result<f32, CudaError> {
        self.inner.elapsed_ms(&later.inner).doing("reading a timer")
    }

    /// The same as a duration.
    pub fn time_to(&self, later: &Event) -> Result<Duration, CudaError> {
        Ok(Duration::from_secs_f64(f64::from(self.milliseconds_to(later)?.max(0.0)) / 1e3))
    }

    /// Whether it has been reached. Does not wait. An error means that it never will be, because the context is lost.
    pub fn has_fired(&self) -> Result<bool, CudaError> {
        self.inner.try_is_complete().doing("asking for an event")
    }
}

/// A launch of `blocks` times `threads` in one dimension.
pub fn grid(blocks: usize, threads: u32, shared_bytes: usize) -> LaunchConfig {
    LaunchConfig { grid_dim: (blocks as u32, 1, 1), block_dim: (threads, 1, 1), shared_mem_bytes: shared_bytes as u32 }
}

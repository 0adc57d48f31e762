//! The engine: how guests are compiled and interrupted.

use crate::compile::Kind;
use crate::limits::STACK_BYTES_MAX;
use std::sync::LazyLock;
use std::time::Duration;
use wasmtime::{Config, Engine, EngineWeak, Inlining, WasmBacktraceDetails, WasmFeatures};

/// How often a running guest is looked at: its time limit and a wish to cancel take effect within two of these.
pub const TICK: Duration = Duration::from_millis(10);

/// Memory that starts with data is mapped from an image of it. Up to this size it may be mostly empty; beyond, the data are
/// copied instead: circom's modules have some constants at the start of their memory and messages at its end, and an image of
/// all between would be hashed, read and mapped each time.
const DENSE_IMAGE_BYTES: u64 = 1 << 20;

/// What a component may use of WebAssembly where the compiler has all of it.
const WANTED: WasmFeatures = WasmFeatures::WASM2
    .union(WasmFeatures::EXTENDED_CONST)
    .union(WasmFeatures::WIDE_ARITHMETIC)
    .union(WasmFeatures::COMPONENT_MODEL)
    .difference(WasmFeatures::GC_TYPES);

/// What a component may use of WebAssembly on this machine. Components are validated with it before they are compiled.
///
/// Wide arithmetic is a proposal that not every compiler has on every processor; everything else, every engine runs.
pub(crate) static FEATURES: LazyLock<WasmFeatures> =
    LazyLock::new(|| match Engine::new(&config(Kind::Component, WANTED)) {
        Ok(_) => WANTED,
        Err(_) => without_wide_arithmetic(WANTED),
    });

/// The same features without wide arithmetic.
pub(crate) fn without_wide_arithmetic(features: WasmFeatures) -> WasmFeatures {
    features.difference(WasmFeatures::WIDE_ARITHMETIC)
}

/// The settings of every engine, in this process and in the compiling child; native code is bound to them.
///
/// Wide arithmetic makes a product in Fr ten times faster. Everything that makes two runs differ (threads, relaxed SIMD,
/// NaN bits) or that circuits have no use for is off: a proposal that is off has no bugs. Memories come from the
/// on-demand allocator, which maps a fresh one for each instance and unmaps it afterwards, so that the kernel zeroes a
/// page before anyone else sees it.
///
/// Witness modules of circom are many small functions that call each other, and none was inlined by the compiler that wrote
/// them; rustc did that for components, which more of it makes slower.
fn config(kind: Kind, features: WasmFeatures) -> Config {
    let mut config = Config::new();
    config
        .wasm_features(WasmFeatures::all().difference(features), false)
        .wasm_features(features, true)
        .concurrency_support(false)
        .epoch_interruption(true)
        .cranelift_nan_canonicalization(true)
        .max_wasm_stack(STACK_BYTES_MAX)
        .memory_guaranteed_dense_image_size(DENSE_IMAGE_BYTES)
        .compiler_inlining(match kind {
            Kind::Component => Inlining::No,
            Kind::Circom => Inlining::Yes,
        })
        .wasm_backtrace_details(WasmBacktraceDetails::Enable);
    config
}

/// An engine without a clock: it compiles, but nothing interrupts what it runs.
pub(crate) fn without_clock(kind: Kind) -> wasmtime::Result<Engine> {
    Engine::new(&config(kind, *FEATURES))
}

/// The engines of a process, whose epoch advances every [`TICK`] as long as one of them lives.
pub(crate) struct Engines {
    components: Engine,
    modules: Engine,
}

impl Engines {
    pub fn new() -> wasmtime::Result<Self> {
        let engines = Engines { components: without_clock(Kind::Component)?, modules: without_clock(Kind::Circom)? };
        let weak = [engines.components.weak(), engines.modules.weak()];
        std::thread::Builder::new().name("guest-clock".into()).spawn(move || {
            loop {
                // Circuits outlive what loaded them, and keep their engine.
                let alive: Vec<_> = weak.iter().filter_map(EngineWeak::upgrade).collect();
                if alive.is_empty() {
                    break;
                }
                alive.iter().for_each(Engine::increment_epoch);
                drop(alive);
                std::thread::sleep(TICK);
            }
        })?;
        Ok(engines)
    }

    /// The engine for files of a kind.
    pub fn of(&self, kind: Kind) -> &Engine {
        match kind {
            Kind::Component => &self.components,
            Kind::Circom => &self.modules,
        }
    }
}

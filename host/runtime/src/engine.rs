//! The engine: how guests are compiled and interrupted.

use crate::limits::STACK_BYTES_MAX;
use std::sync::LazyLock;
use std::time::Duration;
use wasmtime::{Config, Engine, WasmBacktraceDetails, WasmFeatures};

/// How often a running guest is looked at: its time limit and a wish to cancel take effect within two of these.
pub const TICK: Duration = Duration::from_millis(10);

/// What a component may use of WebAssembly where the compiler has all of it.
const WANTED: WasmFeatures = WasmFeatures::WASM2
    .union(WasmFeatures::EXTENDED_CONST)
    .union(WasmFeatures::WIDE_ARITHMETIC)
    .union(WasmFeatures::COMPONENT_MODEL)
    .difference(WasmFeatures::GC_TYPES);

/// What a component may use of WebAssembly on this machine. Components are validated with it before they are compiled.
///
/// Wide arithmetic is a proposal that not every compiler has on every processor; everything else, every engine runs.
pub(crate) static FEATURES: LazyLock<WasmFeatures> = LazyLock::new(|| match Engine::new(&config(WANTED)) {
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
fn config(features: WasmFeatures) -> Config {
    let mut config = Config::new();
    config
        .wasm_features(WasmFeatures::all().difference(features), false)
        .wasm_features(features, true)
        .concurrency_support(false)
        .epoch_interruption(true)
        .cranelift_nan_canonicalization(true)
        .max_wasm_stack(STACK_BYTES_MAX)
        .wasm_backtrace_details(WasmBacktraceDetails::Enable);
    config
}

/// An engine without a clock: it compiles, but nothing interrupts what it runs.
pub(crate) fn without_clock() -> wasmtime::Result<Engine> {
    Engine::new(&config(*FEATURES))
}

/// An engine whose epoch advances every [`TICK`] as long as it lives.
pub(crate) fn with_clock() -> wasmtime::Result<Engine> {
    let engine = without_clock()?;
    let weak = engine.weak();
    std::thread::Builder::new().name("guest-clock".into()).spawn(move || {
        while let Some(engine) = weak.upgrade() {
            engine.increment_epoch();
            drop(engine);
            std::thread::sleep(TICK);
        }
    })?;
    Ok(engine)
}

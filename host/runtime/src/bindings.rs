//! What wasmtime generates from the contract, whose WIT documents it.
#![allow(missing_docs)]

wasmtime::component::bindgen!({
    path: "../../wit/v0.1",
    world: "guest",
    imports: { default: trappable },
    with: {
        "zkhost:circuit/sink.witness": crate::imports::Witness,
        "zkhost:circuit/sink.shape": crate::imports::Shape,
        "zkhost:circuit/source.blob": crate::imports::Blob,
    },
});

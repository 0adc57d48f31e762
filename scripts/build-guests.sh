#!/usr/bin/env bash
# Build every guest circuit to guest-circuits/target/components.
#
# The Sapling circuits leave field inversion to the host; `NAME-published` is the same circuit with the field arithmetic
# exactly as published, for the tests and benchmarks that compare the two. ZKHOST names a command that is built already.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -z "${ZKHOST:-}" ]; then
    cargo build --release --locked --package zkhost
    ZKHOST=target/release/zkhost
fi
components=guest-circuits/target/components

for circuit in sapling-output sapling-spend; do
    "$ZKHOST" build guest-circuits --locked --package "$circuit" --out "$components/$circuit-published.wasm"
    "$ZKHOST" build guest-circuits --locked --package "$circuit" --out "$components/$circuit.wasm" --host-inversion
done
for circuit in sha256 merkle-poseidon replica arithmetic hostile; do
    "$ZKHOST" build guest-circuits --locked --package "$circuit" --out "$components/$circuit.wasm"
done

#!/usr/bin/env bash
# Build every guest circuit to guest-circuits/target/components.
#
# The Sapling circuits leave field inversion to the host; `NAME-published` is the same circuit with the field arithmetic
# exactly as published, for the tests and benchmarks that compare the two, and `arithmetic-narrow` does without wide
# arithmetic. ZKHOST names a command that is built already.
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
"$ZKHOST" build guest-circuits --locked --package arithmetic --out "$components/arithmetic-narrow.wasm" --no-wide-arithmetic

# The circuit in C: a core module by clang, without a library, which `zkhost build` takes as it is.
module=guest-circuits/target/c-mimc.wasm
"$(scripts/c-toolchain.sh)" --target=wasm32-unknown-unknown -std=c17 -O3 -mwide-arithmetic -mbulk-memory -ffreestanding \
    -nostdlib -Wall -Wextra -Wl,--no-entry -Wl,--strip-debug guest-circuits/c-mimc/circuit.c -o "$module"
"$ZKHOST" build "$module" --out "$components/c-mimc.wasm"

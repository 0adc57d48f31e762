#!/usr/bin/env bash
# The main job, end to end: Zcash's Sapling circuits arrive as components, their ceremony keys as files, and the host, which
# knows neither, proves and verifies. Everything it makes is in build/demo.
set -euo pipefail
cd "$(dirname "$0")/.."
zkhost=${ZKHOST:-target/release/zkhost}
demo=build/demo
rm -rf $demo
mkdir -p $demo

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }

for circuit in output spend; do
    component=guest-circuits/target/components/sapling-$circuit.wasm
    input=guest-circuits/sapling-$circuit/example-input.json
    out=$demo/sapling-$circuit

    say "Sapling $circuit: the component"
    $zkhost inspect $component

    say "Sapling $circuit: import the ceremony's key, and show by a proof that it is this circuit's"
    $zkhost import-key $component build/sapling/sapling-$circuit.params \
        --input $input --out $out.zkimage --vk-out $out.vk

    say "Sapling $circuit: prove"
    $zkhost prove $component --key $out.zkimage --input $input --out $out.proof --public-out $out.json

    # The verifying key that the chain itself has used since 2018, not the one from the file that proved.
    say "Sapling $circuit: verify under the network's verifying key"
    cmp $out.vk tests/fixtures/sapling/$circuit.vk
    $zkhost verify --vk tests/fixtures/sapling/$circuit.vk --proof $out.proof --public $out.json
done

say "done: both proofs verify; see $demo"

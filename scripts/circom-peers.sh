#!/usr/bin/env bash
# circom's compiler, its library of circuits, snarkjs, ZoKrates, Solidity's compiler and an Ethereum virtual machine, as
# published: peers of the tests and benches. The circuits in tests/circom and those of the fixtures are compiled for BLS12-381
# to build/circom, each when it is missing or older than its source. What the compiler writes holds its own runtime, which is
# under the GPL, so none of it is in the repository.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v npm > /dev/null; then
    sudo=$([ "$(id -u)" = 0 ] || echo sudo)
    $sudo apt-get -qq update
    $sudo apt-get -qq install --no-install-recommends nodejs npm > /dev/null
fi
peers=tests/circom
for packages in $peers $peers/circom-2.0.6; do
    if [ ! $packages/node_modules/.package-lock.json -nt $packages/package-lock.json ]; then
        npm ci --prefix $packages --no-audit --no-fund --silent
        touch $packages/node_modules/.package-lock.json
    fi
done

# NAME SOURCE PACKAGES [OPTION...]: by the compiler among those packages.
compile() {
    local name=$1 source=$2 packages=$3 out=build/circom/$1 draft=$peers/draft
    shift 3
    [ ! "$out/circuit.wasm" -nt "$source" ] || return 0
    rm -rf $draft "$out"
    mkdir -p $draft "$out"
    cp "$source" $draft/circuit.circom
    # The compiler runs in WebAssembly too and sees nothing but the folder it is started in.
    (cd $peers &&
        node "$packages/node_modules/circom2/cli.js" draft/circuit.circom "$@" --r1cs --wasm --sym --prime bls12381 -o draft > draft/log 2>&1 ||
        { cat draft/log; exit 1; })
    mv $draft/circuit.r1cs $draft/circuit.sym "$out"
    mv $draft/circuit_js/circuit.wasm "$out"
    rm -r $draft
}

# The last compiler whose modules have the earlier interface. What is compiled is not compiled again below.
compile early $peers/circuits/early.circom circom-2.0.6
for source in $peers/circuits/*.circom; do
    compile "$(basename "$source" .circom)" "$source" . -l node_modules
done
for source in tests/fixtures/circom/*/circuit.circom; do
    compile "fixture-$(basename "$(dirname "$source")")" "$source" . -l node_modules
done

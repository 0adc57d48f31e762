#!/usr/bin/env bash
# Run fuzz targets, as many at a time as there are processors: scripts/fuzz.sh SECONDS [TARGET...], all of them by default.
#
# The stable compiler is enough: libFuzzer needs counters at the edges of basic blocks, which are a pass of LLVM. The host's
# triple is named so that build scripts go without them. ZKHOST names a command that is built already.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:?seconds for each target}
shift
triple=$(rustc -vV | sed -n 's/^host: //p')
bin=fuzz/target/$triple/release
zkhost=${ZKHOST:-target/debug/zkhost}

# Memory: what a decoder may use, and what it may ask for.
export RSS_MB=1024 ADDRESS_SPACE_KB=$((4 << 20))
# An input may take this long, and have so many bytes.
export TIMEOUT_S=20 BYTES_MAX=65536

if ! command -v c++ > /dev/null; then # libFuzzer is written in C++
    sudo=$([ "$(id -u)" = 0 ] || echo sudo)
    $sudo apt-get -qq update
    $sudo apt-get -qq install --no-install-recommends g++ > /dev/null
fi
RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares" \
    cargo build --release --locked --quiet --manifest-path fuzz/Cargo.toml --target "$triple" --target-dir fuzz/target

# Seeds: the fixtures, and what `convert` and `setup` make of them.
seeds=build/fuzz/seeds
rm -rf $seeds
seed() { # TARGET FILE...
    mkdir -p "$seeds/$1"
    for file in "${@:2}"; do cp "$file" "$seeds/$1/$(tr / - <<< "$file")"; done
}
convert() { # TARGET KIND FROM TO FILE [OPTION...]
    mkdir -p "$seeds/$1"
    "$zkhost" convert "$2" --from "$3" --to "$4" "$5" "$seeds/$1/$2-$4-$(tr / - <<< "$5")" "${@:6}" > /dev/null
}
fixtures=tests/fixtures
for kind in params vk proof; do seed $kind $fixtures/bellman-golden/*.$kind; done
for kind in r1cs wtns zkey sym; do seed $kind $fixtures/circom/*/*.$kind; done
seed wtns $fixtures/negative/*.wtns
seed zkey $fixtures/negative/*.zkey
seed snarkjs $fixtures/circom/*/{proof,public,vkey}.json
seed signals tests/circom/circuits/*.json $fixtures/circom/*/input.json
seed zokrates $fixtures/zokrates/*.json
for circuit in mul2 edge_nopublic; do
    proof=$fixtures/bellman-golden/$circuit.proof vk=$fixtures/bellman-golden/$circuit.vk
    convert arkworks proof bellman arkworks-uncompressed $proof
    for to in arkworks arkworks-uncompressed plutus; do convert "${to%-*}" vk bellman $to $vk --allow-loss; done
    convert gnark proof bellman gnark $proof
    convert plutus proof bellman plutus $proof
    convert eip2537 proof bellman eip2537 $proof
    convert eip2537 public bellman eip2537 $fixtures/bellman-golden/$circuit.public
done
seed arkworks $fixtures/bellman-golden/*.proof
"$zkhost" convert public --from bellman --to zkhost $fixtures/bellman-golden/mul2.public build/fuzz/public.json > /dev/null
convert eip2537 proof bellman calldata $fixtures/bellman-golden/mul2.proof --public build/fuzz/public.json
mkdir -p $seeds/image
"$zkhost" setup guest-circuits/target/components/arithmetic.wasm --insecure-seed 1 --out $seeds/image/arithmetic > /dev/null

run() { # TARGET
    set -euo pipefail
    corpus=fuzz/corpus/$1 artifacts=fuzz/artifacts/$1 log=build/fuzz/$1.log given=$seeds/$1
    mkdir -p "$corpus" "$artifacts"
    [ -d "$given" ] || given=
    ulimit -v "$ADDRESS_SPACE_KB"
    # One thread, so that the counters say the same each time.
    if RAYON_NUM_THREADS=1 nice -n 19 "$bin/$1" -max_total_time="$seconds" -timeout="$TIMEOUT_S" -rss_limit_mb="$RSS_MB" \
        -max_len="$BYTES_MAX" -artifact_prefix="$artifacts/" -print_final_stats=1 "$corpus" $given > "$log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        peak=$(sed -n 's/^stat::peak_rss_mb: *//p' "$log")
        echo "fuzz: $1: $runs inputs in $seconds s, $peak MB, $(sed -n 's/.*DONE *\(cov: [0-9]*\).*/\1/p' "$log")"
        return
    fi
    tail -40 "$log"
    crash=$(sed -n 's/.*Test unit written to //p' "$log" | tail -1)
    echo "fuzz: $1 FAILED. The input is in ${crash:-no file}, the whole log in $log; once more: $bin/$1 $crash"
    return 1
}
export -f run
export seconds bin seeds
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=($(basename -s .rs fuzz/fuzz_targets/*.rs))
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I TARGET bash -c 'run TARGET'

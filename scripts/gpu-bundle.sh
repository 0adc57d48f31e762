#!/usr/bin/env bash
# usage: gpu-bundle.sh [PART...]
# Puts the GPU tests and benchmarks into build/gpu: a folder that runs on a machine with an NVIDIA driver and nothing
# else of ours, by its run.sh. Parts, all of them unless some are named:
#   tests    of kernels, of the prover and of the engine over it
#   sapling  proofs under the ceremony's keys: 51 MB of them, and two components
#   benches  each with its peer: supraseal-c2 is built in, sppark's program is carried along from build/sppark_bench,
#            where benches/peers/sppark/build.sh has put it
#   pipeline the engine over all GPUs, with SHA-256 and the replica circuit as components
#   serve    the service over all GPUs, with the Sapling circuits: scripts/gpu-serve.sh
# PROFILE=dev builds faster; figures are for the default, release.
set -euo pipefail
cd "$(dirname "$0")/.."
profile=${PROFILE:-release}
parts=${*:-tests sapling benches pipeline serve}
out=build/gpu
# What benches/benches/pipeline/replica.rs deals its partitions from.
replica='{"partitions": 40, "challenges": 8, "layers": 2, "base_parents": 6, "expander_parents": 8, "hashed_labels": 14, "depth": 3}'
rm -rf "$out"
mkdir -p "$out/tests" "$out/benches"

# Copies the programs that a cargo command makes: collect FOLDER CARGO-ARGUMENTS...
collect() {
    folder=$1
    shift
    cargo "$@" --locked --message-format=json-render-diagnostics | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' |
        while read -r program; do
            name=$(basename "$program" | sed 's/-[0-9a-f]*$//')
            cp "$program" "$out/$folder/$name"
            strip "$out/$folder/$name"
        done
}

for part in $parts; do
    case $part in
    tests)
        collect tests test --package zkhost-cuda --no-run --tests
        collect tests test --package zkhost-engine --features cuda --no-run --test cuda
        ;;
    sapling)
        collect tests test --package zkhost-tests --no-run --test device
        for circuit in sapling-spend sapling-output; do
            for file in guest-circuits/target/components/$circuit.wasm guest-circuits/$circuit/example-input.json \
                build/sapling/$circuit.params; do
                mkdir -p "$out/root/$(dirname $file)"
                cp "$file" "$out/root/$file"
            done
        done
        mkdir -p "$out/root/tests/fixtures/sapling"
        cp tests/fixtures/sapling/golden-output.proof "$out/root/tests/fixtures/sapling/"
        ;;
    benches)
        collect benches build --package zkhost-cuda --benches --profile "$profile"
        # The peer's build looks for the toolkit where one would be installed, and knows no card after its own day.
        for nvcc in "${NVCC:-}" "${CUDA_HOME:-/nonexistent}/bin/nvcc" "$(command -v nvcc || true)" \
            .venv/lib/python3.*/site-packages/nvidia/cu13/bin/nvcc; do
            if [ -x "$nvcc" ]; then break; fi
        done
        [ -x "$nvcc" ] || { echo "gpu-bundle.sh: no nvcc: run \`make cuda-toolchain\` first" >&2; exit 1; }
        CUDA_HOME=$(dirname "$(dirname "$(realpath "$nvcc")")")
        export CUDA_HOME PATH="$CUDA_HOME/bin:$PATH" LIBRARY_PATH="$CUDA_HOME/lib"
        export NVCC_APPEND_FLAGS="-gencode arch=compute_90,code=sm_90"
        collect benches build --manifest-path benches/gpu/Cargo.toml --features supraseal --benches --profile "$profile"
        rm -f "$out"/benches/zkhost_cuda "$out"/benches/zkhost_bench_gpu
        if [ -f build/sppark_bench ]; then cp build/sppark_bench "$out/"; fi
        ;;
    pipeline)
        collect benches build --package zkhost-benches --bench pipeline --profile "$profile"
        cp guest-circuits/target/components/sha256.wasm guest-circuits/target/components/replica.wasm "$out/"
        (cd guest-circuits && cargo run --release --locked --package replica --example labelling -- "$replica") \
            > "$out/labelling.json"
        ;;
    serve)
        collect . build --package zkhost --bin zkhost --profile "$profile"
        cp scripts/gpu-serve.sh "$out/"
        for circuit in sapling-spend sapling-output; do
            for file in guest-circuits/target/components/$circuit.wasm guest-circuits/$circuit/example-input.json; do
                mkdir -p "$out/root/$(dirname $file)"
                cp "$file" "$out/root/$file"
            done
        done
        ;;
    *)
        echo "gpu-bundle.sh: no part is called $part: expected tests, sapling, benches, pipeline or serve" >&2
        exit 2
        ;;
    esac
done

cat > "$out/run.sh" <<EOF
#!/usr/bin/env bash
# Runs the tests and then the benchmarks, whose results go to results.jsonl.
set -euo pipefail
cd "\$(dirname "\$0")"
export BENCH_DATE=\$(date -u +%FT%TZ) BENCH_COMMIT=$(git rev-parse --short HEAD) ZKHOST_TEST_ROOT=\$PWD/root
# The pipeline writes its results, and traces, into folders of its own.
export ZKHOST_BENCH_COMMIT=\$BENCH_COMMIT ZKHOST_BENCH_RESULTS=\$PWD/results ZKHOST_BENCH_TRACES=\$PWD/traces
export ZKHOST_BENCH_MACHINE="\$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1), \$(nproc) vCPUs"
if [ -f labelling.json ]; then
    export ZKHOST_BENCH_SHA256=\$PWD/sha256.wasm ZKHOST_BENCH_REPLICA=\$PWD/replica.wasm
    export ZKHOST_BENCH_LABELLING=\$PWD/labelling.json
fi
if [ -f sppark_bench ]; then export SPPARK_BENCH=\$PWD/sppark_bench; fi
machine=\$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | sed -n '1s/, /, driver /p')
shopt -s nullglob
for test in tests/*; do \$test; done
if [ -f gpu-serve.sh ]; then ./gpu-serve.sh zkhost root; fi
for bench in benches/*; do
    # Some print for people, too.
    \$bench | tee output.txt
    sed -n "/^{/{s/\"machine\":\"[^\"]*\"/\"machine\":\"\$machine\"/;p;}" output.txt >> results.jsonl
done
EOF
chmod +x "$out/run.sh"
du -sh "$out"

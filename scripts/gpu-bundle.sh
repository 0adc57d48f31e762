#!/bin/sh
# Puts the GPU tests and benchmarks into build/gpu: a folder that runs on a machine with an NVIDIA driver and nothing
# else of ours, by its run.sh. PROFILE=dev builds faster; figures are for the default, release.
#
# A peer is carried along where benches/peers/sppark/build.sh has built it to build/sppark_bench.
set -eu
cd "$(dirname "$0")/.."
profile=${PROFILE:-release}
out=build/gpu
rm -rf "$out"
mkdir -p "$out/tests" "$out/benches"

# Copies the programs that a cargo command makes: collect FOLDER CARGO-ARGUMENTS...
collect() {
    folder=$1
    shift
    cargo "$@" --message-format=json-render-diagnostics | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' |
        while read -r program; do
            name=$(basename "$program" | sed 's/-[0-9a-f]*$//')
            cp "$program" "$out/$folder/$name"
            strip "$out/$folder/$name"
        done
}
collect tests test --package zkhost-cuda --no-run --tests
collect benches build --package zkhost-cuda --benches --profile "$profile"
rm -f "$out/benches/zkhost_cuda" "$out/benches/deps"
collect benches build --manifest-path benches/gpu/Cargo.toml --benches --profile "$profile"
rm -f "$out/benches/zkhost_bench_gpu"
if [ -f build/sppark_bench ]; then cp build/sppark_bench "$out/"; fi

cat > "$out/run.sh" <<EOF
#!/bin/sh
# Runs the tests and then the benchmarks, whose results go to results.jsonl.
set -eu
cd "\$(dirname "\$0")"
export BENCH_DATE=\$(date +%F) BENCH_COMMIT=$(git rev-parse --short HEAD)
if [ -f sppark_bench ]; then export SPPARK_BENCH=\$PWD/sppark_bench; fi
for test in tests/*; do \$test; done
for bench in benches/*; do \$bench | tee -a results.jsonl; done
EOF
chmod +x "$out/run.sh"
du -sh "$out"

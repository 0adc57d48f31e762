#!/bin/bash
# Builds sppark's benchmark program for the card's own architecture: build.sh OUT. The crates come from the registry, as
# published; nvcc is found as cuda/build.rs finds it. The program is one file that needs only a driver.
set -euo pipefail
out=$(realpath -m "${1:?usage: build.sh OUT}")
cd "$(dirname "$0")"
root=../../..
arch=${ZKHOST_CUDA_ARCH:-sm_90}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for candidate in "${NVCC:-}" "${CUDA_HOME:-/nonexistent}/bin/nvcc" "$(command -v nvcc || true)" \
    $root/.venv/lib/python3.*/site-packages/nvidia/cu13/bin/nvcc; do
    if [ -x "$candidate" ]; then nvcc=$(realpath "$candidate"); break; fi
done
: "${nvcc:?nvcc was not found: run make cuda-toolchain}"
cuda=$(dirname "$(dirname "$nvcc")")

# A crate with these two as dependencies, so that the registry's own client fetches and unpacks them.
mkdir -p "$work/crates/src" && touch "$work/crates/src/lib.rs"
printf '[package]\nname = "peer-sources"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\nsppark = "=0.1.16"\nblst = "=0.3.17"\n[workspace]\n' \
    > "$work/crates/Cargo.toml"
folder() { # of a crate's sources
    cargo metadata --format-version 1 --manifest-path "$work/crates/Cargo.toml" 2>/dev/null |
        python3 -c 'import json,os,sys; print(next(os.path.dirname(p["manifest_path"]) for p in json.load(sys.stdin)["packages"] if p["name"] == sys.argv[1]))' "$1"
}
sppark=$(folder sppark)/sppark
blst=$(folder blst)/blst

flags=(-DFEATURE_BLS12_381 -DTAKE_RESPONSIBILITY_FOR_ERROR_MESSAGE -D__ADX__)
gcc -O2 -fno-builtin -mno-avx -D__ADX__ -c "$blst/src/server.c" -o "$work/server.o"
gcc -D__ADX__ -c "$blst/build/assembly.S" -o "$work/assembly.o"
"$nvcc" -O3 -std=c++17 -arch="$arch" "${flags[@]}" -I "$sppark" -I "$blst/src" -c sppark_bench.cu -o "$work/bench.o"
"$nvcc" -O3 -std=c++17 -arch="$arch" "${flags[@]}" -I "$sppark" -I "$blst/src" -x cu -c "$sppark/util/all_gpus.cpp" -o "$work/all_gpus.o"
"$nvcc" -arch="$arch" -L "$cuda/lib" "$work"/{bench,all_gpus,server,assembly}.o -o "$out" -lpthread -ldl -lrt

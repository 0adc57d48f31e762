#!/usr/bin/env bash
# usage: gpu-serve.sh ZKHOST ROOT [JOBS]
# Serves on the GPUs of this machine: keys of two circuits made there, JOBS jobs of each from clients at a time, each proof
# verified again by the command, and where the engine spent the time. ROOT has guest-circuits with its components.
set -euo pipefail
zkhost=$(realpath "$1")
root=$(realpath "$2")
jobs=${3:-24}
work=$(mktemp -d)
cd "$work"
host=
trap '[ -z "$host" ] || kill "$host" 2>/dev/null || true; rm -rf "$work"' EXIT
export ZKHOST_CACHE=$work/cache ZKHOST_HOST=unix:$work/data/zkhost.sock ZKHOST_ENGINE__DEVICES=cuda
circuits="sapling-spend sapling-output"

for name in $circuits; do
    folder=data/circuits/$name
    mkdir -p "$folder"
    cp "$root/guest-circuits/target/components/$name.wasm" "$folder/c.wasm"
    cp "$root/guest-circuits/$name/example-input.json" "$name.json"
    "$zkhost" setup "$folder/c.wasm" --out "$folder/k.zkimage" --insecure-seed 7 > /dev/null
    "$zkhost" prove "$folder/c.wasm" --key "$folder/k.zkimage" --input "$name.json" --out "$name.proof" \
        --public-out "$name.public.json" > /dev/null
    printf 'name = "%s"\ncomponent = { file = "c.wasm" }\nkey = { file = "k.zkimage" }\n' "$name" > "$folder/manifest.toml"
done
"$zkhost" doctor --data data

"$zkhost" serve --data data 2> log &
host=$!
until [ "$(grep -c 'circuit loaded' log)" = 2 ]; do
    kill -0 "$host" || { cat log; exit 1; }
    sleep 0.1
done
grep ' proves ' log

began=$(date +%s.%N)
clients=
for name in $circuits; do
    for job in $(seq "$jobs"); do
        "$zkhost" submit "$name" --input "$name.json" --key "$name-$job" --expect-public "$name.public.json" \
            --out "$name-$job.proof" > "$name-$job.txt" &
        clients="$clients $!"
    done
done
for client in $clients; do wait "$client"; done
echo "$((2 * jobs)) jobs in $(echo "$(date +%s.%N) $began" | awk '{ print $1 - $2 }') s"

for name in $circuits; do
    for job in $(seq "$jobs"); do
        "$zkhost" verify --key "data/circuits/$name/k.zkimage" --proof "$name-$job.proof" --public "$name.public.json" > /dev/null
    done
    cat "$name-$jobs.txt"
    "$zkhost" status "$(cut -d' ' -f1 "$name-$jobs.txt" | head -1)" --trace "$name.trace" > /dev/null
    "$zkhost" trace "$name.trace"
    # Kernels of the last job ran on a GPU.
    grep -q '"cat":"kernel"' "$name.trace"
done
kill "$host"
wait "$host"
grep -c ' ended ' log
echo "all proofs verify"

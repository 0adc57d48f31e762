#!/usr/bin/env bash
# Run every benchmark that needs no GPU, then print the table of this run's results.
set -euo pipefail
cd "$(dirname "$0")/.."
started=$(date -u +%Y-%m-%dT%H:%M:%S)
cargo bench --locked --package zkhost-benches
cargo run --quiet --locked --release --package zkhost-benches --bin table -- "$started"

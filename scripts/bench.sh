#!/usr/bin/env bash
# Run every benchmark that needs no GPU, then print the table of this run's results.
set -euo pipefail
cd "$(dirname "$0")/.."
started=$(date -u +%Y-%m-%dT%H:%M:%S)
cargo bench --locked --package zkhost-benches
# The provers we compare with are a workspace of their own, so that nobody else has to build them.
(cd benches/peers && cargo bench --locked)
cargo run --quiet --locked --release --package zkhost-benches --bin table -- "$started"

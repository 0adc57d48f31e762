#!/usr/bin/env bash
# Write the Zcash Sapling ceremony keys to build/sapling, once.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=build/sapling
if [ -f $folder/sapling-spend.params ] && [ -f $folder/sapling-output.params ]; then
    echo "Sapling keys: $folder"
    exit 0
fi
cargo run --quiet --locked --package sapling-keys -- $folder

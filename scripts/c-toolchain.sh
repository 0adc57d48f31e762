#!/usr/bin/env bash
# Make sure that clang 22 and its linker are here, for the guest circuit in C: any `clang` with the WebAssembly target and wide
# arithmetic would do, and Debian packages this one. Prints its name.
set -euo pipefail

if ! command -v clang-22 > /dev/null || ! command -v wasm-ld-22 > /dev/null; then
    sudo=$([ "$(id -u)" = 0 ] || echo sudo)
    $sudo apt-get -qq update >&2
    $sudo apt-get -qq install --no-install-recommends clang-22 lld-22 > /dev/null
fi
echo clang-22

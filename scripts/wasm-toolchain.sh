#!/usr/bin/env bash
# Make sure that some Rust on this machine can build wasm32-unknown-unknown, and say which.
#
# rustup's target is preferred. Where it cannot be had, Debian's rustc-web (with the standard library's source, built
# along with the guest) takes its place; `zkhost build` chooses in the same order.
set -euo pipefail

if rustup target list --installed 2>/dev/null | grep -qx wasm32-unknown-unknown; then
    echo "wasm toolchain: rustup's wasm32-unknown-unknown"
    exit 0
fi
if [ -x /usr/bin/cargo ] && dpkg -s rust-web-src rustc-web lld-22 >/dev/null 2>&1; then
    echo "wasm toolchain: Debian's rustc-web, building the standard library"
    exit 0
fi
if timeout 60 rustup target add wasm32-unknown-unknown >/dev/null 2>&1; then
    echo "wasm toolchain: rustup's wasm32-unknown-unknown, just added"
    exit 0
fi
echo "wasm toolchain: rustup has no wasm32-unknown-unknown to offer; installing Debian's rustc-web"
sudo=$([ "$(id -u)" = 0 ] || echo sudo)
$sudo apt-get update -qq
$sudo apt-get install -y -qq rustc-web cargo-web rust-web-src rust-web-llvm lld-22 >/dev/null
echo "wasm toolchain: Debian's rustc-web, building the standard library"

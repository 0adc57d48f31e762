# The commands a newcomer needs: `make demo`, `make test`, `make bench`. Each does all of its own set-up on a Debian
# machine that has Rust, a C compiler, and root (or sudo) with apt. `make help` lists the rest.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CUDA_VENV := .venv
CUDA_WHEELS := nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-cuda-runtime==13.0.96 \
	nvidia-cuda-cccl==13.0.85

# For each fuzz target.
FUZZ_SECONDS ?= 30

export CARGO_TERM_PROGRESS_WHEN ?= never
# Registers and spills of every kernel, as warnings of the build.
export ZKHOST_CUDA_REPORT ?= 1

.PHONY: help
help: ## List the targets.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

.PHONY: demo
demo: guests sapling-keys ## Prove and verify Zcash Sapling Spend and Output, from source to checked proof.
	scripts/demo.sh

.PHONY: test
test: lint wasm-toolchain sapling-keys circom-peers chromium ## Everything CI runs: format, lints, all tests.
	cargo test --workspace --locked --no-run
	ZKHOST=target/debug/zkhost scripts/build-guests.sh
	cargo test --workspace --locked
	cargo test --package zkhost-engine --features shuttle --test arena_shuttle --locked
	cd guest-circuits && cargo test --workspace --locked --target-dir ../target
	cd tests/arkworks && cargo test --locked --target-dir ../../target
	scripts/fuzz.sh $(FUZZ_SECONDS)

.PHONY: fuzz
fuzz: ## Every fuzz target for FUZZ_SECONDS; needs the tests' build of the command and the guests.
	scripts/fuzz.sh $(FUZZ_SECONDS)

.PHONY: soak
soak: guests ## The long rounds of tests that are short in `make test`: killed servers, a thousand jobs in one process.
	ZKHOST_KILL_ROUNDS=100 cargo test --package zkhost --test serve --locked -- killed
	ZKHOST_SOAK=1 cargo test --release --package zkhost-engine --test soak --locked

.PHONY: lint
lint: cuda-toolchain ## Formatting and lints; warnings are errors here.
	cargo fmt --all --check
	cd guest-circuits && cargo fmt --all --check
	cd tests/arkworks && cargo fmt --check
	cd fuzz && cargo fmt --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cd guest-circuits && cargo clippy --workspace --all-targets --locked --target-dir ../target -- -D warnings

.PHONY: bench
bench: guests sapling-keys circom-peers ## Benchmarks that need no GPU; appends to benches/results and prints a table.
	scripts/bench.sh

.PHONY: guests
guests: wasm-toolchain ## Build every guest circuit as a component.
	scripts/build-guests.sh

.PHONY: sapling-keys
sapling-keys: ## Write the Zcash ceremony keys to build/sapling.
	scripts/sapling-keys.sh

.PHONY: circom-peers
circom-peers: ## circom, circomlib, snarkjs, ZoKrates, solc and an EVM from npm, and the circuits of tests/circom compiled.
	scripts/circom-peers.sh

.PHONY: chromium
chromium: ## A browser without a screen, for the test of the dashboard.
	scripts/chromium.sh

.PHONY: wasm-toolchain
wasm-toolchain: ## A Rust that can build wasm: rustup's target where there is one, else Debian's packages.
	scripts/wasm-toolchain.sh

.PHONY: cuda-toolchain
cuda-toolchain: ## nvcc from PyPI wheels in .venv, if no nvcc is installed. No GPU is needed to compile.
	scripts/cuda-toolchain.sh $(CUDA_VENV) $(CUDA_WHEELS)

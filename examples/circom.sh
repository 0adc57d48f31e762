#!/usr/bin/env bash
# A circom circuit as it is: compiled by circom, keyed by snarkjs, proved by zkhost, and verified by snarkjs.
# Takes a minute, most of it snarkjs's ceremony. Run it from anywhere; it works in a folder of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/circom-peers.sh
# ZKHOST may name a command that is built already.
[ -n "${ZKHOST:-}" ] || cargo build --quiet --release --locked --package zkhost
zkhost=$(realpath "${ZKHOST:-${CARGO_TARGET_DIR:-target}/release/zkhost}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ln -s "$PWD/tests/circom/node_modules" "$work/node_modules"
cd "$work"

echo "== a circuit: I know two factors of a public number, neither of them 1"
cat > factors.circom << 'CIRCUIT'
pragma circom 2.0.0;

template Factors() {
    signal input p;
    signal input q;
    signal output product;
    signal inverse;
    inverse <-- (p - 1) * (q - 1) == 0 ? 0 : 1 / ((p - 1) * (q - 1));
    signal both <== (p - 1) * (q - 1);
    both * inverse === 1;
    product <== p * q;
}
component main = Factors();
CIRCUIT
echo '{"p": 641, "q": 6700417}' > input.json
npx circom2 factors.circom --r1cs --wasm --sym --prime bls12381

echo "== a key, by snarkjs"
npx snarkjs powersoftau new bls12-381 3 0.ptau > log
npx snarkjs powersoftau contribute 0.ptau 1.ptau --name=example "-e=$(head -c 32 /dev/urandom | base64)" >> log
npx snarkjs powersoftau prepare phase2 1.ptau 2.ptau >> log
npx snarkjs groth16 setup factors.r1cs 2.ptau 0.zkey >> log
npx snarkjs zkey contribute 0.zkey factors.zkey --name=example "-e=$(head -c 32 /dev/urandom | base64)" >> log
npx snarkjs zkey export verificationkey factors.zkey vk.json >> log

echo "== the proof, by zkhost"
"$zkhost" prove --r1cs factors.r1cs --witness-wasm factors_js/factors.wasm --key factors.zkey --input input.json \
    --out proof.json --public-out public.json

echo "== the verdict, by snarkjs"
cat public.json
npx snarkjs groth16 verify vk.json public.json proof.json

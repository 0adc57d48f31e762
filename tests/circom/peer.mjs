// snarkjs as the other side of a test. For each folder given, which holds circuit.wasm, input.json, circuit.zkey, and our
// proof.json and public.json: write snarkjs's witness, proof, public inputs and verifying key beside them, and its verdict on
// our proof under that key. One process for all: most of a snarkjs command is its start.
import { createRequire } from "node:module";
import { readFileSync, writeFileSync } from "node:fs";

const snarkjs = createRequire(import.meta.url)("snarkjs");
const read = (path) => JSON.parse(readFileSync(path));
const write = (path, value) => writeFileSync(path, JSON.stringify(value));

for (const folder of process.argv.slice(2)) {
    const at = (name) => `${folder}/${name}`;
    await snarkjs.wtns.calculate(read(at("input.json")), at("circuit.wasm"), at("snarkjs.wtns"));
    const { proof, publicSignals } = await snarkjs.groth16.prove(at("circuit.zkey"), at("snarkjs.wtns"));
    write(at("snarkjs-proof.json"), proof);
    write(at("snarkjs-public.json"), publicSignals);
    const vk = await snarkjs.zKey.exportVerificationKey(at("circuit.zkey"));
    write(at("snarkjs-vk.json"), vk);
    write(at("verdict.json"), await snarkjs.groth16.verify(vk, read(at("public.json")), read(at("proof.json"))));
}
// Its workers would keep the process alive.
process.exit(0);

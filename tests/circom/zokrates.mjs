// ZoKrates as the other side of a test. For each folder given, which holds circuit.zok and input.json:
//   zokrates.mjs make FOLDER...    compile, set up and prove: circuit.r1cs, witness.wtns, vk.json, proof.json
//   zokrates.mjs verify FOLDER...  judge our-proof.json under our-vk.json, and under vk.json, into verdict.json
import { readFileSync, writeFileSync } from "node:fs";
import { initialize } from "zokrates-js";

const zokrates = (await initialize()).withOptions({ backend: "ark", curve: "bls12_381", scheme: "g16" });
const [action, ...folders] = process.argv.slice(2);
for (const folder of folders) {
    const read = (name) => JSON.parse(readFileSync(`${folder}/${name}`));
    const write = (name, value) => writeFileSync(`${folder}/${name}`, value);
    if (action === "make") {
        const circuit = zokrates.compile(readFileSync(`${folder}/circuit.zok`, "utf8"), { snarkjs: true });
        const computed = zokrates.computeWitness(circuit, read("input.json"), { snarkjs: true });
        const keys = zokrates.setup(circuit.program);
        write("circuit.r1cs", circuit.snarkjs.program);
        write("witness.wtns", computed.snarkjs.witness);
        write("vk.json", JSON.stringify(keys.vk));
        write("proof.json", JSON.stringify(zokrates.generateProof(circuit.program, computed.witness, keys.pk)));
    } else {
        const verdicts = ["our-vk.json", "vk.json"].map((vk) => zokrates.verify(read(vk), read("our-proof.json")));
        write("verdict.json", JSON.stringify(verdicts));
    }
}

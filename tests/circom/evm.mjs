// An Ethereum node's compiler and virtual machine as the other side of a test. For each folder given, which holds Verifier.sol
// and calls (*.calldata): compile and deploy the contract by the rules of the hardfork Prague, make the calls, and write
// verdict.json: the bytes of code, and for each call what it returned, as a truth value, and its gas.
import { createRequire } from "node:module";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { Common, Hardfork, Mainnet } from "@ethereumjs/common";
import { createEVM } from "@ethereumjs/evm";
import { createAddressFromString, hexToBytes } from "@ethereumjs/util";

const GAS = 30_000_000n;
const solc = createRequire(import.meta.url)("solc");
const caller = createAddressFromString("0x" + "11".repeat(20));

function compile(source) {
    const settings = {
        evmVersion: "prague",
        optimizer: { enabled: true },
        outputSelection: { "*": { "*": ["evm.bytecode.object"] } },
    };
    const sources = { "Verifier.sol": { content: source } };
    const output = JSON.parse(solc.compile(JSON.stringify({ language: "Solidity", sources, settings })));
    const problems = output.errors ?? [];
    if (problems.length > 0) throw new Error(problems.map((problem) => problem.formattedMessage).join("\n"));
    return hexToBytes("0x" + output.contracts["Verifier.sol"].Groth16Verifier.evm.bytecode.object);
}

for (const folder of process.argv.slice(2)) {
    const common = new Common({ chain: Mainnet, hardfork: Hardfork.Prague });
    const evm = await createEVM({ common });
    const run = async (options) => {
        const { createdAddress, execResult } = await evm.runCall({ caller, gasLimit: GAS, ...options });
        if (execResult.exceptionError) throw new Error(`${folder}: ${execResult.exceptionError.error}`);
        return { createdAddress, ...execResult };
    };
    const { createdAddress: to, returnValue: code } = await run({ data: compile(readFileSync(`${folder}/Verifier.sol`, "utf8")) });
    const calls = {};
    for (const file of readdirSync(folder).filter((name) => name.endsWith(".calldata"))) {
        const { returnValue, executionGasUsed } = await run({ to, data: new Uint8Array(readFileSync(`${folder}/${file}`)) });
        if (returnValue.length !== 32) throw new Error(`${folder}/${file}: ${returnValue.length} bytes came back`);
        calls[file] = { accepted: returnValue[31] === 1, gas: Number(executionGasUsed) };
    }
    writeFileSync(`${folder}/verdict.json`, JSON.stringify({ code: code.length, calls }));
}
process.exit(0);

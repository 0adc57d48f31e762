//! A Solidity contract that verifies proofs under one key, by the precompiles of EIP-2537.
//!
//! It checks e(A, B) e(alpha, -beta) e(sum x_i IC_i, -gamma) e(C, -delta) = 1: the key's points are negated here, so the
//! contract needs no arithmetic of its own. The pairing precompile checks that A, B and C are in the subgroup. Written from
//! <https://eips.ethereum.org/EIPS/eip-2537>; calldata is that of [`super::eip2537`].

use super::eip2537::{PROOF_BYTES, write_g1, write_g2};
use crate::key::VerifierKey;
use crate::scalar::MODULUS;

/// Public inputs at most: each takes 128 bytes of the contract, which EIP-170 limits to 24,576.
pub const PUBLICS_MAX: usize = 160;

/// Why there is no contract for a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SolidityError {
    /// The key has too many public inputs.
    #[error(
        "the key is for {found} public inputs; a contract holds the points of {PUBLICS_MAX} at most (24,576 bytes, EIP-170): \
         make a circuit whose only public input is a hash of them"
    )]
    TooManyPublics {
        /// How many it is for.
        found: usize,
    },
}

/// Write the contract.
pub fn write_verifier(vk: &VerifierKey) -> Result<String, SolidityError> {
    let publics = vk.public_count();
    if publics > PUBLICS_MAX {
        return Err(SolidityError::TooManyPublics { found: publics });
    }
    let [r0, r1, r2, r3] = MODULUS;
    let constants = [
        ("ALPHA", write_g1(&vk.alpha_g1)),
        ("MINUS_BETA", write_g2(&-vk.beta_g2)),
        ("MINUS_GAMMA", write_g2(&-vk.gamma_g2)),
        ("MINUS_DELTA", write_g2(&-vk.delta_g2)),
        ("IC", vk.ic.iter().flat_map(write_g1).collect()),
    ];
    let constants: String = constants.iter().map(|(name, bytes)| constant(name, bytes)).collect();
    Ok(TEMPLATE
        .replace("{constants}", constants.trim_end())
        .replace("{publics}", &publics.to_string())
        .replace("{proof_bytes}", &PROOF_BYTES.to_string())
        .replace("{r}", &format!("0x{r3:016x}{r2:016x}{r1:016x}{r0:016x}")))
}

/// Bytes as a constant, a point of G1 on each line.
fn constant(name: &str, bytes: &[u8]) -> String {
    let lines = bytes.chunks(128).map(|line| format!("        hex\"{}\"", hex::encode(line)));
    format!("    bytes private constant {name} =\n{};\n", lines.collect::<Vec<_>>().join("\n"))
}

const TEMPLATE: &str = r#"// SPDX-License-Identifier: MIT OR Apache-2.0
// Written by `zkhost convert`: do not edit, convert the verifying key again.
pragma solidity ^0.8.25;

/// Verifies Groth16 proofs over BLS12-381 by the precompiles of EIP-2537.
contract Groth16Verifier {
    /// The order of the scalar field.
    uint256 private constant R = {r};
    /// Public inputs.
    uint256 private constant INPUTS = {publics};
    /// Products of points of G1 and scalars, summed.
    address private constant G1_MSM = address(0x0c);
    /// Whether a product of pairings is one.
    address private constant PAIRING_CHECK = address(0x0f);

    // Points: coordinates of 64 bytes, big-endian, in G2 c0 before c1.
{constants}

    /// Whether a proof, A, B and C as EIP-2537 encodes points, is valid for these public inputs. It is malleable: anyone can
    /// make another valid proof from it, so its bytes are no identity.
    function verify(bytes calldata proof, uint256[] calldata inputs) external view returns (bool) {
        if (proof.length != {proof_bytes} || inputs.length != INPUTS) return false;
        bytes memory ic = IC;
        bytes memory terms = new bytes(160 * (INPUTS + 1));
        for (uint256 i = 0; i <= INPUTS; i++) {
            uint256 x = i == 0 ? 1 : inputs[i - 1];
            // x and x + R would be one input with two names.
            if (x >= R) return false;
            assembly ("memory-safe") {
                let to := add(add(terms, 32), mul(i, 160))
                mcopy(to, add(add(ic, 32), mul(i, 128)), 128)
                mstore(add(to, 128), x)
            }
        }
        (bool ok, bytes memory sum) = G1_MSM.staticcall(terms);
        // Where there is no precompile the call succeeds and returns nothing.
        if (!ok || sum.length != 128) return false;
        return pairingHolds(bytes.concat(proof[:384], ALPHA, MINUS_BETA), sum, proof[384:]);
    }

    /// Whether the product of four pairings is one: of the first two, of the inputs and -gamma, of C and -delta.
    function pairingHolds(bytes memory first, bytes memory sum, bytes calldata c) private view returns (bool) {
        bytes memory last = bytes.concat(sum, MINUS_GAMMA, c, MINUS_DELTA);
        (bool ok, bytes memory product) = PAIRING_CHECK.staticcall(bytes.concat(first, last));
        return ok && product.length == 32 && bytes32(product) == bytes32(uint256(1));
    }
}
"#;

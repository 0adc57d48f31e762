//! Other tools' files of proofs and verifying keys, by the name of their format.

use crate::error::{Code, Failure};
use crate::files;
use anyhow::{Context, Result};
use clap::ValueEnum;
use std::path::Path;
use zkhost_groth16::formats::arkworks::Compression;
use zkhost_groth16::formats::{
    Subgroup, Trailer, arkworks, eip2537, gnark, known_params, plutus, read_params, read_vk, read_zkey, snarkjs,
    solidity, write_vk, zokrates,
};
use zkhost_groth16::key::{Phase2, VerifierKey, check_verifying_key};
use zkhost_groth16::{Proof, Scalar, VerifyingKey};

/// Bytes of a file of one proof and its public inputs at most.
const PROOF_BYTES_MAX: u64 = 1 << 28;

/// Formats of a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProofFormat {
    /// 192 bytes, A, B, C compressed: bellman, Zcash, Filecoin, arkworks, Sui
    Bellman,
    /// 384 bytes, A, B, C uncompressed
    ArkworksUncompressed,
    /// 244 bytes: bellman's and an empty list of commitments
    Gnark,
    /// snarkjs's JSON
    Snarkjs,
    /// ZoKrates's JSON, which has the public inputs too
    Zokrates,
    /// 512 bytes, coordinates padded as in EIP-2537
    Eip2537,
    /// Calldata of the contract that `convert vk --to solidity` writes, public inputs included
    Calldata,
    /// JSON with Plutus's and Aiken's compressed points in hexadecimal
    Plutus,
}

/// A proof as a file has it.
pub struct ProofFile {
    /// The proof.
    pub proof: Proof,
    /// Its public inputs, if the format has them.
    pub publics: Option<Vec<Scalar>>,
}

impl ProofFormat {
    /// Whether files of this format hold public inputs.
    pub fn has_publics(self) -> bool {
        matches!(self, Self::Zokrates | Self::Calldata)
    }

    /// Read a proof.
    pub fn read(self, path: &Path) -> Result<ProofFile> {
        let bytes = files::read(path, "the proof", PROOF_BYTES_MAX)?;
        let only = |proof| ProofFile { proof, publics: None };
        let both = |(proof, publics)| ProofFile { proof, publics: Some(publics) };
        let file = match self {
            Self::Bellman => Proof::from_bytes(&bytes).map(only),
            Self::ArkworksUncompressed => arkworks::read_proof(&bytes, Compression::Uncompressed).map(only),
            Self::Gnark => gnark::read_proof(&bytes).map(only),
            Self::Snarkjs => snarkjs::read_proof(&bytes).map(only),
            Self::Zokrates => zokrates::read_proof(&bytes).map(both),
            Self::Eip2537 => eip2537::read_proof(&bytes).map(only),
            Self::Calldata => eip2537::read_calldata(&bytes).map(both),
            Self::Plutus => plutus::read_proof(&bytes).map(only),
        };
        file.with_context(|| format!("proof {}", path.display()))
    }

    /// A proof in this format; `publics` are needed where [`Self::has_publics`].
    pub fn write(self, proof: &Proof, publics: &[Scalar]) -> Vec<u8> {
        match self {
            Self::Bellman => proof.to_bytes().to_vec(),
            Self::ArkworksUncompressed => arkworks::write_proof(proof, Compression::Uncompressed),
            Self::Gnark => gnark::write_proof(proof),
            Self::Snarkjs => snarkjs::write_proof(proof).into_bytes(),
            Self::Zokrates => zokrates::write_proof(proof, publics).into_bytes(),
            Self::Eip2537 => eip2537::write_proof(proof),
            Self::Calldata => eip2537::write_calldata(proof, publics),
            Self::Plutus => plutus::write_proof(proof).into_bytes(),
        }
    }
}

/// Formats of a verifying key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum VkFormat {
    /// bellman's .vk
    Bellman,
    /// The verifying key within bellman's .params (to read only)
    Params,
    /// The verifying key within snarkjs's .zkey (to read only)
    Zkey,
    /// snarkjs's JSON
    Snarkjs,
    /// ZoKrates's JSON
    Zokrates,
    /// arkworks, points compressed: Sui, IOTA
    Arkworks,
    /// arkworks, points uncompressed
    ArkworksUncompressed,
    /// JSON of Aiken's `ak-381` for Plutus V3
    Plutus,
    /// A contract for Ethereum's EIP-2537 (to write only)
    Solidity,
}

/// A verifying key as a file has it.
pub enum VkFile {
    /// With beta and delta in G1.
    Whole(VerifyingKey),
    /// Without them.
    Verifier(VerifierKey),
}

impl VkFile {
    /// What verifies.
    pub fn verifier(&self) -> VerifierKey {
        match self {
            Self::Whole(vk) => VerifierKey::from(vk),
            Self::Verifier(vk) => vk.clone(),
        }
    }

    fn check(&self, phase2: Phase2) -> Result<()> {
        match self {
            Self::Whole(vk) => check_verifying_key(vk, phase2)?,
            Self::Verifier(vk) => vk.check_phase2(phase2)?,
        }
        Ok(())
    }
}

impl VkFormat {
    /// Read a verifying key. One with an identity is refused, as is one without a second phase, unless that is allowed.
    pub fn read(self, path: &Path, phase2: Phase2) -> Result<VkFile> {
        let bytes = files::map(path, "the verifying key")?;
        let named = || format!("verifying key {}", path.display());
        let file = match self {
            Self::Bellman => read_vk(&bytes).map(VkFile::Whole),
            Self::Params => {
                let pinned = known_params(bytes.len() as u64).map(|known| Trailer::Pinned(known.sha256));
                let params = read_params(&bytes, Subgroup::CheckedBefore, pinned.unwrap_or(Trailer::None));
                params.map(|params| VkFile::Whole(params.vk))
            }
            Self::Zkey => read_zkey(&bytes).map(|zkey| VkFile::Whole(zkey.vk)),
            Self::Snarkjs => snarkjs::read_vk(&bytes).map(VkFile::Verifier),
            Self::Zokrates => zokrates::read_vk(&bytes).map(VkFile::Verifier),
            Self::Arkworks => arkworks::read_vk(&bytes, Compression::Compressed).map(VkFile::Verifier),
            Self::ArkworksUncompressed => arkworks::read_vk(&bytes, Compression::Uncompressed).map(VkFile::Verifier),
            Self::Plutus => plutus::read_vk(&bytes).map(VkFile::Verifier),
            Self::Solidity => {
                let message = "a Solidity contract cannot be read back; convert from the key it was written from";
                return Err(Failure::new(Code::Usage, message).into());
            }
        };
        let file = file.with_context(named)?;
        file.check(phase2).with_context(named)?;
        Ok(file)
    }

    /// A verifying key in this format. What would be lost, or is missing, is an error, the former unless `allow_loss`.
    pub fn write(self, file: &VkFile, allow_loss: bool) -> Result<Vec<u8>> {
        let vk = file.verifier();
        let refused = |message: &str| Err(Failure::new(Code::Usage, message).into());
        if let (Self::Bellman, VkFile::Whole(vk)) = (self, file) {
            let mut out = vec![];
            write_vk(vk, &mut out)?;
            return Ok(out);
        }
        if matches!(file, VkFile::Whole(_)) && !allow_loss && self != Self::Solidity {
            return refused(
                "beta and delta in G1 would be lost: that format does not have them; only provers use them, so give \
                 --allow-loss if the key is for verifying",
            );
        }
        Ok(match self {
            Self::Bellman => {
                return refused(
                    "bellman's format has beta and delta in G1, which the file does not have; convert from the .zkey or \
                     .params that the key belongs to",
                );
            }
            Self::Params | Self::Zkey => {
                return refused(
                    "a proving key cannot be made from a verifying key; see `zkhost setup` and `import-key`",
                );
            }
            Self::Snarkjs => snarkjs::write_vk(&vk).into_bytes(),
            Self::Zokrates => zokrates::write_vk(&vk).into_bytes(),
            Self::Arkworks => arkworks::write_vk(&vk, Compression::Compressed),
            Self::ArkworksUncompressed => arkworks::write_vk(&vk, Compression::Uncompressed),
            Self::Plutus => plutus::write_vk(&vk).into_bytes(),
            Self::Solidity => solidity::write_verifier(&vk)?.into_bytes(),
        })
    }
}

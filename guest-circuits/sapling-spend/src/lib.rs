//! The Spend circuit of Zcash Sapling, from `sapling-crypto` as published.

use bls12_381::Scalar;
use group::GroupEncoding;
use sapling_crypto::circuit::{Spend, ValueCommitmentOpening};
use sapling_crypto::constants::PROOF_GENERATION_KEY_GENERATOR;
use sapling_crypto::keys::FullViewingKey;
use sapling_crypto::value::NoteValue;
use sapling_crypto::{PaymentAddress, ProofGenerationKey};
use serde::Deserialize;
use zkhost_guest::bellman::Circuit as _;
use zkhost_guest::{Circuit, Error, HexBytes, Info, NoParams, Scope, Synthesis};

/// The depth of the note commitment tree.
const TREE_DEPTH: usize = 32;

/// The circuit of one spend description.
pub struct SaplingSpend(Spend);

/// What a spend proof is about. Scalars and points are 32 little-endian bytes in hexadecimal.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The value of the note, in zatoshi.
    value: u64,
    /// The randomness of the value commitment.
    rcv: HexBytes<32>,
    /// The spend validating key.
    ak: HexBytes<32>,
    /// The nullifier private key.
    nsk: HexBytes<32>,
    /// The address of the note: diversifier and transmission key, raw.
    address: HexBytes<43>,
    /// The randomness of the note commitment.
    rcm: HexBytes<32>,
    /// The randomness of the signature's key.
    alpha: HexBytes<32>,
    /// From the leaf up: the sibling, and whether it is on the left.
    path: Vec<PathElement>,
    /// The root of the tree.
    anchor: HexBytes<32>,
}

/// One level of the path from a note commitment to the root.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathElement {
    /// The node beside the one on the path.
    sibling: HexBytes<32>,
    /// Whether the sibling is the left one of the two.
    sibling_is_left: bool,
}

impl Circuit for SaplingSpend {
    type Field = Scalar;
    type Params = NoParams;
    type Input = Input;

    fn info() -> Info {
        Info {
            name: "sapling-spend",
            version: env!("CARGO_PKG_VERSION"),
            about: "Zcash Sapling Spend: the spender may spend a note that is in the tree under the anchor, and the \
                    value commitment, nullifier and randomised key are those of that note.",
            params_help: "",
            input_help: r#"{"value": zatoshi, "rcv": hex of 32 bytes, "ak": hex of 32 bytes, "nsk": hex of 32 bytes, "address": hex of 43 bytes, "rcm": hex of 32 bytes, "alpha": hex of 32 bytes, "path": [32 x {"sibling": hex of 32 bytes, "sibling_is_left": boolean}], "anchor": hex of 32 bytes}"#,
        }
    }

    fn blank(_params: &NoParams) -> Result<Self, Error> {
        Ok(SaplingSpend(Spend {
            value_commitment_opening: None,
            proof_generation_key: None,
            payment_address: None,
            commitment_randomness: None,
            ar: None,
            auth_path: vec![None; TREE_DEPTH],
            anchor: None,
        }))
    }

    fn open(_params: &NoParams, input: Input) -> Result<Self, Error> {
        let address = PaymentAddress::from_bytes(&input.address.0)
            .ok_or_else(|| expected("address", "a Sapling payment address"))?;
        if input.path.len() != TREE_DEPTH {
            let found = input.path.len();
            return Err(Error::BadInput(format!("field `path`: a list of {TREE_DEPTH} was expected, not of {found}")));
        }
        let path = input.path.iter().enumerate().map(|(level, element)| {
            let sibling = scalar(&format!("path[{level}].sibling"), &element.sibling)?;
            Ok(Some((sibling, element.sibling_is_left)))
        });
        Ok(SaplingSpend(Spend {
            value_commitment_opening: Some(ValueCommitmentOpening {
                value: NoteValue::from_raw(input.value),
                randomness: jubjub_scalar("rcv", &input.rcv)?,
            }),
            proof_generation_key: Some(proof_generation_key(&input)?),
            payment_address: Some(address),
            commitment_randomness: Some(jubjub_scalar("rcm", &input.rcm)?),
            ar: Some(jubjub_scalar("alpha", &input.alpha)?),
            auth_path: path.collect::<Result<_, Error>>()?,
            anchor: Some(scalar("anchor", &input.anchor)?),
        }))
    }

    fn synthesize(&self, _scope: Scope, cs: &mut Synthesis<'_, Scalar>) -> Result<(), Error> {
        Ok(self.0.clone().synthesize(cs)?)
    }
}

/// The key of the published parts ak and nsk.
///
/// sapling-crypto decodes an ak on its own only inside the crate; as part of a full viewing key (ak, nk, ovk) anyone may.
fn proof_generation_key(input: &Input) -> Result<ProofGenerationKey, Error> {
    let nsk = jubjub_scalar("nsk", &input.nsk)?;
    let mut viewing_key = [0; 96];
    viewing_key[..32].copy_from_slice(&input.ak.0);
    viewing_key[32..64].copy_from_slice(&(PROOF_GENERATION_KEY_GENERATOR * nsk).to_bytes());
    let ak = FullViewingKey::read(&viewing_key[..])
        .map_err(|_| expected("ak", "a point of the prime-order subgroup of Jubjub, not the identity,"))?
        .vk
        .ak()
        .clone();
    ProofGenerationKey::from_parts(ak, nsk)
        .ok_or_else(|| expected("nsk", "a key whose incoming viewing key is not zero"))
}

fn scalar(field: &str, bytes: &HexBytes<32>) -> Result<Scalar, Error> {
    Option::from(Scalar::from_bytes(&bytes.0))
        .ok_or_else(|| expected(field, "a scalar of BLS12-381 below its modulus, little-endian,"))
}

fn jubjub_scalar(field: &str, bytes: &HexBytes<32>) -> Result<jubjub::Fr, Error> {
    Option::from(jubjub::Fr::from_bytes(&bytes.0))
        .ok_or_else(|| expected(field, "a scalar of Jubjub below its modulus, little-endian,"))
}

fn expected(field: &str, what: &str) -> Error {
    Error::BadInput(format!("field `{field}`: {what} was expected"))
}

zkhost_guest::export_circuit!(SaplingSpend);

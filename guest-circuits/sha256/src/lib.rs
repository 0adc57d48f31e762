//! Knowledge of a preimage of a SHA-256 digest, from bellpepper's gadget.

use serde::Deserialize;
use zkhost_guest::bellpepper_core::boolean::Boolean;
use zkhost_guest::bellpepper_core::{ConstraintSystem, SynthesisError};
use zkhost_guest::gadgets::{boolean::bits_from_limbs, multipack, sha256::sha256};
use zkhost_guest::{Circuit, Error, Fr, Info, Scope, Synthesis};

/// The most bytes a preimage may have: some 256 blocks, seven million constraints.
const PREIMAGE_BYTES_MAX: usize = 16 * 1024;

/// The circuit: the bytes of the preimage, or none of them.
pub struct Sha256Preimage {
    preimage: Vec<Option<u8>>,
}

/// What the constraint system depends on.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The length of the preimage in bytes.
    preimage_bytes: usize,
}

impl Default for Params {
    fn default() -> Self {
        Params { preimage_bytes: 64 }
    }
}

/// What a proof is about.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The preimage in hexadecimal; secret.
    preimage: String,
}

impl Circuit for Sha256Preimage {
    type Field = Fr;
    type Params = Params;
    type Input = Input;

    fn info() -> Info {
        Info {
            name: "sha256",
            version: env!("CARGO_PKG_VERSION"),
            about: "Knowledge of a preimage of a SHA-256 digest. The digest is public: 256 bits, each byte from its most \
                    significant bit, packed little-endian into two elements of 254 and 2 bits.",
            params_help: r#"{"preimage_bytes": 64}"#,
            input_help: r#"{"preimage": hex of preimage_bytes bytes}"#,
        }
    }

    fn blank(params: &Params) -> Result<Self, Error> {
        Ok(Sha256Preimage { preimage: vec![None; checked_length(params)?] })
    }

    fn open(params: &Params, input: Input) -> Result<Self, Error> {
        let length = checked_length(params)?;
        let digits: Option<Vec<u8>> =
            input.preimage.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
        let digits = digits.filter(|digits| digits.len() == 2 * length).ok_or_else(|| {
            Error::BadInput(format!(
                "field `preimage`: {length} bytes as {} hexadecimal digits were expected",
                2 * length
            ))
        })?;
        Ok(Sha256Preimage { preimage: digits.chunks_exact(2).map(|pair| Some(pair[0] << 4 | pair[1])).collect() })
    }

    fn synthesize(&self, _scope: Scope, cs: &mut Synthesis<'_, Fr>) -> Result<(), Error> {
        let bits = self.preimage_bits(cs)?;
        let digest = sha256(cs.namespace(|| "sha256"), &bits)?;
        multipack::pack_into_inputs(cs.namespace(|| "digest"), &digest)?;
        Ok(())
    }
}

impl Sha256Preimage {
    /// The preimage as bits, each byte from its most significant bit.
    fn preimage_bits(&self, cs: &mut Synthesis<'_, Fr>) -> Result<Vec<Boolean>, SynthesisError> {
        let words = self.preimage.chunks(8).map(|bytes| {
            let byte = |(i, byte): (usize, &Option<u8>)| Some(u64::from((*byte)?.reverse_bits()) << (8 * i));
            bytes.iter().enumerate().map(byte).try_fold(0, |word, byte| Some(word | byte?))
        });
        let words: Option<Vec<u64>> = words.collect();
        bits_from_limbs(cs.namespace(|| "preimage"), 8 * self.preimage.len(), words.as_deref())
    }
}

fn checked_length(params: &Params) -> Result<usize, Error> {
    if params.preimage_bytes > PREIMAGE_BYTES_MAX {
        return Err(Error::BadParams(format!("field `preimage_bytes`: at most {PREIMAGE_BYTES_MAX} was expected")));
    }
    Ok(params.preimage_bytes)
}

zkhost_guest::export_circuit!(Sha256Preimage);

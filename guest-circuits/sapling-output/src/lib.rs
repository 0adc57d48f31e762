//! The Output circuit of Zcash Sapling, from `sapling-crypto` as published.

use bls12_381::Scalar;
use sapling_crypto::PaymentAddress;
use sapling_crypto::circuit::{Output, ValueCommitmentOpening};
use sapling_crypto::value::NoteValue;
use serde::Deserialize;
use zkhost_guest::bellman::Circuit as _;
use zkhost_guest::{Circuit, Error, HexBytes, Info, NoParams, Scope, Synthesis};

/// The circuit of one output description.
pub struct SaplingOutput(Output);

/// What an output proof is about. Scalars are 32 little-endian bytes in hexadecimal.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The value of the note, in zatoshi.
    value: u64,
    /// The randomness of the value commitment.
    rcv: HexBytes<32>,
    /// The recipient: diversifier and transmission key, raw.
    address: HexBytes<43>,
    /// The randomness of the note commitment.
    rcm: HexBytes<32>,
    /// The ephemeral secret key.
    esk: HexBytes<32>,
}

impl Circuit for SaplingOutput {
    type Field = Scalar;
    type Params = NoParams;
    type Input = Input;

    fn info() -> Info {
        Info {
            name: "sapling-output",
            version: env!("CARGO_PKG_VERSION"),
            about: "Zcash Sapling Output: the value commitment, ephemeral key and note commitment of a new note are \
                    those of one note.",
            params_help: "",
            input_help: r#"{"value": zatoshi, "rcv": hex of 32 bytes, "address": hex of 43 bytes, "rcm": hex of 32 bytes, "esk": hex of 32 bytes}"#,
        }
    }

    fn blank(_params: &NoParams) -> Result<Self, Error> {
        Ok(SaplingOutput(Output {
            value_commitment_opening: None,
            payment_address: None,
            commitment_randomness: None,
            esk: None,
        }))
    }

    fn open(_params: &NoParams, input: Input) -> Result<Self, Error> {
        let address = PaymentAddress::from_bytes(&input.address.0)
            .ok_or_else(|| Error::BadInput("field `address`: a Sapling payment address was expected".into()))?;
        Ok(SaplingOutput(Output {
            value_commitment_opening: Some(ValueCommitmentOpening {
                value: NoteValue::from_raw(input.value),
                randomness: scalar("rcv", &input.rcv)?,
            }),
            payment_address: Some(address),
            commitment_randomness: Some(scalar("rcm", &input.rcm)?),
            esk: Some(scalar("esk", &input.esk)?),
        }))
    }

    fn synthesize(&self, _scope: Scope, cs: &mut Synthesis<'_, Scalar>) -> Result<(), Error> {
        Ok(self.0.clone().synthesize(cs)?)
    }
}

fn scalar(field: &str, bytes: &HexBytes<32>) -> Result<jubjub::Fr, Error> {
    Option::from(jubjub::Fr::from_bytes(&bytes.0)).ok_or_else(|| {
        Error::BadInput(format!("field `{field}`: a scalar of Jubjub below its modulus was expected, little-endian"))
    })
}

zkhost_guest::export_circuit!(SaplingOutput);

//! Public inputs in files.
//!
//! A file whose name ends in `.json` holds one array of scalars, or an array of them for each of several proofs. A scalar
//! is a string, decimal or hexadecimal after `0x`, or a JSON number if it is a whole number below 2^64. Any other file holds
//! scalars of 32 bytes, little-endian. Scalars that are not below the modulus r are refused: v and v + r would be one
//! public input with two names.

use crate::error::{Code, Failure};
use crate::files;
use anyhow::Result;
use serde_json::Value;
use std::path::Path;
use zkhost_groth16::Scalar;
use zkhost_groth16::scalar::{
    Limbs, NumberError, from_canonical, limbs_from_le_bytes, limbs_to_le_bytes, parse_limbs, to_canonical, to_hex,
};

/// Bytes of a file of public inputs at most.
const PUBLICS_BYTES_MAX: u64 = 1 << 30;

/// Read the public inputs of `proofs` proofs, `count` each.
pub fn read(path: &Path, proofs: usize, count: usize) -> Result<Vec<Vec<Scalar>>> {
    let bytes = files::read(path, "the public inputs", PUBLICS_BYTES_MAX)?;
    let parsed = if is_json(path) { parse_json(&bytes) } else { parse_raw(&bytes, proofs) };
    let bad = |problem: String| Failure::new(Code::File, format!("public inputs {}: {problem}", path.display()));
    let publics = parsed.map_err(bad)?;
    if publics.len() != proofs {
        return Err(bad(format!("they are for {} proofs, there are {proofs}", publics.len())).into());
    }
    if let Some((index, inputs)) = publics.iter().enumerate().find(|(_, inputs)| inputs.len() != count) {
        let which = if proofs == 1 { String::new() } else { format!(" for proof {index}") };
        let problem = format!("{} public inputs{which}, the verifying key is for {count}", inputs.len());
        return Err(bad(problem).into());
    }
    Ok(publics)
}

/// Read the public inputs of one proof, however many they are.
pub fn read_one(path: &Path) -> Result<Vec<Scalar>> {
    let bytes = files::read(path, "the public inputs", PUBLICS_BYTES_MAX)?;
    let parsed = if is_json(path) { parse_json(&bytes) } else { parse_bytes(&bytes).map(|publics| vec![publics]) };
    let bad = |problem: String| Failure::new(Code::File, format!("public inputs {}: {problem}", path.display()));
    match <[Vec<Scalar>; 1]>::try_from(parsed.map_err(bad)?) {
        Ok([publics]) => Ok(publics),
        Err(several) => Err(bad(format!("they are for {} proofs, one was expected", several.len())).into()),
    }
}

/// Write public inputs in the form that the file's name asks for.
pub fn write(path: &Path, publics: &[Vec<Scalar>]) -> Result<()> {
    let bytes = match is_json(path) {
        true => format!("{}\n", to_json(publics)).into_bytes(),
        false => publics.iter().flatten().flat_map(|scalar| limbs_to_le_bytes(&to_canonical(scalar))).collect(),
    };
    files::write(path, &bytes)
}

/// The JSON form: an array for one proof, an array of arrays for several.
pub fn to_json(publics: &[Vec<Scalar>]) -> Value {
    let array = |inputs: &Vec<Scalar>| inputs.iter().map(|scalar| Value::from(to_hex(scalar))).collect::<Value>();
    match publics {
        [only] => array(only),
        several => several.iter().map(array).collect(),
    }
}

/// Whether a file's name asks for JSON.
pub fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json")
}

/// Scalars of 32 bytes each, little-endian.
pub fn parse_bytes(bytes: &[u8]) -> Result<Vec<Scalar>, String> {
    let (chunks, rest) = bytes.as_chunks::<32>();
    if !rest.is_empty() {
        let length = bytes.len();
        return Err(format!("{length} bytes are no multiple of 32; name a file in JSON with the ending .json"));
    }
    let scalars = chunks.iter().enumerate().map(|(index, bytes)| reduced(limbs_from_le_bytes(bytes), index));
    scalars.collect()
}

fn parse_raw(bytes: &[u8], proofs: usize) -> Result<Vec<Vec<Scalar>>, String> {
    let scalars = parse_bytes(bytes)?;
    if scalars.len() % proofs != 0 {
        return Err(format!("{} scalars cannot be divided among {proofs} proofs", scalars.len()));
    }
    let each = scalars.len() / proofs;
    Ok((0..proofs).map(|proof| scalars[proof * each..][..each].to_vec()).collect())
}

fn parse_json(bytes: &[u8]) -> Result<Vec<Vec<Scalar>>, String> {
    let form = "an array of scalars was expected, or an array of such arrays";
    let value: Value = serde_json::from_slice(bytes).map_err(|error| format!("{error}; {form}"))?;
    let Value::Array(entries) = value else { return Err(form.into()) };
    let nested = entries.iter().any(Value::is_array);
    if !nested {
        return Ok(vec![parse_array(&entries)?]);
    }
    let array = |(proof, entry): (usize, &Value)| match entry {
        Value::Array(entries) => parse_array(entries).map_err(|error| format!("proof {proof}: {error}")),
        _ => Err(format!("entry {proof} is no array, others are; {form}")),
    };
    entries.iter().enumerate().map(array).collect()
}

fn parse_array(entries: &[Value]) -> Result<Vec<Scalar>, String> {
    let parse = |(index, entry): (usize, &Value)| {
        let limbs = match entry {
            Value::String(text) => parse_limbs(text),
            Value::Number(number) => number.as_u64().map(|low| [low, 0, 0, 0]).ok_or(NumberError::Form),
            _ => Err(NumberError::Form),
        };
        let problem = "a decimal or 0x string was expected (a JSON number only if whole and below 2^64)";
        match limbs {
            Err(NumberError::Form) => Err(format!("scalar {index}: {problem}")),
            Err(NumberError::Large) => Err(above(index)),
            Ok(limbs) => reduced(limbs, index),
        }
    };
    entries.iter().enumerate().map(parse).collect()
}

fn reduced(limbs: Limbs, index: usize) -> Result<Scalar, String> {
    from_canonical(&limbs).ok_or_else(|| above(index))
}

fn above(index: usize) -> String {
    format!("scalar {index} is not below the modulus r of BLS12-381's scalar field")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULUS: &str = "52435875175126190479447740508185965837690552500527637822603658699938581184513";

    /// The scalars of a JSON text, in hexadecimal without leading zeros.
    fn check(json: &str) -> Result<Vec<Vec<String>>, String> {
        let publics = parse_json(json.as_bytes())?;
        let short = |scalar: &Scalar| format!("0x{}", to_hex(scalar)[2..].trim_start_matches('0'));
        Ok(publics.iter().map(|inputs| inputs.iter().map(short).collect()).collect())
    }

    #[test]
    fn decimal_hexadecimal_and_small_numbers_are_read() {
        assert_eq!(check(r#"["10", "0xA", 10, "0x0a"]"#).unwrap(), [["0xa", "0xa", "0xa", "0xa"]]);
        assert_eq!(check("[18446744073709551615]").unwrap(), [["0xffffffffffffffff"]]);
        assert_eq!(check("[[1], [2]]").unwrap(), [["0x1"], ["0x2"]]);
        assert_eq!(check("[]").unwrap(), [[""; 0]]);
    }

    #[test]
    fn the_largest_scalar_is_read_and_the_modulus_is_not() {
        let largest = MODULUS.replace("513", "512");
        assert_eq!(check(&format!("[\"{largest}\"]")).unwrap()[0][0].len(), 66);
        for text in [MODULUS.into(), format!("0x1{}", "0".repeat(64)), "9".repeat(200), format!("{MODULUS}0")] {
            let error = check(&format!("[1, \"{text}\"]")).unwrap_err();
            assert!(error.contains("scalar 1 is not below"), "{error}");
        }
    }

    /// circom issue 407: values at or above the prime, and odd spellings, were taken silently.
    #[test]
    fn circom_i407_odd_spellings_of_numbers_are_refused() {
        for text in [r#""-1""#, "-1", "1e3", "1.0", r#""1e3""#, r#""""#, r#""0x""#, r#"" 1""#, "null", r#""1_0""#] {
            let error = check(&format!("[{text}]")).unwrap_err();
            assert!(error.contains("scalar 0"), "{text}: {error}");
        }
    }

    #[test]
    fn raw_scalars_divide_among_proofs() {
        let mut bytes = [0; 128];
        bytes[64] = 3;
        let publics = parse_raw(&bytes, 2).unwrap();
        assert_eq!(publics, [[Scalar::from(0), Scalar::from(0)], [Scalar::from(3), Scalar::from(0)]]);
        assert!(parse_raw(&bytes, 3).unwrap_err().contains("cannot be divided"));
        assert!(parse_raw(&bytes[1..], 2).unwrap_err().contains("multiple of 32"));
        assert!(parse_raw(&[0xff; 32], 1).unwrap_err().contains("scalar 0"));
    }
}

//! Public inputs as the interface and the store have them.

use zkhost_groth16::Scalar;
pub use zkhost_groth16::scalar::to_hex;
use zkhost_groth16::scalar::{from_canonical, limbs_to_le_bytes, parse_limbs, to_canonical};

/// The scalar of `0x` and up to 64 digits; a value not below the modulus is refused, never reduced.
pub fn from_hex(text: &str) -> Result<Scalar, String> {
    let shown = || text.chars().take(80).collect::<String>();
    let digits = text.strip_prefix("0x").filter(|digits| (1..=64).contains(&digits.len()));
    let limbs = digits.and_then(|_| parse_limbs(text).ok());
    let limbs = limbs.ok_or_else(|| format!("`{}`: expected 0x and 1 to 64 hexadecimal digits", shown()))?;
    from_canonical(&limbs)
        .ok_or_else(|| format!("`{}` is not below the modulus r of BLS12-381's scalar field", shown()))
}

/// Several partitions' scalars; errors say which.
pub fn all_from_hex(publics: &[Vec<String>]) -> Result<Vec<Vec<Scalar>>, String> {
    let scalar = |partition: usize, (index, text): (usize, &String)| {
        from_hex(text).map_err(|error| format!("public input {index} of partition {partition}: {error}"))
    };
    let partition = |(partition, publics): (usize, &Vec<String>)| {
        publics.iter().enumerate().map(|entry| scalar(partition, entry)).collect()
    };
    publics.iter().enumerate().map(partition).collect()
}

/// 32 bytes each, little-endian.
pub fn to_bytes(publics: &[Vec<Scalar>]) -> Vec<u8> {
    publics.iter().flatten().flat_map(|scalar| limbs_to_le_bytes(&to_canonical(scalar))).collect()
}

/// Recorded scalars in hexadecimal, divided among partitions.
pub fn bytes_to_hex(bytes: &[u8], partitions: usize) -> Vec<Vec<String>> {
    let all: Vec<_> = bytes
        .as_chunks::<32>()
        .0
        .iter()
        .map(|bytes| {
            let digits: Vec<u8> = bytes.iter().rev().copied().collect();
            format!("0x{}", hex::encode(digits))
        })
        .collect();
    let each = all.len() / partitions.max(1);
    (0..partitions).map(|partition| all[partition * each..][..each].to_vec()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// snarkjs issue 436: v and v + r were both accepted.
    #[test]
    fn snarkjs_i436_scalars_are_read_as_written_and_not_above_the_modulus() {
        assert_eq!(from_hex("0xA").unwrap(), Scalar::from(10));
        assert_eq!(to_hex(&Scalar::from(10)), format!("0x{}a", "0".repeat(63)));
        let modulus = "0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001";
        assert!(from_hex(&modulus.replace("00001", "00000")).is_ok());
        for text in [modulus, "", "0x", "10", "0xg", "0x 1", "-0x1", &format!("0x1{}", "0".repeat(64))] {
            from_hex(text).unwrap_err();
        }
        let publics = vec![vec![Scalar::from(1), Scalar::from(2)], vec![Scalar::from(3), Scalar::from(4)]];
        let texts = bytes_to_hex(&to_bytes(&publics), 2);
        assert_eq!(all_from_hex(&texts).unwrap(), publics);
        assert!(all_from_hex(&[vec!["0x1".into()], vec!["7".into()]]).unwrap_err().contains("input 0 of partition 1"));
    }
}

//! The verifier: real proofs pass, anything flipped does not, and a batch says the same as its members.

mod common;

use blstrs::G1Projective;
use common::{MainChainProof, fixture, main_chain_proofs, scalars};
use ff::Field;
use group::Group;
use zkhost_groth16::formats::read_vk;
use zkhost_groth16::{PreparedVerifyingKey, Proof, Scalar, VerifyError};

fn prepared(path: &str) -> PreparedVerifyingKey {
    PreparedVerifyingKey::from(&read_vk(&fixture(path)).unwrap())
}

fn key_of(circuit: &str) -> PreparedVerifyingKey {
    prepared(if circuit == "sapling-spend" { "sapling/spend.vk" } else { "sapling/output.vk" })
}

/// Whether these bytes are accepted as a proof.
fn accepts(key: &PreparedVerifyingKey, proof: &[u8], publics: &[Scalar]) -> bool {
    Proof::from_bytes(proof).is_ok_and(|proof| key.verify(&proof, publics).is_ok())
}

#[test]
fn every_main_chain_proof_verifies() {
    let proofs = main_chain_proofs();
    assert_eq!(proofs.len(), 45);
    for MainChainProof { circuit, bytes, publics, .. } in &proofs {
        assert!(accepts(&key_of(circuit), bytes, publics));
    }
}

#[test]
fn proofs_of_other_provers_verify() {
    for name in
        ["edge_nopublic", "edge_pow2", "edge_range", "mul2", "snarkjs-edge_pow2", "snarkjs-edge_range", "snarkjs-mul2"]
    {
        let file = |extension| fixture(&format!("bellman-golden/{name}.{extension}"));
        let key = prepared(&format!("bellman-golden/{name}.vk"));
        assert!(accepts(&key, &file("proof"), &scalars(&file("public"))), "{name}");
    }
    let golden = (fixture("sapling/golden-output.proof"), scalars(&fixture("sapling/golden-output.public")));
    assert!(accepts(&prepared("sapling/output.vk"), &golden.0, &golden.1));
}

#[test]
fn no_proof_verifies_with_one_bit_flipped() {
    let proofs = main_chain_proofs();
    let MainChainProof { circuit, bytes, publics, .. } = &proofs[0];
    let key = key_of(circuit);
    for bit in 0..8 * bytes.len() {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(!accepts(&key, &bytes, publics), "bit {bit}");
    }
    // Of every other proof some bit, another each time.
    for (n, MainChainProof { circuit, bytes, publics, .. }) in proofs.iter().enumerate() {
        let (mut bytes, bit) = (bytes.clone(), n * 17 % 1536);
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(!accepts(&key_of(circuit), &bytes, publics), "proof {n}, bit {bit}");
    }
}

#[test]
fn no_proof_verifies_with_another_public_input() {
    for (n, MainChainProof { circuit, bytes, publics, .. }) in main_chain_proofs().iter().enumerate() {
        let mut publics = publics.clone();
        let at = n % publics.len();
        publics[at] += Scalar::from(2).pow_vartime([n as u64 % 255]);
        assert!(!accepts(&key_of(circuit), bytes, &publics), "proof {n}, public {at}");
    }
}

#[test]
fn no_proof_verifies_with_one_bit_of_the_key_flipped() {
    let bytes = fixture("sapling/output.vk");
    let proofs = main_chain_proofs();
    let MainChainProof { bytes: proof, publics, .. } = proofs.iter().find(|p| p.circuit == "sapling-output").unwrap();
    // beta and delta in G1, bytes 96..192 and 576..672, matter to provers only, but must be points all the same.
    for bit in (0..8 * bytes.len()).step_by(13) {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let accepted = read_vk(&bytes).is_ok_and(|vk| accepts(&PreparedVerifyingKey::from(&vk), proof, publics));
        assert!(!accepted, "bit {bit}");
    }
}

#[test]
fn the_wrong_number_of_public_inputs_is_named() {
    let key = prepared("bellman-golden/edge_pow2.vk");
    let proof = Proof::from_bytes(&fixture("bellman-golden/edge_pow2.proof")).unwrap();
    let publics = scalars(&fixture("bellman-golden/edge_pow2.public"));
    for found in [0, 1, 3, 100] {
        let given: Vec<Scalar> = publics.iter().cycle().take(found).copied().collect();
        assert_eq!(key.verify(&proof, &given), Err(VerifyError::PublicCount { expected: 2, found }));
    }
}

/// Verify the spend proofs in one batch, one of them spoilt.
fn check_batch(count: usize, spoilt: Option<usize>) {
    let mut proofs: Vec<_> =
        main_chain_proofs().into_iter().filter(|p| p.circuit == "sapling-spend").take(count).collect();
    if let Some(index) = spoilt {
        proofs[index].publics[0] += Scalar::ONE;
    }
    let claims: Vec<_> = proofs.iter().map(|p| (&p.proof, &p.publics[..])).collect();
    let expected = match spoilt {
        None => Ok(()),
        Some(index) => Err(VerifyError::InBatch { index, cause: Box::new(VerifyError::Invalid) }),
    };
    assert_eq!(key_of("sapling-spend").verify_batch(&claims), expected, "{count} proofs, {spoilt:?} spoilt");
}

#[test]
fn a_batch_of_true_proofs_verifies() {
    for count in [0, 1, 2, 7, 8, 9, 20] {
        check_batch(count, None);
    }
}

#[test]
fn a_batch_names_its_false_proof() {
    for index in [0, 8, 19] {
        check_batch(20, Some(index));
    }
}

#[test]
fn false_proofs_that_cancel_do_not_pass_a_batch() {
    let mut proofs = main_chain_proofs().into_iter().filter(|p| p.circuit == "sapling-output");
    let (mut one, mut two) = (proofs.next().unwrap(), proofs.next().unwrap());
    // Without random coefficients the two errors would sum to nothing.
    let error = G1Projective::generator();
    one.proof.c = (error + one.proof.c).into();
    two.proof.c = (-error + two.proof.c).into();
    let claims = [(&one.proof, &one.publics[..]), (&two.proof, &two.publics[..])];
    assert!(key_of("sapling-output").verify_batch(&claims).is_err());
}

//! arkworks as it runs: it takes our keys and proofs and those of other tools once encoded for it, and we take its own.

use ark_bls12_381::{Bls12_381, Fr};
use ark_ff::PrimeField;
use ark_groth16::{Groth16, Proof as ArkProof, VerifyingKey as ArkKey, prepare_verifying_key};
use ark_relations::lc;
use ark_relations::r1cs::{ConstraintSynthesizer, ConstraintSystemRef, SynthesisError};
use ark_serialize::{CanonicalDeserialize, CanonicalSerialize, Compress, Validate};
use ark_snark::SNARK;
use ark_std::rand::SeedableRng;
use ark_std::rand::rngs::StdRng;
use std::sync::Arc;
use zkhost_groth16::formats::arkworks::Compression::{Compressed, Uncompressed};
use zkhost_groth16::formats::arkworks::{Compression, read_proof, read_vk, write_proof, write_vk};
use zkhost_groth16::formats::{read_r1cs, read_wtns, read_zkey, snarkjs, zokrates};
use zkhost_groth16::key::{Phase2, VerifierKey};
use zkhost_groth16::scalar::{from_canonical, to_canonical};
use zkhost_groth16::{Assignment, CpuProver, PreparedVerifyingKey, Proof, Prover, ProvingKey, Scalar};

fn fixture(path: &str) -> Vec<u8> {
    let path = format!("{}/../fixtures/{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn compress(compression: Compression) -> Compress {
    if compression == Compressed { Compress::Yes } else { Compress::No }
}

/// arkworks reads our encoding of a key and a proof, checks every point, writes the same bytes and accepts the statement,
/// and no other.
fn check_accepted(vk: &VerifierKey, proof: &Proof, publics: &[Scalar]) {
    for compression in [Compressed, Uncompressed] {
        let (key_bytes, proof_bytes) = (write_vk(vk, compression), write_proof(proof, compression));
        let compress = compress(compression);
        let key = ArkKey::<Bls12_381>::deserialize_with_mode(&key_bytes[..], compress, Validate::Yes).unwrap();
        let proof = ArkProof::<Bls12_381>::deserialize_with_mode(&proof_bytes[..], compress, Validate::Yes).unwrap();
        assert_eq!(serialize(&key, compression), key_bytes);
        assert_eq!(serialize(&proof, compression), proof_bytes);

        let mut publics: Vec<_> = publics.iter().map(|x| Fr::new(ark_ff::BigInt(to_canonical(x)))).collect();
        let key = prepare_verifying_key(&key);
        assert!(Groth16::<Bls12_381>::verify_proof(&key, &proof, &publics).unwrap());
        if let Some(first) = publics.first_mut() {
            *first += Fr::from(1);
            assert!(!Groth16::<Bls12_381>::verify_proof(&key, &proof, &publics).unwrap());
        }
    }
}

fn serialize(value: &impl CanonicalSerialize, compression: Compression) -> Vec<u8> {
    let mut bytes = vec![];
    value.serialize_with_mode(&mut bytes, compress(compression)).unwrap();
    bytes
}

#[test]
fn keys_and_proofs_of_snarkjs_zokrates_and_ours_are_accepted() {
    for name in ["edge_noconstraint", "edge_nopublic", "edge_pow2", "edge_range", "mul2"] {
        let file = |file: &str| fixture(&format!("circom/{name}/{file}"));
        let r1cs = Arc::new(read_r1cs(&file("circuit.r1cs")).unwrap().r1cs);
        let z = read_wtns(&file("witness.wtns")).unwrap();
        let (publics, aux) = z[1..].split_at(r1cs.public_count as usize);
        let key = ProvingKey::import_zkey(read_zkey(&file("circuit.zkey")).unwrap(), &r1cs, Phase2::Required).unwrap();
        let vk = VerifierKey::from(&key.vk);
        check_accepted(&vk, &snarkjs::read_proof(&file("proof.json")).unwrap(), publics);
        let prover = CpuProver::new(Arc::new(key), r1cs.clone()).unwrap();
        check_accepted(&vk, &prover.prove(&Assignment::from_values(publics, aux)).unwrap(), publics);
    }
    let (proof, publics) = zokrates::read_proof(&fixture("zokrates/proof.json")).unwrap();
    check_accepted(&zokrates::read_vk(&fixture("zokrates/vk.json")).unwrap(), &proof, &publics);
}

/// A chain x -> x^2 + k of these many steps, k and every tenth value public.
#[derive(Clone)]
struct Chain {
    steps: usize,
    x: Fr,
    k: Fr,
}

impl Chain {
    fn publics(&self) -> Vec<Fr> {
        let mut x = self.x;
        let mut publics = vec![self.k];
        for step in 0..self.steps {
            x = x * x + self.k;
            publics.extend((step % 10 == 9).then_some(x));
        }
        publics
    }
}

impl ConstraintSynthesizer<Fr> for Chain {
    fn generate_constraints(self, cs: ConstraintSystemRef<Fr>) -> Result<(), SynthesisError> {
        let k = cs.new_input_variable(|| Ok(self.k))?;
        let mut value = self.x;
        let mut x = cs.new_witness_variable(|| Ok(value))?;
        for step in 0..self.steps {
            value = value * value + self.k;
            let next = match step % 10 == 9 {
                true => cs.new_input_variable(|| Ok(value))?,
                false => cs.new_witness_variable(|| Ok(value))?,
            };
            cs.enforce_constraint(lc!() + x, lc!() + x, lc!() + next - k)?;
            x = next;
        }
        Ok(())
    }
}

#[test]
fn keys_and_proofs_of_arkworks_verify_here_and_are_written_as_they_were() {
    let mut rng = StdRng::seed_from_u64(7);
    for steps in [1, 9, 10, 64] {
        let chain = Chain { steps, x: Fr::from(3), k: -Fr::from(5) };
        let (pk, vk) = Groth16::<Bls12_381>::circuit_specific_setup(chain.clone(), &mut rng).unwrap();
        let proof = Groth16::<Bls12_381>::prove(&pk, chain.clone(), &mut rng).unwrap();
        let publics: Vec<Scalar> =
            chain.publics().iter().map(|x| from_canonical(&x.into_bigint().0).unwrap()).collect();
        for compression in [Compressed, Uncompressed] {
            let (vk, proof) = (serialize(&vk, compression), serialize(&proof, compression));
            let (key, statement) = (read_vk(&vk, compression).unwrap(), read_proof(&proof, compression).unwrap());
            PreparedVerifyingKey::from(&key).verify(&statement, &publics).unwrap();
            assert_eq!((write_vk(&key, compression), write_proof(&statement, compression)), (vk, proof));
            check_accepted(&key, &statement, &publics);
        }
    }
}

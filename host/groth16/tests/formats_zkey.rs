//! snarkjs's proving keys: its own are read, proved by and bound to their circuits, ours are read back, damage is named.

mod common;
#[path = "common/points.rs"]
mod points;

use common::{fixture, random_circuit, record, scalars};
use ff::Field;
use group::Curve;
use points::{g1_outside, g2_outside};
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};
use zkhost_groth16::assignment::Assignment;
use zkhost_groth16::formats::{
    DecodeError, Problem, ZkeyExportError, read_r1cs, read_sym, read_vk, read_wtns, read_zkey, write_zkey,
};
use zkhost_groth16::key::{KeyError, Phase2, RootGenerator};
use zkhost_groth16::points::{Point, PointError};
use zkhost_groth16::prover::reference;
use zkhost_groth16::r1cs::{MatrixId, R1cs};
use zkhost_groth16::scalar::{MODULUS, limbs_to_le_bytes};
use zkhost_groth16::setup::{ToxicWaste, setup};
use zkhost_groth16::{CpuProver, G1Point, G2Point, HBasis, PreparedVerifyingKey, Proof, Prover, ProvingKey, Scalar};

const CIRCUITS: [&str; 5] = ["mul2", "edge_pow2", "edge_range", "edge_nopublic", "edge_noconstraint"];

fn circom(name: &str, file: &str) -> Vec<u8> {
    fixture(&format!("circom/{name}/{file}"))
}

fn circuit(name: &str) -> R1cs {
    read_r1cs(&circom(name, "circuit.r1cs")).unwrap().r1cs
}

fn key(r1cs: &R1cs) -> ProvingKey {
    setup(r1cs, &ToxicWaste::insecure_from_seed(7), HBasis::OddCoset).unwrap()
}

fn import(bytes: &[u8], r1cs: &R1cs) -> Result<ProvingKey, KeyError> {
    ProvingKey::import_zkey(read_zkey(bytes).unwrap(), r1cs, Phase2::Required)
}

fn zkey(key: &ProvingKey, r1cs: &R1cs) -> Vec<u8> {
    let mut out = vec![];
    write_zkey(key, r1cs, &mut out).unwrap();
    out
}

/// Where each section's bytes lie.
fn sections(bytes: &[u8]) -> Vec<(u32, std::ops::Range<usize>)> {
    let (mut at, mut out) = (12, vec![]);
    while at < bytes.len() {
        let id = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let length = u64::from_le_bytes(bytes[at + 4..at + 12].try_into().unwrap()) as usize;
        out.push((id, at + 12..at + 12 + length));
        at += 12 + length;
    }
    out
}

fn section(bytes: &[u8], id: u32) -> std::ops::Range<usize> {
    sections(bytes).into_iter().find(|(found, _)| *found == id).unwrap().1
}

/// The sections of a file with the bytes of one of them replaced.
fn with_section(bytes: &[u8], id: u32, new: &[u8]) -> Vec<u8> {
    let mut out = bytes[..12].to_vec();
    for (found, range) in sections(bytes) {
        let body = if found == id { new } else { &bytes[range] };
        out.extend([&found.to_le_bytes()[..], &(body.len() as u64).to_le_bytes(), body].concat());
    }
    out
}

/// co-snarks I10, arkworks I65 and circom-compat I35, snarkjs O7: keys of snarkjs are proved by their own root and H query,
/// at sizes where any other fails.
#[test]
fn co_snarks_i10_keys_of_snarkjs_give_proofs_that_their_verifying_keys_take() {
    for name in CIRCUITS {
        let (r1cs, z) = (circuit(name), read_wtns(&circom(name, "witness.wtns")).unwrap());
        let key = import(&circom(name, "circuit.zkey"), &r1cs).unwrap();
        assert_eq!((key.root, key.h_basis, key.proven), (RootGenerator::Five, HBasis::OddCoset, false));
        let (publics, aux) = z[1..].split_at(r1cs.public_count as usize);
        let prover = CpuProver::new(Arc::new(key.clone()), Arc::new(r1cs)).unwrap();
        let proof = prover.prove(&Assignment::from_values(publics, aux)).unwrap();
        if ["mul2", "edge_pow2", "edge_range"].contains(&name) {
            let vk = read_vk(&fixture(&format!("bellman-golden/snarkjs-{name}.vk"))).unwrap();
            assert_eq!((&vk.alpha_g1, &vk.ic), (&key.vk.alpha_g1, &key.vk.ic), "{name}");
            let verifier = PreparedVerifyingKey::from(&vk);
            verifier.verify(&proof, publics).unwrap();
            // And snarkjs's own proof by the key that was read.
            let theirs = Proof::from_bytes(&fixture(&format!("bellman-golden/snarkjs-{name}.proof"))).unwrap();
            let publics = scalars(&fixture(&format!("bellman-golden/snarkjs-{name}.public")));
            PreparedVerifyingKey::from(&key.vk).verify(&theirs, &publics).unwrap();
        }
    }
}

/// The same key with a monomial H query, H_k = Z_c eta^k sum over j of omega^jk P_j, by the definition.
fn naive_monomial(key: &ProvingKey) -> ProvingKey {
    let n = 1u64 << key.log2_domain;
    let eta = key.root.root_of_unity(key.log2_domain + 1);
    let coefficient = |k: u64| {
        let term = |(j, p): (u64, &G1Point)| {
            blstrs::G1Affine::from(*p) * -(eta.pow_vartime([k + 2 * j * k]) * Scalar::from(2))
        };
        let sum: blstrs::G1Projective = (0..).zip(key.h.iter()).map(term).sum();
        G1Point::from(sum.to_affine())
    };
    let h: Vec<G1Point> = (0..n - 1).map(coefficient).collect();
    ProvingKey { h_basis: HBasis::Monomial, h: h.into(), ..key.clone() }
}

/// The twin: Groth16 by the reference prover from the monomial form of the key.
fn check_against_reference(r1cs: &R1cs, z: &[Scalar]) {
    let key = key(r1cs);
    let monomial = naive_monomial(&key);
    let (publics, aux) = z[1..].split_at(r1cs.public_count as usize);
    let (r, s) = (Scalar::from(27134), Scalar::from(17146));
    let expected = reference::prove_with_fixed_blinding_for_tests(&monomial, r1cs, z, r, s);
    for key in [key, monomial] {
        let prover = CpuProver::new(Arc::new(key), Arc::new(r1cs.clone())).unwrap();
        let witness = Assignment::from_values(publics, aux);
        assert_eq!(prover.prove_with_fixed_blinding_for_tests(&witness, r, s).unwrap(), expected);
        prover.prove(&witness).unwrap();
    }
}

#[test]
fn the_odd_coset_gives_the_reference_provers_bytes() {
    for (publics, aux, rows) in [(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 3, 2), (2, 5, 12), (3, 9, 13), (0, 30, 63)] {
        let (r1cs, z) = random_circuit(rows + 3, publics, aux, rows);
        check_against_reference(&r1cs, &z);
    }
}

fn check_round_trip(r1cs: &R1cs) {
    let key = key(r1cs);
    let bytes = zkey(&key, r1cs);
    let again = import(&bytes, r1cs).unwrap();
    assert_eq!((&again.vk, again.shape, again.log2_domain), (&key.vk, key.shape, key.log2_domain));
    assert_eq!((&again.a_density, &again.b_density), (&key.a_density, &key.b_density));
    let g1 = |key: &ProvingKey| [&key.a, &key.b_g1, &key.h, &key.l].map(|points| points.to_vec());
    assert_eq!((g1(&again), again.b_g2.to_vec()), (g1(&key), key.b_g2.to_vec()));
    assert_eq!(zkey(&again, r1cs), bytes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn keys_of_ours_are_read_back(seed: u64, publics in 0u64..4, aux in 0u64..9, rows in 1u64..20) {
        check_round_trip(&random_circuit(seed, publics, aux, rows).0);
    }
}

/// icicle I169: dense queries with infinity nowhere, first, last and everywhere; and variables in no row at all.
#[test]
fn icicle_i169_infinity_anywhere_in_the_dense_queries() {
    let one = Scalar::ONE;
    let [a_only, b_first, none] = [
        record(1, 2, &[[vec![(1, one), (2, one), (3, one)], vec![(0, one)], vec![(1, one)]]]),
        record(1, 2, &[[vec![], vec![(0, one), (3, one)], vec![]], [vec![(1, one)], vec![(2, one)], vec![]]]),
        record(2, 3, &[[vec![], vec![], vec![]], [vec![], vec![], vec![]]]),
    ];
    for r1cs in [a_only, b_first, none] {
        check_round_trip(&r1cs);
        let z: Vec<Scalar> = (0..r1cs.variables()).map(|i| Scalar::from(u64::from(i == 0))).collect();
        check_against_reference(&r1cs, &z);
    }
}

#[test]
fn sections_come_in_any_order() {
    let (r1cs, _) = random_circuit(1, 2, 5, 9);
    let bytes = zkey(&key(&r1cs), &r1cs);
    let mut reversed = bytes[..12].to_vec();
    for (id, range) in sections(&bytes).into_iter().rev() {
        reversed.extend([&id.to_le_bytes()[..], &(range.len() as u64).to_le_bytes(), &bytes[range]].concat());
    }
    assert_eq!(zkey(&import(&reversed, &r1cs).unwrap(), &r1cs), bytes);
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    for name in CIRCUITS {
        let bytes = circom(name, "circuit.zkey");
        for length in 0..bytes.len() {
            assert!(read_zkey(&bytes[..length]).is_err(), "{name}, {length}");
        }
        assert!(read_zkey(&[&bytes[..], &[0]].concat()).is_err());
        for (id, range) in sections(&bytes) {
            // A section that ends too early, in a file that is otherwise whole. The contributions are not taken apart.
            for missing in
                [1, range.len() / 2].into_iter().filter(|&missing| id != 10 && missing > 0 && missing <= range.len())
            {
                let shorter = with_section(&bytes, id, &bytes[range.start..range.end - missing]);
                assert!(read_zkey(&shorter).is_err(), "{name}, section {id}, {missing} bytes");
            }
            let mut without = bytes[..12].to_vec();
            for (other, range) in sections(&bytes).into_iter().filter(|(other, _)| *other != id) {
                without.extend([&other.to_le_bytes()[..], &(range.len() as u64).to_le_bytes(), &bytes[range]].concat());
            }
            without[8..12].copy_from_slice(&9u32.to_le_bytes());
            let refused = read_zkey(&without).err().unwrap();
            assert_eq!(refused.problem, Problem::NoSection, "{name}, section {id}");
        }
    }
}

/// snarkjs I183: a file that lost its end says which section is cut.
#[test]
fn snarkjs_i183_a_truncated_key_names_the_section() {
    let refused = read_zkey(&fixture("negative/truncated.zkey")).err().unwrap();
    assert!(matches!(refused.problem, Problem::SectionLength { .. }), "{refused}");
    assert_eq!(refused.section, "C query");
}

/// snarkjs O2, zeto I186: snarkjs calls a key without a second phase fine.
#[test]
fn snarkjs_o2_a_key_without_phase_2_is_refused_unless_that_is_allowed() {
    let bytes = fixture("negative/no-phase2-contribution.zkey");
    // A key for mul2.
    let r1cs = circuit("mul2");
    assert!(matches!(import(&bytes, &r1cs), Err(KeyError::NoPhase2)));
    let allowed = ProvingKey::import_zkey(read_zkey(&bytes).unwrap(), &r1cs, Phase2::MayBeMissingForTests);
    assert!(allowed.is_ok());
}

/// What is said of a key with these bytes of one section overwritten.
fn check_damage(id: u32, at: usize, new: &[u8], index: Option<u64>, expected: impl Fn(&Problem) -> bool) {
    static GOOD: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let (r1cs, _) = random_circuit(5, 2, 5, 9);
        zkey(&key(&r1cs), &r1cs)
    });
    let mut bytes = GOOD.clone();
    let start = section(&bytes, id).start + at;
    bytes[start..start + new.len()].copy_from_slice(new);
    let refused = read_zkey(&bytes).err().unwrap();
    assert!(expected(&refused.problem) && refused.index == index, "section {id}: {refused}");
}

/// supra_seal I32, rust-fil-proofs I1185: a bad point is named.
#[test]
fn supra_seal_i32_a_bad_point_is_named() {
    let g1 = |point: blstrs::G1Affine| bytemuck::bytes_of(&G1Point::from(point)).to_vec();
    let outside = g1(g1_outside(blstrs::G1Affine::default()));
    let g2_outside = bytemuck::bytes_of(&G2Point::from(g2_outside())).to_vec();
    let point = |expected: PointError| move |problem: &Problem| *problem == Problem::Point(expected);
    for id in [5, 6, 8, 9] {
        check_damage(id, 2 * 96, &outside, Some(2), point(PointError::NotInSubgroup));
        check_damage(id, 3 * 96, &[0xff; 96], Some(3), point(PointError::Encoding));
        check_damage(id, 96, &[1], Some(1), point(PointError::NotOnCurve));
    }
    check_damage(7, 2 * 192, &g2_outside, Some(2), point(PointError::NotInSubgroup));
    check_damage(7, 2 * 192, &[0xff; 192], Some(2), point(PointError::Encoding));
    check_damage(3, 96, &outside, Some(1), point(PointError::NotInSubgroup));
    // Infinity has its place in A, B and L only.
    check_damage(3, 0, &[0; 96], Some(0), point(PointError::Infinity));
    check_damage(9, 96, &[0; 96], Some(1), point(PointError::Infinity));
    const ALPHA: usize = 4 + 48 + 4 + 32 + 12;
    check_damage(2, ALPHA, &[0; 96], None, point(PointError::Infinity));
    check_damage(2, ALPHA, &outside, None, point(PointError::NotInSubgroup));
    check_damage(2, ALPHA + 2 * 96, &[0; 192], None, point(PointError::Infinity));
}

#[test]
fn a_header_or_coefficient_that_cannot_be_is_named() {
    let unexpected =
        |expected: &'static str| move |p: &Problem| matches!(p, Problem::Unexpected { what, .. } if *what == expected);
    check_damage(1, 0, &[2], None, unexpected("the protocol (1 is Groth16)"));
    check_damage(2, 4, &[0], None, |p| *p == Problem::OtherCurve);
    check_damage(2, 0, &[32], None, |p| *p == Problem::OtherCurve);
    check_damage(2, 4 + 48 + 4, &[0], None, |p| *p == Problem::OtherField);
    const COUNTS: usize = 4 + 48 + 4 + 32;
    check_damage(2, COUNTS, &[0; 4], None, unexpected("the count of variables"));
    check_damage(2, COUNTS, &[0xff; 4], None, unexpected("the count of variables"));
    check_damage(2, COUNTS + 4, &8u32.to_le_bytes(), None, unexpected("the count of public inputs"));
    check_damage(2, COUNTS + 8, &[0; 4], None, unexpected("the domain's size"));
    check_damage(2, COUNTS + 8, &[3, 0, 0, 0], None, unexpected("the domain's size"));
    let disagrees = |p: &Problem| matches!(p, Problem::Disagrees { .. });
    check_damage(2, COUNTS, &9u32.to_le_bytes(), None, disagrees);
    check_damage(2, COUNTS + 4, &1u32.to_le_bytes(), None, disagrees);
    // gnark I476: an H list of another length than the domain.
    check_damage(2, COUNTS + 8, &32u32.to_le_bytes(), None, disagrees);
    check_damage(4, 0, &[0xff; 4], None, disagrees);
    check_damage(4, 4 + 44, &[2, 0, 0, 0], Some(1), unexpected("the matrix"));
    check_damage(4, 4 + 4, &16u32.to_le_bytes(), Some(0), unexpected("the row"));
    check_damage(4, 4 + 8, &8u32.to_le_bytes(), Some(0), unexpected("the variable"));
    check_damage(4, 4 + 12, &limbs_to_le_bytes(&MODULUS), Some(0), |p| *p == Problem::Unreduced);
}

/// maci I443: hours of proving with the wrong key.
#[test]
fn maci_i443_a_key_of_another_circuit_is_refused() {
    let (r1cs, _) = random_circuit(5, 2, 5, 9);
    let bytes = zkey(&key(&r1cs), &r1cs);
    let check = |other: &R1cs, expected: fn(&KeyError) -> bool| {
        let refused = import(&bytes, other).err().unwrap();
        assert!(expected(&refused), "{refused}");
    };
    for (publics, aux, rows) in [(1, 6, 9), (2, 6, 9), (2, 5, 20)] {
        check(&random_circuit(5, publics, aux, rows).0, |e| matches!(e, KeyError::Count { .. }));
    }
    check(&random_circuit(6, 2, 5, 9).0, |e| matches!(e, KeyError::Matrix { matrix: MatrixId::A, row: 0 }));
    // One coefficient of the last row of B.
    let mut other = r1cs.clone();
    let terms = &mut other.matrices[1].coefficients;
    *terms.last_mut().unwrap() = (terms.last().unwrap() + 1) % r1cs.dictionary.len() as u32;
    check(&other, |e| matches!(e, KeyError::Matrix { matrix: MatrixId::B, row: 8 }));
}

#[test]
fn a_query_that_lacks_a_point_or_has_one_too_many_is_refused() {
    let r1cs = record(1, 2, &[[vec![(2, Scalar::ONE)], vec![(3, Scalar::ONE)], vec![(1, Scalar::ONE)]]]);
    let bytes = zkey(&key(&r1cs), &r1cs);
    let point = G1Point::from(blstrs::G1Affine::from(<blstrs::G1Projective as group::Group>::generator()));
    let check = |id, variable: usize, point: G1Point, expected: KeyError| {
        let mut bytes = bytes.clone();
        let start = section(&bytes, id).start + 96 * variable;
        bytes[start..start + 96].copy_from_slice(bytemuck::bytes_of(&point));
        assert_eq!(import(&bytes, &r1cs).err().unwrap(), expected);
    };
    let density = |query, variable, infinite| KeyError::Density { query, variable, infinite };
    check(5, 2, G1Point::INFINITY, density("A query", 2, true));
    check(5, 3, point, density("A query", 3, false));
    check(6, 3, G1Point::INFINITY, density("B query in G1", 3, true));
    check(6, 0, point, density("B query in G1", 0, false));
}

#[test]
fn only_keys_in_snarkjs_basis_are_written_for_it() {
    let (r1cs, _) = random_circuit(1, 1, 2, 3);
    for basis in [HBasis::Monomial, HBasis::QuotientPoints] {
        let other = setup(&r1cs, &ToxicWaste::insecure_from_seed(7), basis).unwrap();
        assert!(matches!(write_zkey(&other, &r1cs, vec![]), Err(ZkeyExportError::HBasis)));
    }
    let (other, _) = random_circuit(2, 1, 2, 3);
    assert!(matches!(write_zkey(&key(&r1cs), &other, vec![]), Err(ZkeyExportError::Key(_))));
}

/// snarkjs I183 and circom's writer (O6): lengths have 64 bits, and one that passes the file's end is refused with both numbers.
/// The contributions are the section whose contents no reader needs, so a file of 5 GiB costs no memory here.
#[test]
fn snarkjs_o6_sections_over_4_gib_and_offsets_beyond_them() {
    use std::os::unix::fs::FileExt;
    const LARGE: u64 = (5 << 30) + 12;
    let (name, r1cs) = ("edge_pow2", circuit("edge_pow2"));
    let bytes = circom(name, "circuit.zkey");
    let file = tempfile::tempfile().unwrap();
    file.write_all_at(&bytes[..12], 0).unwrap();
    let frame = |id: u32, length: u64| [&id.to_le_bytes()[..], &length.to_le_bytes()].concat();
    file.write_all_at(&frame(10, LARGE), 12).unwrap();
    let mut at = 24 + LARGE;
    for (id, range) in sections(&bytes).into_iter().filter(|(id, _)| *id != 10) {
        file.write_all_at(&[&frame(id, range.len() as u64)[..], &bytes[range.clone()]].concat(), at).unwrap();
        at += 12 + range.len() as u64;
    }
    // SAFETY: the file is this test's own and is not written to while it is mapped.
    let map = unsafe { memmap2::Mmap::map(&file).unwrap() };
    assert!(import(&map, &r1cs).is_ok());
    let refused = read_zkey(&map[..map.len() - 1]).err().unwrap();
    assert!(matches!(refused.problem, Problem::SectionLength { .. }), "{refused}");
    drop(map);

    // The length's lower half alone, and circom's: eight digits of the hexadecimal number in the first word.
    for length in [LARGE & 0xffff_ffff, LARGE >> 4, LARGE >> 4 | (LARGE & 15) << 32] {
        file.write_all_at(&frame(10, length), 12).unwrap();
        // SAFETY: as above.
        let map = unsafe { memmap2::Mmap::map(&file).unwrap() };
        assert!(read_zkey(&map).is_err(), "{length}");
    }
}

#[test]
fn names_of_wires_are_circoms() {
    let sym = read_sym(&circom("mul2", "circuit.sym")).unwrap();
    let text = String::from_utf8(circom("mul2", "circuit.sym")).unwrap();
    assert_eq!(text.lines().count(), sym.names().count());
    assert_eq!(sym.name(1), Some("main.c"));
    assert_eq!((sym.name(0), sym.name(99)), (None, None));
    let check = |text: &[u8], index: Option<u64>| {
        let refused: DecodeError = read_sym(text).err().unwrap();
        assert_eq!(refused.index, index, "{refused}");
    };
    check(b"1,1,0,main.a\n2,x,0,main.b\n", Some(1));
    check(b"1,1,0\n", Some(0));
    check(b"1,-2,0,main.a\n", Some(0));
    check(b"1,4294967296,0,main.a\n", Some(0));
    check(b"1,1,0,\xff\n", None);
    // Optimised away, shared with a longer name, and a name with a comma.
    let sym = read_sym(b"1,-1,0,main.a\n2,7,0,main.b\n3,7,1,main.x.b\n4,2,0,main.d[1,2]").unwrap();
    assert_eq!(sym.names().collect::<Vec<_>>(), [(2, "main.d[1,2]"), (7, "main.b")]);
}

/// What an error calls input signals is what their input calls them.
#[test]
fn input_signals_are_named_without_main_and_indices() {
    let sym = b"1,1,0,main.out\n2,2,0,main.in1\n3,3,0,main.in2[0][0]\n4,4,0,main.in2[0][1]\n5,5,0,main.p[1].x[0]\n6,6,0,main.s";
    assert_eq!(read_sym(sym).unwrap().signals(2..6), ["in1", "in2", "p[1].x"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_bytes_make_a_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0usize..4500) {
        let mut real = circom("mul2", "circuit.zkey");
        let end = real.len().min(at + bytes.len());
        real[at.min(end)..end].copy_from_slice(&bytes[..end - at.min(end)]);
        let _ = (read_zkey(&real), read_sym(&bytes));
    }
}

#[test]
fn the_layout_of_points_is_checked_like_their_encoding() {
    let point = G1Point::from(blstrs::G1Affine::from(<blstrs::G1Projective as group::Group>::generator()));
    assert_eq!(G1Point::from_montgomery_bytes(bytemuck::bytes_of(&point)), Ok(point));
    assert_eq!(G1Point::from_montgomery_bytes(&[0; 96]), Ok(G1Point::INFINITY));
    // The modulus itself, in place of zero.
    let mut bytes = [0; 96];
    bytes[..48].copy_from_slice(bytemuck::bytes_of(&zkhost_groth16::points::FP_MODULUS));
    assert_eq!(G1Point::from_montgomery_bytes(&bytes), Err(PointError::Encoding));
}

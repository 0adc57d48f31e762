//! Packed assignments: what is written is what is read, and each misuse is refused by name.

use ff::Field;
use proptest::prelude::*;
use zkhost_groth16::assignment::{Lookup, SegmentLimits, SegmentWriter, SinkError};
use zkhost_groth16::r1cs::Variables;
use zkhost_groth16::scalar::{MODULUS, first_unreduced, is_reduced, to_canonical, to_montgomery};
use zkhost_groth16::{Assignment, Encoding, Scalar, SegmentSink};

/// How a value travels.
#[derive(Clone, Copy, Debug)]
enum Travel {
    Bit(bool),
    Full(Scalar),
}

impl Travel {
    fn value(self) -> Scalar {
        match self {
            Self::Bit(bit) => Scalar::from(u64::from(bit)),
            Self::Full(value) => value,
        }
    }
}

/// Pack groups the naive way: masks and elements of all of them.
fn pack(values: &[Travel], encoding: Encoding) -> (Vec<u64>, Vec<u64>) {
    let (mut masks, mut elements) = (vec![], vec![]);
    for group in values.chunks(64) {
        let (mut full, mut one) = (0u64, 0u64);
        for (bit, value) in group.iter().enumerate() {
            match value {
                Travel::Bit(value) => one |= u64::from(*value) << bit,
                Travel::Full(value) => {
                    full |= 1 << bit;
                    elements.extend(match encoding {
                        Encoding::Canonical => to_canonical(value),
                        Encoding::Montgomery => to_montgomery(value),
                    });
                }
            }
        }
        masks.extend([full, one]);
    }
    (masks, elements)
}

fn limits(aux_count: usize, full_max: usize, public_count: u64) -> SegmentLimits {
    SegmentLimits { aux_count: aux_count as u64, full_max: full_max as u64, public_count }
}

fn writer(aux: usize, full_max: usize, publics: u64) -> SegmentWriter {
    SegmentWriter::on_heap(Encoding::Canonical, limits(aux, full_max, publics)).unwrap()
}

/// Write segments in calls of a few groups, and compare z, ranks and groups with the values.
fn check_round_trip(segments: &[Vec<Travel>], groups_per_call: usize, encoding: Encoding) {
    let publics = [Scalar::from(7), -Scalar::ONE];
    let mut done = vec![];
    for (index, values) in segments.iter().enumerate() {
        let full = values.iter().filter(|v| matches!(v, Travel::Full(_))).count();
        let own = if index == 0 { &publics[..] } else { &[] };
        let mut writer = SegmentWriter::on_heap(encoding, limits(values.len(), full, own.len() as u64)).unwrap();
        for values in values.chunks(64 * groups_per_call) {
            let (masks, elements) = pack(values, encoding);
            writer.write_groups(&masks, &elements).unwrap();
        }
        own.iter().for_each(|public| writer.write_public(&to_canonical(public)).unwrap());
        done.push(writer.finish().unwrap());
    }
    for segment in &done {
        let mut rank = 0;
        for (group, expected) in segment.groups().zip(segment.ranks().iter().copied()) {
            assert_eq!(expected, rank);
            assert_eq!(group.elements.len(), group.full.count_ones() as usize);
            rank += group.elements.len() as u64;
        }
    }
    let assignment = Assignment::new(done);
    let aux = segments.iter().flatten().map(|v| v.value());
    let expected: Vec<Scalar> = [Scalar::ONE].into_iter().chain(publics).chain(aux).collect();
    assert!(*assignment.z() == *expected);
    let lookup = Lookup::new(&assignment);
    assert_eq!(lookup.count(), expected.len());
    assert!((0..expected.len()).all(|variable| lookup.restore(lookup.value(variable)) == expected[variable]));
    assert_eq!((assignment.publics(), assignment.encoding()), (&publics[..], encoding));
    assert_eq!(assignment.aux_count() as usize, expected.len() - 3);
}

fn travel() -> impl Strategy<Value = Travel> {
    prop_oneof![
        any::<bool>().prop_map(Travel::Bit),
        Just(Travel::Full(Scalar::ZERO)),
        Just(Travel::Full(Scalar::ONE)),
        Just(Travel::Full(-Scalar::ONE)),
        any::<[u64; 2]>().prop_map(|[a, b]| Travel::Full(Scalar::from(a) * Scalar::from(b).square() + Scalar::from(b))),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        segments in prop::collection::vec(prop::collection::vec(travel(), 0..300), 1..4),
        groups_per_call in 1usize..5,
        montgomery: bool,
    ) {
        let encoding = if montgomery { Encoding::Montgomery } else { Encoding::Canonical };
        check_round_trip(&segments, groups_per_call, encoding);
    }

    #[test]
    fn values_at_hand_pack_and_expand(aux in prop::collection::vec(travel(), 0..200)) {
        let aux: Vec<Scalar> = aux.into_iter().map(Travel::value).collect();
        let z = Assignment::from_values(&[Scalar::from(5)], &aux).z();
        prop_assert!(z[0] == Scalar::ONE && z[1] == Scalar::from(5) && z[2..] == aux[..]);
    }

    #[test]
    fn the_fast_check_finds_what_the_slow_one_finds(
        mut elements in prop::collection::vec(any::<[u64; 4]>(), 0..40),
        edges in prop::collection::vec((0usize..40, 0u64..4, -2i64..3), 0..4),
    ) {
        // Values around r, and below it in most other places.
        elements.iter_mut().for_each(|e| e[3] %= MODULUS[3]);
        for (at, limb, distance) in edges {
            if let Some(element) = elements.get_mut(at) {
                *element = MODULUS;
                element[limb as usize] = element[limb as usize].wrapping_add_signed(distance);
            }
        }
        prop_assert_eq!(first_unreduced(&elements), elements.iter().position(|e| !is_reduced(e)));
    }
}

#[test]
fn sizes_around_groups_and_tasks_round_trip() {
    for length in [0, 1, 63, 64, 65, 127, 128, 129, 8191, 8192, 8193, 20000] {
        let value =
            |i: usize| if i.is_multiple_of(3) { Travel::Full(Scalar::from(i as u64)) } else { Travel::Bit(i % 2 == 1) };
        check_round_trip(&[(0..length).map(value).collect()], 1024, Encoding::Canonical);
    }
}

#[test]
fn lists_at_every_offset_and_around_the_pieces_copied_at_once_arrive() {
    for (offset, count) in
        (0..8).flat_map(|offset| [1usize, 63, 64, 65, 511, 512, 513, 1025].map(|count| (offset, count)))
    {
        let mut words: Vec<u64> = (0..offset + 4 * count as u64).collect();
        let list = offset as usize..;
        let mut masks = [u64::MAX, 0].repeat(count.div_ceil(64));
        let last = masks.len() - 2;
        masks[last] >>= masks.len() * 32 - count;

        let mut w = writer(count, count, 0);
        w.write_groups(&masks, &words[list.clone()]).unwrap();
        assert_eq!(w.finish().unwrap().elements().as_flattened(), &words[list.clone()], "{offset}, {count}");

        *words.last_mut().unwrap() = MODULUS[3] + 1;
        let refused = writer(count, count, 0).write_groups(&masks, &words[list]);
        assert_eq!(refused, Err(SinkError::UnreducedAux { index: count as u64 - 1 }));
    }
}

/// The first refusal of a call stays: later calls and the end meet it too.
fn check_refusal(mut writer: SegmentWriter, masks: &[u64], elements: &[u64], expected: SinkError) {
    assert_eq!(writer.write_groups(masks, elements), Err(expected.clone()));
    assert_eq!(writer.write_groups(&[], &[]), Err(expected.clone()));
    assert_eq!(writer.write_public(&[]), Err(expected.clone()));
    assert_eq!(writer.finish().err(), Some(expected));
}

#[test]
fn bad_groups_are_refused_by_name() {
    check_refusal(writer(64, 1, 0), &[0], &[], SinkError::OddMasks { words: 1 });
    check_refusal(writer(64, 1, 0), &[0, 0, 0, 0], &[], SinkError::TooManyGroups { groups: 1 });
    check_refusal(writer(0, 0, 0), &[0, 0], &[], SinkError::TooManyGroups { groups: 0 });
    check_refusal(writer(128, 9, 0), &[0, 0, 0b100, 0b110], &[0; 4], SinkError::Overlap { index: 66 });
    check_refusal(writer(65, 9, 0), &[0, 0, 0, 0b10], &[], SinkError::Padding { group: 1, aux_count: 65 });
    check_refusal(writer(65, 9, 0), &[0, 0, 0b10, 0], &[0; 4], SinkError::Padding { group: 1, aux_count: 65 });
    check_refusal(writer(64, 1, 0), &[0b11, 0], &[0; 8], SinkError::TooManyFull { max: 1 });
    for limbs in [0, 3, 5, 8] {
        check_refusal(writer(64, 1, 0), &[0b1, 0], &vec![0; limbs], SinkError::ElementCount { limbs, full: 1 });
    }
}

#[test]
fn an_unreduced_element_is_named_by_its_variable() {
    // The 300th full variable of a call where every other one is full.
    let masks: Vec<u64> = [0xaaaa_aaaa_aaaa_aaaa, 0].repeat(20);
    let mut elements = vec![0; 4 * 32 * 20];
    elements[4 * 299..4 * 300].copy_from_slice(&MODULUS);
    let mut w = writer(64 * 21, 64 * 21, 0);
    w.write_groups(&[0, 0], &[]).unwrap();
    check_refusal(w, &masks, &elements, SinkError::UnreducedAux { index: 64 + 2 * 299 + 1 });
}

#[test]
fn a_refused_call_cannot_overrun_the_window() {
    // The elements are copied before the last of them is refused; the same call again must not add to them.
    let masks = [u64::MAX, 0].repeat(5);
    let mut elements = vec![0; 4 * 320];
    elements[4 * 319..].copy_from_slice(&MODULUS);
    check_refusal(writer(320, 320, 0), &masks, &elements, SinkError::UnreducedAux { index: 319 });
}

#[test]
fn bad_publics_are_refused_by_name() {
    let check = |count, elements: &[u64], expected| {
        let mut w = writer(0, 0, count);
        assert_eq!(w.write_public(elements), Err(expected));
    };
    check(1, &[1, 2, 3], SinkError::OddPublics { limbs: 3 });
    check(1, &[0; 8], SinkError::TooManyPublics { count: 1 });
    check(0, &[0; 4], SinkError::TooManyPublics { count: 0 });
    check(2, &[[0; 4], MODULUS].concat(), SinkError::UnreducedPublic { index: 2 });
}

#[test]
fn rapidsnark_p2_too_little_is_refused_at_the_end() {
    let mut w = writer(130, 0, 0);
    w.write_groups(&[0, 0, 0, 0], &[]).unwrap();
    assert_eq!(w.finish().err(), Some(SinkError::TooFewGroups { written: 2, groups: 3 }));
    let mut w = writer(0, 0, 3);
    w.write_public(&[0; 4]).unwrap();
    assert_eq!(w.finish().err(), Some(SinkError::TooFewPublics { written: 1, count: 3 }));
}

#[test]
fn a_size_that_no_memory_holds_is_refused() {
    let limits = SegmentLimits { aux_count: u64::MAX / 64, full_max: u64::MAX / 64, public_count: 0 };
    assert!(matches!(SegmentWriter::on_heap(Encoding::Canonical, limits), Err(SinkError::OutOfMemory { .. })));
}

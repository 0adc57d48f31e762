//! What a guest writes is checked, every bit of it, and what it reads is what it was given.

mod support;

use ff::Field;
use std::sync::{Arc, Mutex};
use support::*;
use zkhost_groth16::assignment::{SegmentSink, SinkError};
use zkhost_groth16::scalar::{MODULUS, Scalar, to_montgomery};
use zkhost_runtime::{Fault, Input, Limits};

/// The tiny guest with another `assign`, and what its error says.
fn check(assign: String, data: String, expected: &[&str]) -> Fault {
    let guest = Guest { assign, data, ..Guest::default() };
    check_fails(
        &guest.load(Limits::default()),
        &[&["circuit `tiny`, partition 0, segment 0, `job.assign`"], expected].concat(),
    )
}

/// As [`check`], with these masks and elements written after the public input.
fn check_groups(masks: &[u64], elements: &[u64], expected: &[&str]) {
    let data = words(MASKS, masks) + &words(ELEMENTS, elements) + &words(PUBLICS, &[6, 0, 0, 0]) + &shape_data();
    let assign = write_public(4) + &write_groups(masks.len() as u32, elements.len() as u32);
    check(assign, data, expected);
}

fn shape_data() -> String {
    let data = Guest::default().data;
    let at = data.match_indices("(data").nth(3).expect("rows come fourth").0;
    data[at..].to_owned()
}

const TWO: [u64; 8] = [2, 0, 0, 0, 3, 0, 0, 0];

#[test]
fn groups_are_checked() {
    check_groups(&[0b11], &TWO, &["`write-groups`"]);
    check_groups(&[0b11, 0b10], &TWO, &["`write-groups`"]);
    check_groups(&[0b111, 0], &[&TWO[..], &[1, 0, 0, 0]].concat(), &["`write-groups`"]);
    check_groups(&[0b01, 0b110], &TWO[..4], &["`write-groups`"]);
    check_groups(&[0b11, 0], &TWO[..7], &["`write-groups`"]);
    check_groups(&[0b11, 0], &[&TWO[..], &[1]].concat(), &["`write-groups`"]);
    check_groups(&[0b11, 0], &[&TWO[..4], &MODULUS].concat(), &["`write-groups`", "1"]);
    check_groups(&[0b11, 0], &[u64::MAX; 8], &["`write-groups`"]);
    check_groups(&[0b11, 0, 0, 0], &TWO, &["`write-groups`"]);
    check_groups(&[], &[], &[]);
}

#[test]
fn rapidsnark_p2_an_assignment_of_the_wrong_length_is_refused() {
    let data = Guest::default().data;
    check(write_groups(2, 8), data.clone(), &["public"]);
    check(write_public(4), data.clone(), &[]);
    check(write_public(4) + &write_public(4) + &write_groups(2, 8), data.clone(), &["`write-public`"]);
    check(write_public(4) + &write_groups(2, 8) + &write_groups(2, 8), data.clone(), &["`write-groups`"]);
    check(write_public(3), data.clone(), &["`write-public`"]);
    check(String::new(), data, &[]);
}

#[test]
fn circom_i407_values_at_or_above_the_modulus_are_refused_never_reduced() {
    for above in [0, 5] {
        let mut value = MODULUS;
        value[0] += above;
        let data = words(PUBLICS, &value) + &shape_data();
        check(write_public(4), data, &["`write-public`", "public input 1 is not below the modulus"]);
        let elements = [&TWO[..4], &value].concat();
        check_groups(&[0b11, 0], &elements, &["aux variable 1 of the segment is not below the modulus"]);
    }
}

#[test]
fn more_full_elements_than_planned_are_refused() {
    let guest = Guest { plan: plan_of(1, &[(0, 2, 1)]), ..Guest::default() };
    check_fails(&guest.load(Limits::default()), &["`write-groups`", "segment 0"]);
}

#[test]
fn public_inputs_from_a_later_segment_are_refused() {
    // One aux variable a segment; every segment writes the public input.
    let data = words(MASKS, &[0b1, 0]) + &words(ELEMENTS, &TWO[..4]) + &words(PUBLICS, &[6, 0, 0, 0]) + &shape_data();
    let guest = Guest {
        data,
        plan: plan_of(1, &[(0, 1, 0), (1, 1, 0)]),
        assign: write_public(4) + &write_groups(2, 4),
        ..Guest::default()
    };
    check_fails(&guest.load(Limits::default()), &["partition 0, segment 1, `job.assign`", "`write-public`"]);
}

#[test]
fn wasmtime_i6116_lists_outside_the_memory_or_misaligned_are_refused() {
    let call = |masks: u32, count: u32| {
        format!(
            "(call $write_groups (local.get $out) (i32.const {masks}) (i32.const {count}) (i32.const 0) (i32.const 0))"
        )
    };
    let data = Guest::default().data;
    check(call(2 * 65_536, 2), data.clone(), &["out of bounds"]);
    check(call(u32::MAX - 7, 2), data.clone(), &["list pointer"]);
    check(call(2 * 65_536 - 8, 2), data.clone(), &["out of bounds"]);
    check(call(MASKS + 4, 2), data, &["aligned"]);
}

#[test]
fn handles_that_are_not_lent_are_refused() {
    let data = Guest::default().data;
    check("(call $write_public (i32.const 77) (i32.const 0) (i32.const 0))".into(), data.clone(), &["handle"]);
    let dropped = format!("(call $drop_witness (local.get $out)) {}", write_public(4));
    check(dropped, data.clone(), &["handle"]);
    // A handle that is kept beyond its call.
    check("(local.set $out (i32.const 0)) (return (i32.const 0))".into(), data, &["borrow"]);
}

#[test]
fn the_shape_is_checked() {
    let shape = |record_shape: String, data: String, expected: &[&str]| {
        let guest = Guest { record_shape, data: Guest::default().data + &data, ..Guest::default() };
        check_fails(&guest.load(Limits::default()), &[&["circuit `tiny`, `record-shape`"], expected].concat())
    };
    let at = 24_576;
    let rows = |lengths: u32, columns: u32, coefficients: u32| {
        format!(
            "(call $add_rows (local.get $out) (i32.const 0) (i32.const {at}) (i32.const {lengths}) (i32.const {}) \
             (i32.const {columns}) (i32.const {}) (i32.const {coefficients}))",
            at + 64,
            at + 128
        )
    };
    let coefficients = |words: u32| {
        format!("(drop (call $add_coefficients (local.get $out) (i32.const {}) (i32.const {words})))", at + 192)
    };
    let one = half_words(at, &[1]);
    shape(coefficients(3), String::new(), &["`add-coefficients`", "four"]);
    shape(coefficients(4), words(at + 192, &MODULUS), &["`add-coefficients`", "coefficient 0"]);
    shape(rows(1, 1, 1), one.clone(), &["`add-rows`", "dictionary"]);
    shape(rows(1, 2, 1), one.clone(), &["`add-rows`"]);
    shape(rows(1, 0, 0), half_words(at, &[u32::MAX]), &["`add-rows`"]);
    shape(record_product() + &rows(1, 0, 0) + &counts(1, 2, 1), String::new(), &["rows", "counts 1 constraints"]);
    shape(record_product() + &counts(1, 1, 1), String::new(), &["aux variable 1 is used", "counts 1"]);
    shape(record_product() + &counts(0, 2, 1), String::new(), &["public input 1 is used", "counts 0"]);
    shape(record_product() + &counts(1, 2, 2), String::new(), &["constraint"]);
    shape(record_product() + &counts(u64::MAX, u64::MAX, u64::MAX), String::new(), &[]);
    shape(record_product() + &counts(1, 1 << 40, 1), String::new(), &["`aux`"]);
}

#[test]
fn names_are_recorded_only_when_asked_for() {
    let name = "(call $name_rows (local.get $out) (i32.const 30000) (i32.const 12))";
    let data = Guest::default().data + "(data (i32.const 30000) \"root/product\")";
    let guest = Guest { record_shape: name.to_owned() + &Guest::default().record_shape, data, ..Guest::default() };
    let circuit = guest.load(Limits::default());
    assert_eq!(circuit.record_shape(b"", true).unwrap().names, ["root/product"]);
    let hostile = Guest { data: guest.data.replace("root/product", "\\1b[2J\\e2\\80\\ae\\07hell"), ..guest };
    let names = hostile.load(Limits::default()).record_shape(b"", true).unwrap().names;
    assert_eq!(names, [" [2J  hell"], "escapes and marks of direction are gone");
    let error = circuit.record_shape(b"", false).unwrap_err();
    check_says(&error.to_string(), &["`record-shape`", "`name-rows`"]);
}

/// A sink that keeps what it is given.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<(Vec<u64>, Vec<u64>)>>);

impl SegmentSink for Kept {
    fn write_groups(&mut self, masks: &[u64], elements: &[u64]) -> Result<(), SinkError> {
        let mut kept = self.0.lock().unwrap();
        kept.0.extend_from_slice(masks);
        kept.1.extend_from_slice(elements);
        Ok(())
    }
    fn write_public(&mut self, elements: &[u64]) -> Result<(), SinkError> {
        self.0.lock().unwrap().1.extend_from_slice(elements);
        Ok(())
    }
}

/// What `assign` writes when `open` has run on an input.
fn kept(open: &str, assign: String, input: Vec<u8>) -> Vec<u64> {
    let guest = Guest { open: open.to_owned(), assign, ..Guest::default() };
    let mut job = guest.load(Limits::default()).open(b"", &Input::from(input)).unwrap();
    let sink = job.assign(0, 0, Kept::default()).unwrap();
    sink.0.lock().unwrap().1.clone()
}

#[test]
fn an_input_is_read_in_pieces_and_never_past_its_end() {
    // Read, and write where the piece lies, its length and its first eight bytes, one word each, as "elements".
    let read = |offset: i64, len: i32| {
        format!(
            "(call $read (local.get $blob) (i64.const {offset}) (i32.const {len}) (i32.const 512))
             (i64.store (i32.const {ELEMENTS}) (i64.extend_i32_u (i32.load (i32.const 516))))
             (i64.store (i32.const {}) (call $size (local.get $blob)))
             (if (i32.load (i32.const 516)) (then (i64.store (i32.const {}) (i64.load (i32.load (i32.const 512))))))",
            ELEMENTS + 8,
            ELEMENTS + 16
        )
    };
    let input: Vec<u8> = (0..100).collect();
    let assign = write_groups(0, 3);
    let check = |offset, len, expected: [u64; 2]| {
        let kept = kept(&read(offset, len), assign.clone(), input.clone());
        assert_eq!([kept[0], kept[1]], expected);
        kept[2]
    };
    assert_eq!(check(8, 8, [8, 100]), u64::from_le_bytes([8, 9, 10, 11, 12, 13, 14, 15]));
    check(0, 1000, [100, 100]);
    check(90, 20, [10, 100]);
    check(100, 1, [0, 100]);
    check(101, 1, [0, 100]);
    check(-1, -1, [0, 100]);
    check(0, 0, [0, 100]);
    // One call is cut at its limit.
    let kept = kept(&read(0, -1), assign, vec![1; (4 << 20) + 5]);
    assert_eq!(kept[..2], [4 << 20, (4 << 20) + 5]);
}

#[test]
fn inversion_is_that_of_the_field() {
    let call = |limbs: [u64; 4]| {
        let [a, b, c, d] = limbs.map(|limb| format!("(i64.const {})", limb as i64));
        format!("(call $invert_one {a} {b} {c} {d} (i32.const {ELEMENTS}))") + &write_groups(0, 4)
    };
    for value in [Scalar::ZERO, Scalar::ONE, -Scalar::ONE, Scalar::from(7), Scalar::from(u64::MAX).square()] {
        let inverse = value.invert().unwrap_or(Scalar::ZERO);
        assert_eq!(kept("", call(to_montgomery(&value)), vec![]), to_montgomery(&inverse));
    }
    let guest = Guest { assign: call(MODULUS), ..Guest::default() };
    check_fails(&guest.load(Limits::default()), &["`invert-one`", "not below the modulus"]);
}

#[test]
fn an_instance_finds_nothing_of_the_one_before_in_its_memory() {
    // Count up a word far from all data, then write it: it is 1 in every instance whose memory was zero.
    let count = "(i64.store (i32.const 60000) (i64.add (i64.load (i32.const 60000)) (i64.const 1)))";
    let copy = format!("(i64.store (i32.const {ELEMENTS}) (i64.load (i32.const 60000)))");
    let circuit = Guest { open: count.into(), assign: copy + &write_groups(0, 1), ..Guest::default() }
        .load(Limits { instances: 1, ..Limits::default() });
    for _ in 0..20 {
        let mut job = circuit.open(b"", &Input::from(vec![])).unwrap();
        let sink = job.assign(0, 0, Kept::default()).unwrap();
        assert_eq!(sink.0.lock().unwrap().1, [1]);
    }
}

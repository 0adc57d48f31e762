//! The computations end where another implementation's do.

use arithmetic::Arithmetic;
use blstrs::Scalar;
use ff013::Field;
use zkhost_guest::{Error, Fr, native};

/// The public inputs of a run are the product and the sum of what blst computes.
fn check(products: u64, inversions: u64, start: u64) {
    let params = serde_json::json!({ "products": products, "inversions": inversions }).to_string();
    let input = serde_json::json!({ "start": start }).to_string();
    let run = native::run::<Arithmetic>(params.as_bytes(), input.as_bytes()).expect("a run");
    assert_eq!(run.first_unsatisfied(), None);
    let x = Scalar::from(start);
    let chain = x * (x + Scalar::ONE).pow_vartime([products]);
    let inverse = |i| (x + Scalar::from(i)).invert().unwrap_or(Scalar::ZERO);
    let sum: Scalar = (0..inversions).map(inverse).sum();
    let expected = [chain * sum, chain + sum].map(|value| Fr::from_le_bytes(&value.to_bytes_le()).expect("canonical"));
    assert_eq!(run.assignments[0].publics, expected, "{products} products, {inversions} inversions from {start}");
}

#[test]
fn ends_are_those_of_another_implementation() {
    check(1000, 100, 3);
    check(0, 0, 7);
    check(1, 1, 0);
    check(300, 65, u64::MAX);
}

#[test]
fn too_many_inversions_are_refused_by_name() {
    let error = native::run::<Arithmetic>(br#"{"inversions": 2000000}"#, br#"{"start": 1}"#).err();
    assert_eq!(error, Some(Error::BadParams("field `inversions`: at most 1048576 was expected".into())));
}

//! Points that no honest encoder writes.

use blst::blst_fp;
use blstrs::{G1Affine, G1Projective, G2Affine};
use zkhost_groth16::G1Point;

/// A point of order 3 of G1's curve, the least order outside the subgroup: (0, 2).
pub fn g1_of_order_three() -> G1Affine {
    let mut two = blst_fp::default();
    // SAFETY: the input is the six limbs of a coordinate, the output a plain value.
    unsafe { blst::blst_fp_from_uint64(&mut two, [2, 0, 0, 0, 0, 0].as_ptr()) };
    G1Point { x: [0; 6], y: two.l }.into()
}

/// A point of the subgroup plus one of order 3.
pub fn g1_outside(point: G1Affine) -> G1Affine {
    (G1Projective::from(point) + g1_of_order_three()).into()
}

/// A point of G2's curve outside the subgroup, by its compressed encoding: nearly every x with a y gives one.
pub fn g2_outside() -> G2Affine {
    let candidates = (1u8..).map(|x| {
        let mut bytes = [0; 96];
        (bytes[0], bytes[95]) = (0x80, x);
        Option::<G2Affine>::from(G2Affine::from_compressed_unchecked(&bytes))
    });
    candidates.flatten().find(|point| !bool::from(point.is_torsion_free())).unwrap()
}

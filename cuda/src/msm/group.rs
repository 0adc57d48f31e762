//! The two groups as the kernels see them.

use blstrs::{G1Projective, G2Projective};
use group::Group as _;
use zkhost_groth16::points::{G1Point, G2Point};

use crate::memory::Plain;

/// A field element of G1's or G2's coordinates takes this many u64 limbs.
const FP_LIMBS: usize = 6;

/// G1 or G2. Sealed: the kernels exist for these two.
pub trait Group: sealed::Kernels + 'static {
    /// An affine point in memory.
    type Affine: Plain;
    /// A sum on the host.
    type Sum: group::Group + Send + Sync;
}

/// The group of curve points over Fp.
#[derive(Clone, Copy, Debug)]
pub struct G1;

/// The group of curve points over Fp2.
#[derive(Clone, Copy, Debug)]
pub struct G2;

pub(super) mod sealed {
    use super::Plain;

    /// The kernels of a group and what is particular to them.
    pub trait Kernels {
        /// (X, Y, ZZ, ZZZ) with x = X/ZZ, y = Y/ZZZ; infinity has ZZ = 0.
        type Xyzz: Plain + zeroize::Zeroize;
        /// A coordinate.
        type Coordinate: Plain;
        /// Lanes of a warp that hold one point.
        const LANES: usize;
        /// Entries that one launch may be given so that it stays well below 50 ms on a current card.
        const LAUNCH_ENTRIES_MAX: usize;
        const ACCUMULATE: &'static str;
        const ADD_CARRIES: &'static str;
        const SUM_SEGMENTS: &'static str;
        const SUM_BITS: &'static str;
        const SUM_SLICES: &'static str;
        const DOUBLE: &'static str;
        const NORMALISE: &'static str;
        /// The point on the host's curve type.
        fn to_host(point: &Self::Xyzz) -> <Self as super::Group>::Sum
        where
            Self: super::Group;
    }
}

impl Group for G1 {
    type Affine = G1Point;
    type Sum = G1Projective;
}

impl Group for G2 {
    type Affine = G2Point;
    type Sum = G2Projective;
}

impl sealed::Kernels for G1 {
    type Xyzz = [[u64; FP_LIMBS]; 4];
    type Coordinate = [u64; FP_LIMBS];
    const LANES: usize = 1;
    const LAUNCH_ENTRIES_MAX: usize = 1 << 26;
    const ACCUMULATE: &'static str = "msm_g1_accumulate";
    const ADD_CARRIES: &'static str = "msm_g1_add_carries";
    const SUM_SEGMENTS: &'static str = "msm_g1_sum_segments";
    const SUM_BITS: &'static str = "msm_g1_sum_bits";
    const SUM_SLICES: &'static str = "msm_g1_sum_slices";
    const DOUBLE: &'static str = "curve_g1_double";
    const NORMALISE: &'static str = "curve_g1_normalise";

    fn to_host(point: &Self::Xyzz) -> G1Projective {
        // With Z = ZZ: x = X ZZ / Z^2 and, because ZZ^3 = ZZZ^2, y = Y ZZZ / Z^3.
        let [x, y, zz, zzz] = point.map(|l| blst::blst_fp { l });
        let mut out = G1Projective::identity();
        if zz.l == [0; FP_LIMBS] {
            return out;
        }
        let jacobian = out.as_mut();
        // SAFETY: all pointers are to plain values of this frame.
        unsafe {
            blst::blst_fp_mul(&mut jacobian.x, &x, &zz);
            blst::blst_fp_mul(&mut jacobian.y, &y, &zzz);
        }
        jacobian.z = zz;
        out
    }
}

impl sealed::Kernels for G2 {
    type Xyzz = [[u64; 2 * FP_LIMBS]; 4];
    type Coordinate = [u64; 2 * FP_LIMBS];
    const LANES: usize = 2;
    const LAUNCH_ENTRIES_MAX: usize = 1 << 24;
    const ACCUMULATE: &'static str = "msm_g2_accumulate";
    const ADD_CARRIES: &'static str = "msm_g2_add_carries";
    const SUM_SEGMENTS: &'static str = "msm_g2_sum_segments";
    const SUM_BITS: &'static str = "msm_g2_sum_bits";
    const SUM_SLICES: &'static str = "msm_g2_sum_slices";
    const DOUBLE: &'static str = "curve_g2_double";
    const NORMALISE: &'static str = "curve_g2_normalise";

    fn to_host(point: &Self::Xyzz) -> G2Projective {
        let half = |l: &[u64]| blst::blst_fp { l: std::array::from_fn(|i| l[i]) };
        let [x, y, zz, zzz] = point.map(|l| blst::blst_fp2 { fp: [half(&l[..FP_LIMBS]), half(&l[FP_LIMBS..])] });
        let mut out = G2Projective::identity();
        if zz.fp.iter().all(|c| c.l == [0; FP_LIMBS]) {
            return out;
        }
        let jacobian = out.as_mut();
        // SAFETY: all pointers are to plain values of this frame.
        unsafe {
            blst::blst_fp2_mul(&mut jacobian.x, &x, &zz);
            blst::blst_fp2_mul(&mut jacobian.y, &y, &zzz);
        }
        jacobian.z = zz;
        out
    }
}

//! The fields that points have coordinates in, by blst.

use crate::points::FpLimbs;
use blst::{blst_fp, blst_fp2};
use bytemuck::Pod;

/// Fp, or Fp2: Montgomery limbs below the modulus, as blst has them.
pub trait Coordinate: Pod + Default + Send + Sync {
    /// Some element that is not zero, where a product must go on.
    const NONZERO: Self;
    /// a + b.
    fn add(&self, other: &Self) -> Self;
    /// a - b.
    fn sub(&self, other: &Self) -> Self;
    /// a b.
    fn mul(&self, other: &Self) -> Self;
    /// a a.
    fn square(&self) -> Self;
    /// -a if asked, without a branch.
    fn negate_if(&self, negate: bool) -> Self;
    /// 1 / a; zero for zero.
    fn invert(&self) -> Self;

    /// Whether both are equal. Comparing limbs here beats the library's comparison of bytes by far.
    #[inline]
    fn equals(&self, other: &Self) -> bool {
        let (a, b) = (bytemuck::cast_slice::<_, u64>(std::slice::from_ref(self)), std::slice::from_ref(other));
        a.iter().zip(bytemuck::cast_slice::<_, u64>(b)).fold(0, |seen, (a, b)| seen | (a ^ b)) == 0
    }

    /// Whether this is zero.
    #[inline]
    fn is_zero(&self) -> bool {
        bytemuck::cast_slice::<_, u64>(std::slice::from_ref(self)).iter().fold(0, |seen, limb| seen | limb) == 0
    }
}

/// Implements the trait for limbs that have the layout of a type of blst, by its functions.
macro_rules! coordinate {
    ($limbs:ty, $blst:ty, $nonzero:expr, $add:ident, $sub:ident, $mul:ident, $sqr:ident, $cneg:ident, $inverse:ident) => {
        const _: () = assert!(size_of::<$blst>() == size_of::<$limbs>() && align_of::<$blst>() == align_of::<$limbs>());

        impl Coordinate for $limbs {
            const NONZERO: Self = $nonzero;

            #[inline]
            fn add(&self, other: &Self) -> Self {
                let mut out = <Self as bytemuck::Zeroable>::zeroed();
                // SAFETY: limbs have the size and alignment of blst's type, as asserted, and any limbs are a value of it; two
                // are read and one is written, all live.
                unsafe { blst::$add((&raw mut out).cast(), (&raw const *self).cast(), (&raw const *other).cast()) };
                out
            }

            #[inline]
            fn sub(&self, other: &Self) -> Self {
                let mut out = <Self as bytemuck::Zeroable>::zeroed();
                // SAFETY: as for the sum.
                unsafe { blst::$sub((&raw mut out).cast(), (&raw const *self).cast(), (&raw const *other).cast()) };
                out
            }

            #[inline]
            fn mul(&self, other: &Self) -> Self {
                let mut out = <Self as bytemuck::Zeroable>::zeroed();
                // SAFETY: as for the sum.
                unsafe { blst::$mul((&raw mut out).cast(), (&raw const *self).cast(), (&raw const *other).cast()) };
                out
            }

            #[inline]
            fn square(&self) -> Self {
                let mut out = <Self as bytemuck::Zeroable>::zeroed();
                // SAFETY: as for the sum, of one operand.
                unsafe { blst::$sqr((&raw mut out).cast(), (&raw const *self).cast()) };
                out
            }

            #[inline]
            fn negate_if(&self, negate: bool) -> Self {
                let mut out = <Self as bytemuck::Zeroable>::zeroed();
                // SAFETY: as for the square.
                unsafe { blst::$cneg((&raw mut out).cast(), (&raw const *self).cast(), negate) };
                out
            }

            fn invert(&self) -> Self {
                let mut out = <Self as bytemuck::Zeroable>::zeroed();
                // SAFETY: as for the square.
                unsafe { blst::$inverse((&raw mut out).cast(), (&raw const *self).cast()) };
                out
            }
        }
    };
}

coordinate!(
    FpLimbs,
    blst_fp,
    [1, 0, 0, 0, 0, 0],
    blst_fp_add,
    blst_fp_sub,
    blst_fp_mul,
    blst_fp_sqr,
    blst_fp_cneg,
    blst_fp_inverse
);
coordinate!(
    [FpLimbs; 2],
    blst_fp2,
    [[1, 0, 0, 0, 0, 0], [0; 6]],
    blst_fp2_add,
    blst_fp2_sub,
    blst_fp2_mul,
    blst_fp2_sqr,
    blst_fp2_cneg,
    blst_fp2_inverse
);

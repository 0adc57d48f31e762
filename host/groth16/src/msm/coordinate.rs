//! The fields that points have coordinates in, by blst.

use crate::points::FpLimbs;
use blst::{blst_fp, blst_fp2};
use bytemuck::Pod;

/// Fp, or Fp2: Montgomery limbs below the modulus, as blst has them.
pub trait Coordinate: Pod + PartialEq + Send + Sync {
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
    /// 1 / a; zero for zero.
    fn invert(&self) -> Self;
}

macro_rules! coordinate {
    ($limbs:ty, $blst:ty, $nonzero:expr, $add:ident, $sub:ident, $mul:ident, $sqr:ident, $inverse:ident) => {
        impl Coordinate for $limbs {
            const NONZERO: Self = $nonzero;

            #[inline]
            fn add(&self, other: &Self) -> Self {
                let mut out = <$blst>::default();
                // SAFETY: limbs have the layout of the blst type, by the assertion below; blst reads two and writes one.
                unsafe { blst::$add(&mut out, (&raw const *self).cast(), (&raw const *other).cast()) };
                limbs(out)
            }

            #[inline]
            fn sub(&self, other: &Self) -> Self {
                let mut out = <$blst>::default();
                // SAFETY: as for the sum.
                unsafe { blst::$sub(&mut out, (&raw const *self).cast(), (&raw const *other).cast()) };
                limbs(out)
            }

            #[inline]
            fn mul(&self, other: &Self) -> Self {
                let mut out = <$blst>::default();
                // SAFETY: as for the sum.
                unsafe { blst::$mul(&mut out, (&raw const *self).cast(), (&raw const *other).cast()) };
                limbs(out)
            }

            #[inline]
            fn square(&self) -> Self {
                let mut out = <$blst>::default();
                // SAFETY: as for the sum, of one operand.
                unsafe { blst::$sqr(&mut out, (&raw const *self).cast()) };
                limbs(out)
            }

            fn invert(&self) -> Self {
                let mut out = <$blst>::default();
                // SAFETY: as for the square.
                unsafe { blst::$inverse(&mut out, (&raw const *self).cast()) };
                limbs(out)
            }
        }
    };
}

/// The limbs of an element of blst.
trait Limbs {
    type Array;
    fn limbs(self) -> Self::Array;
}

impl Limbs for blst_fp {
    type Array = FpLimbs;
    fn limbs(self) -> FpLimbs {
        self.l
    }
}

impl Limbs for blst_fp2 {
    type Array = [FpLimbs; 2];
    fn limbs(self) -> [FpLimbs; 2] {
        self.fp.map(|c| c.l)
    }
}

#[inline]
fn limbs<E: Limbs>(element: E) -> E::Array {
    element.limbs()
}

const _: () = assert!(size_of::<blst_fp>() == size_of::<FpLimbs>() && align_of::<blst_fp>() == align_of::<FpLimbs>());
const _: () =
    assert!(size_of::<blst_fp2>() == size_of::<[FpLimbs; 2]>() && align_of::<blst_fp2>() == align_of::<FpLimbs>());

coordinate!(FpLimbs, blst_fp, [1, 0, 0, 0, 0, 0], blst_fp_add, blst_fp_sub, blst_fp_mul, blst_fp_sqr, blst_fp_inverse);
coordinate!(
    [FpLimbs; 2],
    blst_fp2,
    [[1, 0, 0, 0, 0, 0], [0; 6]],
    blst_fp2_add,
    blst_fp2_sub,
    blst_fp2_mul,
    blst_fp2_sqr,
    blst_fp2_inverse
);

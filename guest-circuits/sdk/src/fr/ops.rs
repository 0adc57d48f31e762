//! The operators of [`Fr`], by value and by reference.

use std::iter::{Product, Sum};
use std::ops::{Add, AddAssign, Mul, MulAssign, Neg, Sub, SubAssign};

use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use super::{Fr, add, mul, sub};

macro_rules! operator {
    ($trait:ident, $method:ident, $assign_trait:ident, $assign_method:ident, $function:ident) => {
        impl $trait<&Fr> for &Fr {
            type Output = Fr;
            #[inline]
            fn $method(self, other: &Fr) -> Fr {
                Fr($function(&self.0, &other.0))
            }
        }
        impl $trait<Fr> for Fr {
            type Output = Fr;
            #[inline]
            fn $method(self, other: Fr) -> Fr {
                Fr($function(&self.0, &other.0))
            }
        }
        impl $trait<&Fr> for Fr {
            type Output = Fr;
            #[inline]
            fn $method(self, other: &Fr) -> Fr {
                Fr($function(&self.0, &other.0))
            }
        }
        impl $trait<Fr> for &Fr {
            type Output = Fr;
            #[inline]
            fn $method(self, other: Fr) -> Fr {
                Fr($function(&self.0, &other.0))
            }
        }
        impl $assign_trait<Fr> for Fr {
            #[inline]
            fn $assign_method(&mut self, other: Fr) {
                self.0 = $function(&self.0, &other.0);
            }
        }
        impl $assign_trait<&Fr> for Fr {
            #[inline]
            fn $assign_method(&mut self, other: &Fr) {
                self.0 = $function(&self.0, &other.0);
            }
        }
    };
}

operator!(Add, add, AddAssign, add_assign, add);
operator!(Sub, sub, SubAssign, sub_assign, sub);
operator!(Mul, mul, MulAssign, mul_assign, mul);

impl Neg for Fr {
    type Output = Fr;
    #[inline]
    fn neg(self) -> Fr {
        Fr(sub(&[0; 4], &self.0))
    }
}

impl Neg for &Fr {
    type Output = Fr;
    #[inline]
    fn neg(self) -> Fr {
        -*self
    }
}

impl Sum for Fr {
    fn sum<I: Iterator<Item = Fr>>(iter: I) -> Fr {
        iter.fold(Fr::ZERO, Add::add)
    }
}

impl<'a> Sum<&'a Fr> for Fr {
    fn sum<I: Iterator<Item = &'a Fr>>(iter: I) -> Fr {
        iter.fold(Fr::ZERO, Add::add)
    }
}

impl Product for Fr {
    fn product<I: Iterator<Item = Fr>>(iter: I) -> Fr {
        iter.fold(Fr::ONE, Mul::mul)
    }
}

impl<'a> Product<&'a Fr> for Fr {
    fn product<I: Iterator<Item = &'a Fr>>(iter: I) -> Fr {
        iter.fold(Fr::ONE, Mul::mul)
    }
}

impl ConstantTimeEq for Fr {
    fn ct_eq(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
    }
}

impl ConditionallySelectable for Fr {
    fn conditional_select(a: &Self, b: &Self, choice: Choice) -> Self {
        Fr(std::array::from_fn(|i| u64::conditional_select(&a.0[i], &b.0[i], choice)))
    }
}

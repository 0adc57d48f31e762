//! The traits of ff 0.13 and ff 0.14 for [`Fr`].

use subtle::{Choice, CtOption};

use super::{Fr, MODULUS, MODULUS_TEXT, limbs_from_le_bytes};

/// r - 1 = 2^32 · ODD.
const TWO_ADICITY: u32 = 32;
const GENERATOR: Fr = small(7);
/// (r - 1) / 2^32.
const ODD: [u64; 4] = shift_right(&MODULUS, TWO_ADICITY);
/// (ODD - 1) / 2, the exponent of Tonelli and Shanks.
const HALF_ODD: [u64; 4] = shift_right(&ODD, 1);
const ROOT_OF_UNITY: Fr = GENERATOR.pow(&ODD);
/// The root has order 2^32, so its inverse is its power 2^32 - 1.
const ROOT_OF_UNITY_INV: Fr = ROOT_OF_UNITY.pow(&[(1 << TWO_ADICITY) - 1, 0, 0, 0]);
const DELTA: Fr = GENERATOR.pow(&[1 << TWO_ADICITY, 0, 0, 0]);
const TWO_INV: Fr = small(2).pow(&[MODULUS[0] - 2, MODULUS[1], MODULUS[2], MODULUS[3]]);

const fn small(value: u64) -> Fr {
    match Fr::from_canonical([value, 0, 0, 0]) {
        Some(element) => element,
        None => unreachable!(),
    }
}

/// x / 2^bits, rounded down, for 0 < bits < 64.
const fn shift_right(x: &[u64; 4], bits: u32) -> [u64; 4] {
    let up = 64 - bits;
    [x[0] >> bits | x[1] << up, x[1] >> bits | x[2] << up, x[2] >> bits | x[3] << up, x[3] >> bits]
}

/// All but `random`, which differs between the versions.
macro_rules! field {
    ($ff:ident, $($random:item)+) => {
        impl $ff::Field for Fr {
            const ZERO: Self = Fr::ZERO;
            const ONE: Self = Fr::ONE;

            $($random)+

            #[inline]
            fn is_zero_vartime(&self) -> bool {
                Fr::is_zero(self)
            }

            #[inline]
            fn square(&self) -> Self {
                Fr::square(self)
            }

            #[inline]
            fn double(&self) -> Self {
                Fr::double(self)
            }

            fn invert(&self) -> CtOption<Self> {
                let inverse = Fr::invert(self);
                CtOption::new(inverse.unwrap_or(Fr::ZERO), Choice::from(u8::from(inverse.is_some())))
            }

            fn sqrt_ratio(num: &Self, div: &Self) -> (Choice, Self) {
                $ff::helpers::sqrt_ratio_generic(num, div)
            }

            fn sqrt(&self) -> CtOption<Self> {
                $ff::helpers::sqrt_tonelli_shanks(self, HALF_ODD)
            }
        }

        impl $ff::PrimeField for Fr {
            /// Little-endian.
            type Repr = [u8; 32];

            fn from_repr(repr: Self::Repr) -> CtOption<Self> {
                let element = Fr::from_canonical(limbs_from_le_bytes(&repr));
                CtOption::new(element.unwrap_or(Fr::ZERO), Choice::from(u8::from(element.is_some())))
            }

            fn to_repr(&self) -> Self::Repr {
                self.to_le_bytes()
            }

            fn is_odd(&self) -> Choice {
                Choice::from((self.to_canonical()[0] & 1) as u8)
            }

            const MODULUS: &'static str = MODULUS_TEXT;
            const NUM_BITS: u32 = 255;
            const CAPACITY: u32 = 254;
            const TWO_INV: Self = TWO_INV;
            const MULTIPLICATIVE_GENERATOR: Self = GENERATOR;
            const S: u32 = TWO_ADICITY;
            const ROOT_OF_UNITY: Self = ROOT_OF_UNITY;
            const ROOT_OF_UNITY_INV: Self = ROOT_OF_UNITY_INV;
            const DELTA: Self = DELTA;
        }

        impl $ff::PrimeFieldBits for Fr {
            type ReprBits = [u8; 32];

            fn to_le_bits(&self) -> $ff::FieldBits<Self::ReprBits> {
                $ff::FieldBits::new(self.to_le_bytes())
            }

            fn char_le_bits() -> $ff::FieldBits<Self::ReprBits> {
                // r - 1 is even, so the low byte of r is one more.
                let mut bytes = (-Fr::ONE).to_le_bytes();
                bytes[0] += 1;
                $ff::FieldBits::new(bytes)
            }
        }
    };
}

#[cfg(feature = "ff13")]
field!(
    ff013,
    fn random(mut rng: impl rand_core06::RngCore) -> Self {
        Fr::from_wide(std::array::from_fn(|_| rng.next_u64()))
    }
);

#[cfg(feature = "ff14")]
field!(
    ff014,
    fn try_random<R: rand_core10::TryRng + ?Sized>(rng: &mut R) -> Result<Self, R::Error> {
        let mut words = [0; 8];
        for word in &mut words {
            *word = rng.try_next_u64()?;
        }
        Ok(Fr::from_wide(words))
    }
);

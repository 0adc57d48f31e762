//! The scalars of the H query.

use crate::domain::Domain;
use crate::r1cs::{MatrixId, R1cs, Variables};
use crate::scalar::{Scalar, SecretScalars};
use ff::Field;
use rayon::prelude::*;

/// Elements one task multiplies.
const ELEMENTS_PER_TASK: usize = 4096;

/// For quotient points: A B at eta * omega^j, j in natural order; n elements, four transforms.
pub fn coset_products(r1cs: &R1cs, z: &impl Variables, domain: &Domain) -> SecretScalars {
    let mut products = products_on_coset(r1cs, z, domain);
    domain.bit_reverse(&mut products);
    products
}

/// For snarkjs's basis: A B - C at eta * omega^j, j in natural order; n elements, six transforms.
///
/// C is taken, as snarkjs takes it, from the products A B on the domain, which it is where the constraints hold.
pub fn coset_differences(r1cs: &R1cs, z: &impl Variables, domain: &Domain) -> SecretScalars {
    let mut differences = products_on_coset(r1cs, z, domain);
    let mut c = SecretScalars::zeros(domain.size());
    r1cs.evaluate_products_into(z, &mut c);
    to_coset(&mut c, domain);
    let pairs = differences.par_chunks_mut(ELEMENTS_PER_TASK).zip(c.par_chunks(ELEMENTS_PER_TASK));
    pairs.for_each(|(d, c)| d.iter_mut().zip(c).for_each(|(d, c)| *d -= c));
    drop(c);
    domain.bit_reverse(&mut differences);
    differences
}

/// For the monomial basis: the coefficients of the quotient of A B by X^n - 1; n - 1 elements and a zero, six transforms.
///
/// With A B = low + X^n high, its remainder modulo X^n - 1 is low + high, modulo X^n + 1 low - high; the quotient is high,
/// half the difference. The remainders' values are the products on the domain and on its coset, so C is not needed: where
/// the constraints hold the first of them is C. Both factors are evaluated again for the domain, which is cheap, so that
/// no more than two vectors of the domain's size are ever held.
pub fn coefficients(r1cs: &R1cs, z: &impl Variables, domain: &Domain) -> SecretScalars {
    let mut difference = products_on_coset(r1cs, z, domain);
    domain.interpolate_coset(&mut difference);
    let mut sum = SecretScalars::zeros(domain.size());
    r1cs.evaluate_products_into(z, &mut sum);
    domain.bit_reverse(&mut sum);
    domain.interpolate(&mut sum);
    let half = Scalar::from(2).invert().expect("two is not zero");
    let pairs = sum.par_chunks_mut(ELEMENTS_PER_TASK).zip(difference.par_chunks(ELEMENTS_PER_TASK));
    pairs.for_each(|(sum, difference)| sum.iter_mut().zip(difference).for_each(|(s, d)| *s = (*s - d) * half));
    sum
}

/// A B on the coset, bit-reversed.
fn products_on_coset(r1cs: &R1cs, z: &impl Variables, domain: &Domain) -> SecretScalars {
    let mut a = SecretScalars::zeros(domain.size());
    let mut b = SecretScalars::zeros(domain.size());
    r1cs.evaluate_into(MatrixId::A, z, &mut a);
    r1cs.evaluate_into(MatrixId::B, z, &mut b);
    // The rows "public * 0 = 0", the one's first.
    let publics = 0..=r1cs.public_count as usize;
    a[r1cs.constraints()..].iter_mut().zip(publics).for_each(|(a, variable)| *a = z.restore(z.value(variable)));
    rayon::join(|| to_coset(&mut a, domain), || to_coset(&mut b, domain));
    multiply(&mut a, &b);
    a
}

/// From values on the domain, in natural order, to values on the coset, bit-reversed.
fn to_coset(values: &mut [Scalar], domain: &Domain) {
    domain.bit_reverse(values);
    domain.interpolate(values);
    domain.evaluate_coset(values);
}

fn multiply(a: &mut [Scalar], b: &[Scalar]) {
    let pairs = a.par_chunks_mut(ELEMENTS_PER_TASK).zip(b.par_chunks(ELEMENTS_PER_TASK));
    pairs.for_each(|(a, b)| a.iter_mut().zip(b).for_each(|(a, b)| *a *= b));
}

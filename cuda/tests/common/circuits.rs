//! Constraint systems to prove, with values that satisfy them.

use std::collections::HashMap;

use ff::Field;
use rand_core::RngCore;
use zkhost_groth16::{
    R1cs, Scalar,
    r1cs::{Counts, MatrixId, ShapeLimits, ShapeRecorder},
    scalar::to_canonical,
};

/// A term: index into z = [1, publics, aux] and coefficient.
pub type Term = (usize, Scalar);

/// A circuit under construction with its values.
pub struct Builder {
    recorder: ShapeRecorder,
    coefficients: HashMap<[u64; 4], u32>,
    publics: Vec<Scalar>,
    aux: Vec<Scalar>,
    constraints: u64,
}

impl Builder {
    /// A circuit with these public inputs.
    pub fn new(publics: Vec<Scalar>) -> Self {
        let recorder = ShapeRecorder::new(ShapeLimits::NONE, false);
        Self { recorder, coefficients: HashMap::new(), publics, aux: vec![], constraints: 0 }
    }

    /// A new private variable; its index in z.
    pub fn aux(&mut self, value: Scalar) -> usize {
        self.aux.push(value);
        self.publics.len() + self.aux.len()
    }

    /// a * b = c.
    pub fn enforce(&mut self, rows: [&[Term]; 3]) {
        for (matrix, terms) in MatrixId::ALL.into_iter().zip(rows) {
            let mut columns = vec![];
            let mut ids = vec![];
            for (i, coefficient) in terms {
                let limbs = to_canonical(coefficient);
                let recorder = &mut self.recorder;
                let id = *self.coefficients.entry(limbs).or_insert_with(|| recorder.add_coefficients(&limbs).unwrap());
                let publics = self.publics.len();
                columns.push(if *i <= publics { *i as u32 | 1 << 31 } else { (i - 1 - publics) as u32 });
                ids.push(id);
            }
            self.recorder.add_rows(matrix, &[terms.len() as u32], &columns, &ids).unwrap();
        }
        self.constraints += 1;
    }

    /// The constraint system, public inputs and private values.
    pub fn finish(self) -> (R1cs, Vec<Scalar>, Vec<Scalar>) {
        let counts =
            Counts { publics: self.publics.len() as u64, aux: self.aux.len() as u64, constraints: self.constraints };
        (self.recorder.finish(counts).unwrap(), self.publics, self.aux)
    }
}

/// x -> x^2 + 3, `steps` times: every value is of full size.
pub fn squarings(steps: usize) -> (R1cs, Vec<Scalar>, Vec<Scalar>) {
    let one = Scalar::ONE;
    let mut values = vec![Scalar::from(0x1234_5678_9abc_def1).square().square().square()];
    (0..steps).for_each(|i| values.push(values[i].square() + Scalar::from(3)));
    let mut builder = Builder::new(vec![values[steps]]);
    let mut last = builder.aux(values[0]);
    for value in &values[1..steps] {
        let next = builder.aux(*value);
        builder.enforce([&[(last, one)], &[(last, one)], &[(next, one), (0, -Scalar::from(3))]]);
        last = next;
    }
    builder.enforce([&[(last, one)], &[(last, one)], &[(1, one), (0, -Scalar::from(3))]]);
    builder.finish()
}

/// Bits, products of bits and packings of up to 3,000 bits, the way hash circuits look: nearly all values are 0 or 1.
pub fn booleans(bits: usize, rng: &mut impl RngCore) -> (R1cs, Vec<Scalar>, Vec<Scalar>) {
    let one = Scalar::ONE;
    let mut builder = Builder::new(vec![Scalar::from(7), Scalar::ZERO]);
    let mut word: Vec<(usize, u64)> = vec![];
    for i in 0..bits {
        let bit = rng.next_u64() & 1;
        let variable = builder.aux(Scalar::from(bit));
        builder.enforce([&[(0, one), (variable, -one)], &[(variable, one)], &[]]);
        if let Some(&(before, other)) = word.last() {
            let product = builder.aux(Scalar::from(bit & other));
            builder.enforce([&[(variable, one)], &[(before, one)], &[(product, one)]]);
        }
        word.push((variable, bit));
        if word.len() == [8, 33, 32, 3000][i % 4] || i + 1 == bits {
            let power = |j: usize| Scalar::from(2).pow_vartime([j as u64 % 250]);
            let terms: Vec<Term> = word.iter().enumerate().map(|(j, (v, _))| (*v, power(j))).collect();
            let value: Scalar = word.iter().enumerate().map(|(j, (_, bit))| power(j) * Scalar::from(*bit)).sum();
            let packed = builder.aux(value);
            builder.enforce([&terms, &[(0, one)], &[(packed, one)]]);
            word.clear();
        }
    }
    builder.finish()
}

//! Long computations with few constraints, to measure field arithmetic in a guest.
//!
//! It proves nothing of interest: that two public values are the product and the sum of two secret ones. The secret ones are
//! the ends of a chain of products and of inversions, which take the time.

use serde::Deserialize;
use zkhost_guest::bellpepper_core::num::AllocatedNum;
use zkhost_guest::bellpepper_core::{ConstraintSystem, SynthesisError};
use zkhost_guest::{Circuit, Error, Fr, Info, Scope, Synthesis};

/// The most products of a chain: minutes.
const PRODUCTS_MAX: u32 = 1 << 30;
/// The most elements inverted together: 32 MiB.
const INVERSIONS_MAX: u32 = 1 << 20;

/// The circuit: what to compute, and the end of each computation if there is an input.
pub struct Arithmetic {
    params: Params,
    start: Option<Fr>,
}

/// How much is computed; the constraints do not depend on it.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Products, each with the one before.
    products: u32,
    /// Elements inverted together.
    inversions: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params { products: 1000, inversions: 100 }
    }
}

/// Where the computations start.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    start: u64,
}

impl Circuit for Arithmetic {
    type Field = Fr;
    type Params = Params;
    type Input = Input;

    fn info() -> Info {
        Info {
            name: "arithmetic",
            version: env!("CARGO_PKG_VERSION"),
            about: "Two secret elements have this product and this sum. They are the ends of long computations, which are \
                    what is measured; nothing is proved about those.",
            params_help: r#"{"products": 1000, "inversions": 100}"#,
            input_help: r#"{"start": 3}"#,
        }
    }

    fn blank(params: &Params) -> Result<Self, Error> {
        for (field, value, most) in
            [("products", params.products, PRODUCTS_MAX), ("inversions", params.inversions, INVERSIONS_MAX)]
        {
            if value > most {
                return Err(Error::BadParams(format!("field `{field}`: at most {most} was expected")));
            }
        }
        Ok(Arithmetic { params: params.clone(), start: None })
    }

    fn open(params: &Params, input: Input) -> Result<Self, Error> {
        Ok(Arithmetic { start: Some(Fr::from(input.start)), ..Arithmetic::blank(params)? })
    }

    fn synthesize(&self, _scope: Scope, cs: &mut Synthesis<'_, Fr>) -> Result<(), Error> {
        let missing = || SynthesisError::AssignmentMissing;
        let product =
            AllocatedNum::alloc(cs.namespace(|| "chain"), || Ok(self.chain(self.start.ok_or_else(missing)?)))?;
        let sum =
            AllocatedNum::alloc(cs.namespace(|| "inverses"), || Ok(self.inverses(self.start.ok_or_else(missing)?)))?;
        product.mul(cs.namespace(|| "product"), &sum)?.inputize(cs.namespace(|| "public product"))?;
        product.add(cs.namespace(|| "sum"), &sum)?.inputize(cs.namespace(|| "public sum"))?;
        Ok(())
    }
}

impl Arithmetic {
    /// x, then each time its product with x + 1.
    fn chain(&self, start: Fr) -> Fr {
        let factor = start + Fr::ONE;
        (0..self.params.products).fold(start, |x, _| x * factor)
    }

    /// The sum of the inverses of x, x + 1, x + 2, ...
    fn inverses(&self, start: Fr) -> Fr {
        let mut elements: Vec<Fr> = (0..self.params.inversions).map(|i| start + Fr::from(u64::from(i))).collect();
        Fr::invert_batch(&mut elements);
        elements.iter().sum()
    }
}

zkhost_guest::export_circuit!(Arithmetic);

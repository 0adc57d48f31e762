//! Write a circuit for zkhost.
//!
//! A circuit is an ordinary library crate. It implements [`Circuit`] with the gadgets of bellman (feature `bellman`) or
//! bellpepper (feature `bellpepper`), calls [`export_circuit!`], and `zkhost build` makes a WebAssembly component of it.
//! The same library runs natively in `cargo test`, see [`native`].
//!
//! ```
//! use zkhost_guest::bellman::ConstraintSystem;
//! use zkhost_guest::{Circuit, Error, Fr, Info, NoParams, Scope, Synthesis};
//!
//! /// I know two factors of a public product.
//! struct Product(Option<(u64, u64)>);
//!
//! #[derive(zkhost_guest::serde::Deserialize)]
//! #[serde(crate = "zkhost_guest::serde", deny_unknown_fields)]
//! struct Factors { left: u64, right: u64 }
//!
//! impl Circuit for Product {
//!     type Field = Fr;
//!     type Params = NoParams;
//!     type Input = Factors;
//!
//!     fn info() -> Info {
//!         Info { name: "product", version: "1.0.0", about: "Knowledge of two factors of a public number.",
//!                params_help: "", input_help: r#"{"left": 3, "right": 5}"# }
//!     }
//!     fn blank(_: &NoParams) -> Result<Self, Error> { Ok(Product(None)) }
//!     fn open(_: &NoParams, input: Factors) -> Result<Self, Error> { Ok(Product(Some((input.left, input.right)))) }
//!
//!     fn synthesize(&self, _: Scope, cs: &mut Synthesis<'_, Fr>) -> Result<(), Error> {
//!         use zkhost_guest::bellman::SynthesisError::AssignmentMissing;
//!         let value = self.0.map(|(left, right)| (Fr::from(left), Fr::from(right)));
//!         let left = cs.alloc(|| "left", || value.map(|v| v.0).ok_or(AssignmentMissing))?;
//!         let right = cs.alloc(|| "right", || value.map(|v| v.1).ok_or(AssignmentMissing))?;
//!         let product = cs.alloc_input(|| "product", || value.map(|v| v.0 * v.1).ok_or(AssignmentMissing))?;
//!         cs.enforce(|| "left * right = product", |lc| lc + left, |lc| lc + right, |lc| lc + product);
//!         Ok(())
//!     }
//! }
//! zkhost_guest::export_circuit!(Product);
//!
//! let run = zkhost_guest::native::run::<Product>(b"", br#"{"left": 3, "right": 5}"#)?;
//! assert_eq!(run.first_unsatisfied(), None);
//! assert_eq!(run.assignments[0].publics, [Fr::from(15)]);
//! # Ok::<(), Error>(())
//! ```

// Without a dialect nothing synthesises: what is left is `Fr`, the JSON helpers and the bindings of the contract.
#![cfg_attr(not(any(feature = "bellman", feature = "bellpepper")), allow(dead_code, unused_macros))]

mod circuit;
mod error;
#[cfg(target_arch = "wasm32")]
pub mod export;
pub mod fr;
#[cfg(feature = "gadgets")]
pub mod gadgets;
pub mod input;
pub mod job;
mod json;
pub mod native;
pub mod report;
mod shape;
pub mod sink;
mod synthesis;
mod witness;

#[cfg(feature = "bellman")]
pub use bellman;
#[cfg(feature = "bellpepper")]
pub use bellpepper_core;
pub use circuit::{Circuit, Counts, Info, NoParams, Plan, Scope, Segment};
pub use error::Error;
pub use fr::Fr;
pub use json::HexBytes;
pub use serde;
pub use synthesis::Synthesis;

/// Export a type that implements [`Circuit`] as the component of this crate. Does nothing when the crate is not compiled
/// to WebAssembly, so that the same library runs in native tests.
#[macro_export]
macro_rules! export_circuit {
    ($circuit:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            type Exported = $crate::export::Component<$circuit>;
    $crate::export::bindings::export_component!(Exported with_types_in $crate::export::bindings);
        };
    };
}

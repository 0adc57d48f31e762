//! Multi-scalar multiplication in G1 and G2: Pippenger's bucket method over signed digits.
//!
//! A [`Plan`] holds the nonzero digits of one list of scalars, sorted by bucket; any number of [`sum`]s over bases of the
//! same indices may use it. Zeros cost nothing, a one costs one addition, a small scalar as many as it has nonzero digits.
//! [`Table`]s of precomputed multiples of the bases reduce the bucket sets, at best to one.
//!
//! Everything is queued on the stream that is given; only [`Sums::finish`] waits.

mod group;
mod plan;
pub mod points;
mod sum;
mod table;
mod windows;

pub use group::{G1, G2, Group};
pub use plan::{Packed, Plan, Scalars};
pub use sum::{Sums, sum, sum_scratch_bytes};
pub use table::Table;
pub use windows::Windows;

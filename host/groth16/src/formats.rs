//! Files that other tools read and write: keys, proofs, public inputs, constraint systems, witnesses, symbols.
//!
//! Every decoder takes the whole file as bytes (a memory map will do), never allocates more than a small multiple of what
//! it was given, and says of bad input what is wrong, where, and what to do.

pub mod arkworks;
mod bellman;
pub mod eip2537;
mod error;
pub mod gnark;
mod iden3;
mod json;
pub mod plutus;
mod points;
mod reader;
mod sections;
mod shape;
pub mod snarkjs;
pub mod solidity;
mod sym;
mod zkey;
pub mod zokrates;

pub use bellman::{ExportError, KnownParams};
pub use bellman::{
    ParamsFile, Subgroup, Trailer, known_params, read_params, read_params_watched, read_vk, sha256, write_params,
    write_vk,
};
pub use error::{DecodeError, Problem};
pub use iden3::{R1csFile, read_r1cs, read_wtns, write_r1cs, write_wtns};
pub use points::Progress;
pub(crate) use reader::Reader;
pub use shape::{read_shape, write_shape};
pub use sym::{Sym, read_sym};
pub use zkey::{ZkeyExportError, ZkeyFile, ZkeyTerm, read_zkey, read_zkey_watched, write_zkey};

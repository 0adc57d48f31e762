//! Files that other tools read and write: bellman's keys, iden3's constraint systems and witnesses.
//!
//! Every decoder takes the whole file as bytes (a memory map will do), never allocates more than a small multiple of what
//! it was given, and says of bad input what is wrong, where, and what to do.

mod bellman;
mod error;
mod iden3;
mod reader;
mod sections;
mod shape;
mod sym;
mod zkey;

pub use bellman::{ExportError, KnownParams};
pub use bellman::{ParamsFile, Subgroup, Trailer, known_params, read_params, read_vk, sha256, write_params, write_vk};
pub use error::{DecodeError, Problem};
pub use iden3::{R1csFile, read_r1cs, read_wtns};
pub(crate) use reader::Reader;
pub use shape::{read_shape, write_shape};
pub use sym::{Sym, read_sym};
pub use zkey::{ZkeyExportError, ZkeyFile, ZkeyTerm, read_zkey, write_zkey};

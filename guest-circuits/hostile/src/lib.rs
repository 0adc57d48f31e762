//! A circuit that misbehaves in the way its parameters name: test data for the host.
//!
//! Without misbehaviour it is an honest small circuit, so that a test can compare the two. It speaks the contract
//! directly, for the SDK would not let it break the rules.
//!
//! The honest circuit has `segments` times [`SEGMENT_AUX`] aux variables and one public input. Aux 0 and 1 are the two
//! factors of the input; their product is the public input; every other aux variable is a bit. Constraint 0 is the product,
//! the others say that bits are bits.

#![cfg(target_arch = "wasm32")]

mod component;
mod params;
mod shape;
mod witness;

/// Aux variables of each segment: two full groups and one of two variables.
const SEGMENT_AUX: u64 = 130;
/// The modulus, least significant limb first: the smallest number that is not a canonical element.
const MODULUS: [u64; 4] = [0xffff_ffff_0000_0001, 0x53bd_a402_fffe_5bfe, 0x3339_d808_09a1_d805, 0x73ed_a753_299d_7d48];

//! One module a command: its arguments, what it does, and what it says.

pub mod bench;
pub mod build;
pub mod check;
pub mod convert;
pub mod doctor;
pub mod import_key;
pub mod inspect;
pub mod new;
pub mod prove;
mod prove_circom;
pub mod remote;
pub mod serve;
pub mod setup;
mod synthesis_report;
pub mod token;
pub mod trace;
pub mod verify;

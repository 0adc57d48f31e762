//! The zkhost command.
fn main() {}

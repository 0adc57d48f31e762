//! The scheduler, budget and arena in simulated worlds on virtual time: random ones by seed, and scenes for single
//! properties. A seed that fails is in the message and gives the same run again.

mod random;
mod scenes;
mod world;

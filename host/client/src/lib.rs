//! Talks to a running zkhost: what its HTTP interface says and hears ([`types`]), and a client for it ([`Client`]).
//!
//! ```no_run
//! # async fn example() -> Result<(), zkhost_client::Error> {
//! use zkhost_client::{Client, Submission};
//!
//! let client = Client::new("unix:/run/zkhost/zkhost.sock".parse()?);
//! let submission = Submission { circuit: "sapling-output".into(), key: Some("order-17".into()), ..Submission::default() };
//! let job = client.submit(&submission, std::fs::read("input.json").unwrap().into()).await?;
//! let job = client.wait(&job.id).await?;
//! let result = client.result(&job.id).await?;
//! # Ok(()) }
//! ```

mod address;
mod client;
pub mod types;

pub use address::{Address, BadAddress};
pub use client::{Client, Error, Submission, connector};

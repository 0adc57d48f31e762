//! Inputs on their way in: hashed, and, where inputs are kept at rest, sealed to disk while they arrive.

use super::{Host, SubmitError};
use crate::access::Identity;
use crate::config::Inputs;
use crate::input::{HeldInput, NoRoom};
use crate::store::{PIECE_BYTES, SealedInput, SpoolWriter, Spooled, StoreError};
use bytes::Bytes;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Bytes of an idempotency key at most.
pub(super) const KEY_BYTES_MAX: usize = 256;

/// An input of which a part is here.
pub struct Receiving {
    host: Arc<Host>,
    /// The name that its job will have.
    id: String,
    /// The idempotency key that this name comes from.
    key: Option<String>,
    /// It holds the last bytes of the input; boxed, so that a move leaves none behind.
    hasher: Box<Zeroizing<blake3::Hasher>>,
    bytes: u64,
    place: Place,
}

enum Place {
    /// Small, or never to be at rest.
    Memory(HeldInput),
    Disk(Box<SpoolWriter>),
}

/// An input that is here whole.
pub struct Received {
    pub(super) id: String,
    pub(super) key: Option<String>,
    /// Of its bytes, under the host's key.
    pub(super) hash: blake3::Hash,
    pub(super) at: At,
}

/// Where it is.
pub(super) enum At {
    /// In memory, to stay there.
    Memory(HeldInput),
    /// Sealed, in memory.
    Sealed(SealedInput),
    /// Sealed, in a file that is durable.
    File(Spooled),
}

/// Why an input was not received.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiveError {
    /// No memory.
    #[error("all memory for inputs is in use (setting `jobs.inputs_memory_bytes_max`); try again later")]
    NoRoom,
    /// No disk.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<NoRoom> for ReceiveError {
    fn from(_: NoRoom) -> Self {
        Self::NoRoom
    }
}

impl Host {
    /// Begin to receive the input of a job with this idempotency key, unless none could be accepted now.
    pub fn receive(self: &Arc<Self>, owner: &Identity, key: Option<&str>) -> Result<Receiving, SubmitError> {
        self.check_open()?;
        Ok(Receiving {
            id: job_id(&owner.owner, key)?,
            key: key.map(str::to_owned),
            hasher: Box::new(Zeroizing::new(self.vault.body_hasher())),
            bytes: 0,
            place: Place::Memory(self.input_memory.hold()),
            host: self.clone(),
        })
    }
}

impl Receiving {
    /// Bytes that are here.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Append.
    pub async fn extend(mut self, more: Bytes) -> Result<Self, ReceiveError> {
        self.hasher.update(&more);
        self.bytes += more.len() as u64;
        let at_rest = self.host.config.jobs.inputs == Inputs::Sealed;
        match &mut self.place {
            Place::Memory(held) if !at_rest || self.bytes <= PIECE_BYTES as u64 => {
                held.extend(&more)?;
                Ok(self)
            }
            _ => blocking(move || self.write(&more)).await,
        }
    }

    fn write(mut self, more: &[u8]) -> Result<Self, ReceiveError> {
        if let Place::Memory(held) = &self.place {
            let writer = self.host.store.spool().writer(&self.host.vault, &self.id).map_err(StoreError::from)?;
            let mut writer = Box::new(writer);
            writer.write(held.bytes()).map_err(StoreError::from)?;
            self.place = Place::Disk(writer);
        }
        if let Place::Disk(writer) = &mut self.place {
            writer.write(more).map_err(StoreError::from)?;
        }
        Ok(self)
    }

    /// All of it is here. Where it is at rest in a file, that is durable.
    pub async fn finish(self) -> Result<Received, ReceiveError> {
        let Self { host, id, key, hasher, place, .. } = self;
        let at = match place {
            Place::Memory(held) if host.config.jobs.inputs == Inputs::Memory => At::Memory(held),
            Place::Memory(held) => At::Sealed(SealedInput { sealed: host.vault.seal(&id, held.bytes()), file: None }),
            Place::Disk(writer) => At::File(blocking(move || Ok(writer.finish().map_err(StoreError::from)?)).await?),
        };
        Ok(Received { id, key, hash: hasher.finalize(), at })
    }
}

/// Work that waits for the disk.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ReceiveError> + Send + 'static,
) -> Result<T, ReceiveError> {
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(StoreError::Stopped.into()))
}

/// A job's name: that of its owner and key, so that a retry finds it; random without a key.
fn job_id(owner: &str, key: Option<&str>) -> Result<String, SubmitError> {
    let mut id = [0; 16];
    match key {
        Some(key) if key.is_empty() || key.len() > KEY_BYTES_MAX || key.chars().any(char::is_control) => {
            return Err(SubmitError::Key(key.len()));
        }
        Some(key) => {
            let mut hasher = blake3::Hasher::new_derive_key("zkhost 2026 job of an idempotency key");
            hasher.update(&(owner.len() as u64).to_le_bytes());
            hasher.update(owner.as_bytes());
            hasher.update(key.as_bytes());
            id.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        }
        None => getrandom::fill(&mut id).expect("the system has randomness"),
    }
    Ok(hex::encode(id))
}

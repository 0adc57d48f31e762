//! What is told of jobs.

use super::Host;
use crate::circuits::HostedCircuit;
use crate::scalars;
use crate::store::{Filter, JobRow, StoreError};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use zkhost_client::types::{Job, JobFailure, JobResult, JobState, VerifyAnswer};
use zkhost_engine::scheduler::{JobStatus, PartitionState};
use zkhost_groth16::Proof;

impl Host {
    /// A job as it stands; none if it is unknown or forgotten.
    pub fn job(&self, id: &str) -> Result<Option<Job>, StoreError> {
        // Looked up first: a job that ends in between is recorded before it leaves the queue.
        let live = self.queue.get(id);
        let Some(row) = self.store.job(id)? else { return Ok(None) };
        let mut job = job_of(row);
        let Some(live) = live.filter(|_| !job.state.has_ended()) else { return Ok(Some(job)) };
        job.started_ms = live.started_ms();
        if live.state() == JobState::Running {
            job.state = JobState::Running;
            if let Some(Ok(Some(JobStatus::Running { partitions, .. }))) = live.key().map(|key| self.engine.status(key))
            {
                job.partitions = partitions.iter().map(|state| partition_name(*state).to_owned()).collect();
            }
        } else if self.queue.is_parked(&live) {
            job.waits_for = Some("its circuit is not loaded".into());
        }
        Ok(Some(job))
    }

    /// How many partitions of running jobs are in each state.
    pub fn partitions(&self) -> BTreeMap<&'static str, u64> {
        let mut counts: BTreeMap<_, _> = PARTITION_NAMES.into_iter().map(|name| (name, 0)).collect();
        for key in self.queue.running().iter().filter_map(|live| live.key()) {
            if let Ok(Some(JobStatus::Running { partitions, .. })) = self.engine.status(key) {
                partitions.iter().for_each(|state| *counts.entry(partition_name(*state)).or_default() += 1);
            }
        }
        counts
    }

    /// A page of jobs, newest first, and where the next one begins.
    pub fn jobs(&self, filter: &Filter) -> Result<(Vec<Job>, Option<u64>), StoreError> {
        let rows = self.store.jobs(filter)?;
        let next = rows.last().filter(|_| rows.len() == filter.limit as usize).map(|row| row.seq);
        let job = |row: JobRow| {
            let live = self.live_state(&row.id).filter(|_| !row.state.has_ended());
            let mut job = job_of(row);
            job.state = live.unwrap_or(job.state);
            job
        };
        let wanted = |job: &Job| filter.state.is_none_or(|state| state == job.state);
        Ok((rows.into_iter().map(job).filter(wanted).collect(), next))
    }

    /// Wait until a job has ended, for some time at most.
    pub async fn wait(&self, id: &str, time: Duration) {
        let Some(mut state) = self.queue.get(id).map(|live| live.watch()) else { return };
        // It ends with an error if the host stops, and with a time-out otherwise; either way the job is told as it stands.
        let _ = tokio::time::timeout(time, state.wait_for(|state| state.has_ended())).await;
    }

    /// What a job proved; none if it has no proof.
    pub fn result(&self, id: &str) -> Result<Option<(JobResult, Vec<u8>)>, StoreError> {
        let (Some((proof, publics)), Some(row)) = (self.store.result(id)?, self.store.job(id)?) else {
            return Ok(None);
        };
        let publics = scalars::bytes_to_hex(&publics, proof.len() / Proof::BYTES);
        let circuit = row.circuit.to_string();
        Ok(Some((JobResult { id: id.to_owned(), circuit, proof: hex::encode(&proof), publics }, proof)))
    }

    /// Verify proofs, 192 bytes each, by a circuit's key.
    pub fn verify(
        &self,
        circuit: &Arc<HostedCircuit>,
        proof: &str,
        publics: &[Vec<String>],
    ) -> Result<VerifyAnswer, String> {
        let bytes = hex::decode(proof).map_err(|error| format!("the proof is no hexadecimal text: {error}"))?;
        if bytes.is_empty() || !bytes.len().is_multiple_of(Proof::BYTES) || bytes.len() / Proof::BYTES != publics.len()
        {
            let (bytes, sets) = (bytes.len(), publics.len());
            return Err(format!(
                "{bytes} bytes of proofs and {sets} arrays of public inputs; each proof has 192 bytes"
            ));
        }
        let publics = scalars::all_from_hex(publics)?;
        let mut proofs = vec![];
        for (index, bytes) in bytes.chunks(Proof::BYTES).enumerate() {
            match Proof::from_bytes(bytes) {
                Ok(proof) => proofs.push(proof),
                Err(error) => return Ok(invalid(format!("proof {index}: {error}"))),
            }
        }
        let claims: Vec<_> = proofs.iter().zip(publics.iter().map(Vec::as_slice)).collect();
        Ok(match circuit.verifier().verify_batch(&claims) {
            Ok(()) => VerifyAnswer { valid: true, reason: None },
            Err(error) => invalid(error.to_string()),
        })
    }
}

fn invalid(reason: String) -> VerifyAnswer {
    VerifyAnswer { valid: false, reason: Some(reason) }
}

fn job_of(row: JobRow) -> Job {
    Job {
        id: row.id,
        key: row.key,
        owner: row.owner,
        circuit: row.circuit.to_string(),
        priority: row.priority,
        state: row.state,
        submitted_ms: row.submitted_ms,
        started_ms: row.started_ms,
        ended_ms: row.ended_ms,
        deadline_ms: row.deadline_ms,
        metadata: row.metadata.and_then(|text| serde_json::from_str(&text).ok()),
        waits_for: None,
        partitions: vec![],
        failure: row.failure.map(|(code, message)| JobFailure { code, message }),
        stages_ms: row.stages.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
    }
}

/// The states of partitions as they are told. Those that are `proving` have a slot.
const PARTITION_NAMES: [&str; 6] = ["waiting", "synthesising", "ready", "proving", "verifying", "done"];

fn partition_name(state: PartitionState) -> &'static str {
    match state {
        PartitionState::Waiting => "waiting",
        PartitionState::Synthesising => "synthesising",
        PartitionState::Homeless | PartitionState::Ready => "ready",
        PartitionState::Proving(_) => "proving",
        PartitionState::Proved | PartitionState::Checking => "verifying",
        PartitionState::Releasing | PartitionState::Closed => "done",
    }
}

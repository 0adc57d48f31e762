//! `zkhost submit`, `status`, `cancel` and `jobs`: commands that talk to a host that serves.

use crate::error::{Code, Failure};
use crate::files;
use crate::output::Output;
use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use zkhost_client::types::{Job, JobList, JobPriority, JobResult, JobState};
use zkhost_client::{Address, Client, Submission};

/// Bytes of an input at most; the host has limits of its own.
const INPUT_BYTES_MAX: u64 = 1 << 30;

/// Bytes of public inputs in JSON at most.
const PUBLICS_BYTES_MAX: u64 = 1 << 20;

/// Where certificates of authority are on most systems.
const SYSTEM_AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Which host.
#[derive(Args)]
pub struct HostArgs {
    /// The host: unix:/PATH, http://HOST:PORT or https://HOST:PORT
    #[arg(long, value_name = "ADDRESS", env = "ZKHOST_HOST", default_value = "unix:/run/zkhost/zkhost.sock")]
    host: Address,
    /// A file with the token, where the host asks for one; $ZKHOST_TOKEN is read otherwise
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The certificates of authority to trust with https, PEM [default: the system's]
    #[arg(long, value_name = "FILE", env = "ZKHOST_CA")]
    ca: Option<PathBuf>,
}

impl HostArgs {
    fn client(&self) -> Result<Client> {
        let mut client = Client::new(self.host.clone());
        let token = match &self.token_file {
            Some(path) => {
                Some(std::fs::read_to_string(path).with_context(|| format!("token file {}", path.display()))?)
            }
            None => std::env::var("ZKHOST_TOKEN").ok(),
        };
        if let Some(token) = token {
            client = client.with_token(token.trim());
        }
        if matches!(self.host, Address::Https(_)) {
            client = client.with_authority(self.ca.as_deref().unwrap_or(Path::new(SYSTEM_AUTHORITIES)))?;
        }
        Ok(client)
    }

    fn ask<T>(&self, question: impl AsyncFnOnce(Client) -> Result<T>) -> Result<T> {
        let client = self.client()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no event loop")?;
        runtime.block_on(question(client))
    }
}

/// Submit a job to a host that serves
///
/// Returns when the job is accepted, which means on disk; with `--wait`, when it has ended. Submitting the same key again
/// joins the job.
#[derive(Args)]
#[command(after_help = "\
Example:
  zkhost submit sapling-output --input input.json --key order-17 --wait --out output.proof")]
pub struct SubmitArgs {
    /// The circuit: its name on the host, or its digest
    circuit: String,
    /// The input, `-` for standard input; it stays secret
    #[arg(long, short, value_name = "FILE")]
    input: PathBuf,
    /// Names the job for retries
    #[arg(long)]
    key: Option<String>,
    /// background, normal or urgent
    #[arg(long, default_value = "normal")]
    priority: JobPriority,
    /// Give the job up after so many seconds
    #[arg(long, value_name = "SECONDS")]
    deadline: Option<u64>,
    /// JSON to keep with the job
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
    /// The public inputs that the proof has to have, a file of JSON as `prove --public-out` writes
    #[arg(long, value_name = "FILE")]
    expect_public: Option<PathBuf>,
    /// Wait until the job has ended
    #[arg(long)]
    wait: bool,
    /// Wait, and write the proof here
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    host: HostArgs,
}

/// Show a job
#[derive(Args)]
pub struct StatusArgs {
    /// The job
    id: String,
    /// Wait until it has ended
    #[arg(long)]
    wait: bool,
    /// Write its proof here
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write here what the engine did for it and when, for `zkhost trace` and Perfetto
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    host: HostArgs,
}

/// Stop a job
#[derive(Args)]
pub struct CancelArgs {
    /// The job
    id: String,
    #[command(flatten)]
    host: HostArgs,
}

/// List jobs, newest first
#[derive(Args)]
pub struct JobsArgs {
    /// Only those in this state
    #[arg(long)]
    state: Option<JobState>,
    /// Only those of this circuit
    #[arg(long)]
    circuit: Option<String>,
    /// So many at most
    #[arg(long, default_value_t = 20)]
    limit: u32,
    #[command(flatten)]
    host: HostArgs,
}

/// A job, for people and for programs.
#[derive(Serialize)]
#[serde(transparent)]
struct Shown(Job);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Job { id, state, circuit, owner, partitions, waits_for, stages_ms, .. } = &self.0;
        write!(f, "{id}  {state:<9}  circuit {:.16}  of {owner}", circuit)?;
        if !partitions.is_empty() {
            write!(f, "\n  partitions: {}", partitions.join(", "))?;
        }
        if let Some(reason) = waits_for {
            write!(f, "\n  waits: {reason}")?;
        }
        for (stage, milliseconds) in stages_ms {
            write!(f, "\n  {stage:<14} {milliseconds:>10.1} ms")?;
        }
        Ok(())
    }
}

/// Several of them.
#[derive(Serialize)]
#[serde(transparent)]
struct ShownList(JobList);

impl fmt::Display for ShownList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.jobs.iter().try_for_each(|job| writeln!(f, "{}", Shown(job.clone())))
    }
}

/// Run `submit`.
pub fn submit(args: &SubmitArgs, output: Output) -> Result<()> {
    let input = files::read_secret(&args.input, "the input", INPUT_BYTES_MAX)?;
    let metadata = args.metadata.as_deref().map(serde_json::from_str).transpose();
    let metadata = metadata.map_err(|error| Failure::new(Code::Usage, format!("--metadata is no JSON: {error}")))?;
    let submission = Submission {
        circuit: args.circuit.clone(),
        key: args.key.clone(),
        priority: args.priority,
        deadline: args.deadline.map(Duration::from_secs),
        metadata,
        publics: args.expect_public.as_deref().map(read_publics).transpose()?,
        wait: None,
    };
    // Zeroed when the last part of it is dropped.
    let input = bytes::Bytes::from_owner(input);
    args.host.ask(async |client| {
        let job = client.submit(&submission, input).await?;
        conclude(&client, job, args.wait || args.out.is_some(), args.out.as_deref(), output).await
    })
}

/// Run `status`.
pub fn status(args: &StatusArgs, output: Output) -> Result<()> {
    args.host.ask(async |client| {
        let mut job = client.job(&args.id).await?;
        if let Some(path) = &args.trace {
            if args.wait {
                job = client.wait(&args.id).await?;
            }
            files::write(path, &client.trace(&args.id).await?)?;
        }
        conclude(&client, job, args.wait, args.out.as_deref(), output).await
    })
}

/// Run `cancel`.
pub fn cancel(args: &CancelArgs, output: Output) -> Result<()> {
    let job = args.host.ask(async |client| Ok(client.cancel(&args.id).await?))?;
    output.result(&Shown(job));
    Ok(())
}

/// Run `jobs`.
pub fn jobs(args: &JobsArgs, output: Output) -> Result<()> {
    let mut filters = vec![("limit", args.limit.to_string())];
    filters.extend(args.state.map(|state| ("state", state.name().to_owned())));
    filters.extend(args.circuit.clone().map(|circuit| ("circuit", circuit)));
    let list = args.host.ask(async |client| Ok(client.jobs(&filters).await?))?;
    output.result(&ShownList(list));
    Ok(())
}

/// Show a job, once it has ended if that is wanted; write its proof. A job that failed fails the command.
async fn conclude(client: &Client, job: Job, wait: bool, out: Option<&Path>, output: Output) -> Result<()> {
    let job = if wait { client.wait(&job.id).await? } else { job };
    if wait && job.state == JobState::Cancelled {
        let sentence = "it was cancelled and has no proof; submit it again with another --key";
        return Err(Failure::new(Code::Busy, format!("job {}: {sentence}", job.id)).into());
    }
    if let Some(out) = out.filter(|_| job.state != JobState::Failed) {
        let JobResult { proof, .. } = client.result(&job.id).await?;
        files::write(out, &hex::decode(proof).context("the host's answer is no hexadecimal text")?)?;
    }
    if let Some(failure) = &job.failure {
        let message = format!("job {}: {} ({})", job.id, failure.message, failure.code);
        return Err(Failure::new(code_of(&failure.code), message).into());
    }
    output.result(&Shown(job));
    Ok(())
}

/// The exit code of a job's failure.
fn code_of(code: &str) -> Code {
    match code {
        "unsatisfied" | "publics-differ" => Code::False,
        "bad-input" | "input-lost" | "key-unusable" => Code::File,
        "device-failed" | "engine-stopped" | "host-panicked" | "host-fault" => Code::Device,
        "deadline" | "circuit-busy" => Code::Busy,
        _ => Code::Guest,
    }
}

/// Public inputs as `prove` writes them: an array for one partition, an array of arrays for several.
fn read_publics(path: &Path) -> Result<Vec<Vec<String>>> {
    let bytes = files::read(path, "the public inputs", PUBLICS_BYTES_MAX)?;
    let one = serde_json::from_slice::<Vec<String>>(&bytes).map(|publics| vec![publics]);
    let publics = one.or_else(|_| serde_json::from_slice(&bytes));
    publics.with_context(|| {
        format!("public inputs {}: expected an array of 0x strings, or of such arrays", path.display())
    })
}

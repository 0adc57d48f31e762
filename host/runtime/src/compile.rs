//! Examining and compiling a component, in a child process with limits of its own.
//!
//! A compiler is a large program fed with a stranger's file, and nothing interrupts it: hostile components make it slow
//! or hungry, and upstream does not call that a fault. So it runs in a child that is given the component on its standard
//! input, limits its own address space and processor time before it reads on, and is killed when its time is up. The
//! parent reads nothing of the component but its length and digest.
//!
//! Input: five little-endian u64 (address space in bytes, processor time in seconds, [`Limits::component_bytes`],
//! [`Limits::memory_bytes`], the [`Kind`]), then the component to the end. Output: one byte for the kind of answer, then the native
//! code, or a sentence in UTF-8, to the end.

use crate::circom;
use crate::engine;
use crate::limits::{Limits, grouped};
use crate::world::examine;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Threads of a compiling child. Each costs address space, so their number does not follow the machine's.
const COMPILE_THREADS: u64 = 4;

/// Words before the component in a child's input.
const HEADER_WORDS: usize = 5;

/// Who compiles.
#[derive(Clone, Debug)]
pub enum Compiler {
    /// A child process: a program that calls [`compile_worker_main`] when it is given these arguments.
    Child {
        /// The program; usually the running one.
        program: PathBuf,
        /// Its arguments.
        args: Vec<OsString>,
    },
    /// This process, without limits on time and memory: for components one trusts as much as a program.
    InProcess,
}

/// Part of the keys of cached code: changed with anything that makes other code of the same file.
pub(crate) const REVISION: u8 = 1;

/// What a file is meant to be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A component that fits the contract.
    Component = 0,
    /// A witness module that circom's compiler wrote.
    Circom = 1,
}

/// Why there is no native code.
pub(crate) enum CompileFailure {
    /// The component is at fault: it does not fit the contract or the limits.
    Refused(String),
    /// The compiler failed, or passed a limit.
    Failed(String),
}

/// Kinds of answer.
const CODE: u8 = b'c';
const REFUSED: u8 = b'r';
const FAILED: u8 = b'f';

impl Compiler {
    /// Examine a file and compile it.
    pub(crate) fn compile(&self, kind: Kind, component: &[u8], limits: &Limits) -> Result<Vec<u8>, CompileFailure> {
        match self {
            Compiler::InProcess => compile_here(kind, component, limits),
            Compiler::Child { program, args } => {
                let mut command = Command::new(program);
                command.args(args).env_clear().env("RAYON_NUM_THREADS", COMPILE_THREADS.to_string());
                command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
                let child = command.spawn().map_err(|error| {
                    CompileFailure::Failed(format!("cannot start the compiler {}: {error}", program.display()))
                })?;
                compile_in(child, kind, component, limits)
            }
        }
    }
}

/// Examine and compile in this process.
fn compile_here(kind: Kind, component: &[u8], limits: &Limits) -> Result<Vec<u8>, CompileFailure> {
    let compile = || {
        match kind {
            Kind::Component => examine(component, limits).map(drop),
            Kind::Circom => circom::examine(component, limits),
        }
        .map_err(CompileFailure::Refused)?;
        let engine = engine::without_clock(kind).map_err(|error| CompileFailure::Failed(format!("{error:#}")))?;
        match kind {
            Kind::Component => engine.precompile_component(component),
            Kind::Circom => engine.precompile_module(&circom::prepare(component)),
        }
        .map_err(|error| CompileFailure::Refused(format!("the file cannot be compiled: {error:#}")))
    };
    catch_unwind(AssertUnwindSafe(compile)).unwrap_or_else(|_| {
        Err(CompileFailure::Failed("the compiler panicked on this file; please report this with the file".into()))
    })
}

/// Feed a child, wait for its answer no longer than the limit, and end it.
fn compile_in(mut child: Child, kind: Kind, component: &[u8], limits: &Limits) -> Result<Vec<u8>, CompileFailure> {
    let (mut stdin, stdout) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    let cpu_seconds = limits.compile_time.as_secs().saturating_add(1).saturating_mul(COMPILE_THREADS);
    let header = [limits.compile_memory_bytes, cpu_seconds, limits.component_bytes, limits.memory_bytes, kind as u64];
    // One byte more than the limit tells "at the limit" from "beyond it".
    let answer_max = limits.native_code_bytes.saturating_add(2);
    let (sender, receiver) = mpsc::channel();
    let (answer, status) = std::thread::scope(|scope| {
        // A child that dies early closes its input; its exit status, not this error, then tells why.
        scope.spawn(move || {
            let header: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
            let _ = stdin.write_all(&header).and_then(|()| stdin.write_all(component));
        });
        scope.spawn(move || {
            let mut answer = Vec::new();
            let read = stdout.take(answer_max).read_to_end(&mut answer);
            let _ = sender.send(read.map(|_| answer));
        });
        let answer = receiver.recv_timeout(limits.compile_time);
        let done = matches!(&answer, Ok(Ok(answer)) if (answer.len() as u64) < answer_max);
        (answer, end(&mut child, done))
    });
    let answer = match answer {
        Ok(answer) => {
            answer.map_err(|error| CompileFailure::Failed(format!("cannot read the compiler's answer: {error}")))?
        }
        Err(_) => {
            return Err(CompileFailure::Failed(format!(
                "compiling took longer than {:?} (setting `compile_time`); raise it if the component is to be trusted",
                limits.compile_time
            )));
        }
    };
    if answer.len() as u64 == answer_max {
        return Err(CompileFailure::Failed(format!(
            "the native code has more than {} bytes (setting `native_code_bytes`)",
            grouped(limits.native_code_bytes)
        )));
    }
    let sentence = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
    // Only a child that ended well wrote its answer to the end.
    let ended_well = status.as_ref().is_ok_and(|status| status.success());
    match answer.split_first() {
        Some((&CODE, code)) if ended_well => Ok(code.to_vec()),
        Some((&REFUSED, text)) => Err(CompileFailure::Refused(sentence(text))),
        Some((&FAILED, text)) => Err(CompileFailure::Failed(sentence(text))),
        _ => Err(CompileFailure::Failed(explain_death(status, limits))),
    }
}

/// Wait for a child that has closed its output, which ends it at once unless it is not what it should be; end any other.
fn end(child: &mut Child, done: bool) -> std::io::Result<ExitStatus> {
    const PATIENCE: Duration = Duration::from_secs(5);
    let started = Instant::now();
    while done && started.elapsed() < PATIENCE {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill()?;
    child.wait()
}

/// Why a child ended without an answer.
fn explain_death(status: std::io::Result<ExitStatus>, limits: &Limits) -> String {
    let status = match status {
        Ok(status) => status,
        Err(error) => return format!("the compiler's end cannot be learnt: {error}"),
    };
    match status.signal() {
        Some(_) => format!(
            "the compiler was stopped ({status}), most likely because it needed more than {} bytes of memory (setting \
             `compile_memory_bytes`)",
            grouped(limits.compile_memory_bytes)
        ),
        None => format!(
            "the compiler ended without an answer ({status}): the program that was started must call \
             `zkhost_runtime::compile_worker_main`"
        ),
    }
}

/// The whole life of a compiling child: read from standard input, answer on standard output.
///
/// A program that offers [`Compiler::Child`] calls this first thing when it is given the agreed arguments, before it
/// starts any thread, and exits with what it returns.
pub fn compile_worker_main() -> ExitCode {
    let (kind, answer) = match worker_answer() {
        Ok(code) => (CODE, code),
        Err(CompileFailure::Refused(text)) => (REFUSED, text.into_bytes()),
        Err(CompileFailure::Failed(text)) => (FAILED, text.into_bytes()),
    };
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(&[kind]).and_then(|()| stdout.write_all(&answer)).and_then(|()| stdout.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn worker_answer() -> Result<Vec<u8>, CompileFailure> {
    let failed = |error: std::io::Error| CompileFailure::Failed(format!("the compiler cannot read its input: {error}"));
    let mut stdin = std::io::stdin().lock();
    let mut header = [0; 8 * HEADER_WORDS];
    stdin.read_exact(&mut header).map_err(failed)?;
    let mut words = header.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
    let mut word = || words.next().expect("the header has this many words");
    let (address_space, cpu_seconds, component_bytes, memory_bytes) = (word(), word(), word(), word());
    let kind = if word() == Kind::Circom as u64 { Kind::Circom } else { Kind::Component };
    confine(address_space, cpu_seconds)
        .map_err(|error| CompileFailure::Failed(format!("the compiler cannot limit itself: {error}")))?;
    let mut component = Vec::new();
    stdin.take(component_bytes.saturating_add(1)).read_to_end(&mut component).map_err(failed)?;
    compile_here(kind, &component, &Limits { component_bytes, memory_bytes, ..Limits::default() })
}

/// Limit this process for the rest of its life, or leave a limit that is lower already. The limit on processor time is
/// for a child whose parent died; otherwise the parent ends it before.
fn confine(address_space: u64, cpu_seconds: u64) -> rustix::io::Result<()> {
    let limits = [(Resource::Core, 0), (Resource::Cpu, cpu_seconds), (Resource::As, address_space)];
    limits.into_iter().try_for_each(|(resource, wanted)| {
        let value = Some(getrlimit(resource).maximum.map_or(wanted, |inherited| inherited.min(wanted)));
        setrlimit(resource, Rlimit { current: value, maximum: value })
    })
}

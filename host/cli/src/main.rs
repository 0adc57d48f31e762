//! The zkhost command.

mod build;
mod circom;
mod circuit;
mod commands;
mod device;
mod engine;
mod error;
mod files;
mod formats;
mod interrupt;
mod keys;
mod limits;
mod measure;
mod output;
mod progress;
mod scalars;
mod version;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use output::Output;
use std::process::ExitCode;

/// Groth16 proofs for circuits that arrive as WebAssembly components
#[derive(Parser)]
#[command(name = "zkhost", version, long_version = version::LONG.as_str(), arg_required_else_help = true)]
#[command(after_help = "\
From a new circuit to a verified proof:
  zkhost new product && cd product
  zkhost build --out product.wasm
  zkhost check product.wasm --input example-input.json
  zkhost setup product.wasm --out product.zkimage --vk-out product.vk
  zkhost prove product.wasm --key product.zkimage --input example-input.json --out product.proof --public-out product.json
  zkhost verify --vk product.vk --proof product.proof --public product.json

Exit codes: 0 done, 1 a proof or constraint is false, 2 usage, 3 input or file, 4 guest, 5 device, 6 busy or cancelled.")]
struct Cli {
    /// Write the result, or the error, as one JSON object on standard output
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    New(commands::new::NewArgs),
    Build(commands::build::BuildArgs),
    Inspect(commands::inspect::InspectArgs),
    Check(commands::check::CheckArgs),
    Setup(commands::setup::SetupArgs),
    ImportKey(commands::import_key::ImportKeyArgs),
    Prove(commands::prove::ProveArgs),
    Verify(commands::verify::VerifyArgs),
    Convert(commands::convert::ConvertArgs),
    Bench(commands::bench::BenchArgs),
    Trace(commands::trace::TraceArgs),
    Serve(commands::serve::ServeArgs),
    Token(commands::token::TokenArgs),
    Submit(commands::remote::SubmitArgs),
    Status(commands::remote::StatusArgs),
    Cancel(commands::remote::CancelArgs),
    Jobs(commands::remote::JobsArgs),
    Doctor(commands::doctor::DoctorArgs),
    /// Print a shell's completions of this command
    ///
    /// For bash: `zkhost completions bash > ~/.local/share/bash-completion/completions/zkhost`
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Compile a component for the zkhost that started this one
    #[command(name = circuit::COMPILE_WORKER, hide = true)]
    CompileWorker,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if matches!(cli.command, Command::CompileWorker) {
        return zkhost_runtime::compile_worker_main();
    }
    let output = Output::new(cli.json);
    // A host that serves ends its jobs in order.
    if !matches!(cli.command, Command::Serve(_)) {
        interrupt::install(output);
    }
    match run(&cli.command, output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => ExitCode::from(output.failure(&error)),
    }
}

fn run(command: &Command, output: Output) -> anyhow::Result<()> {
    match command {
        Command::New(args) => commands::new::run(args, output),
        Command::Build(args) => commands::build::run(args, output),
        Command::Inspect(args) => commands::inspect::run(args, output),
        Command::Check(args) => commands::check::run(args, output),
        Command::Setup(args) => commands::setup::run(args, output),
        Command::ImportKey(args) => commands::import_key::run(args, output),
        Command::Prove(args) => commands::prove::run(args, output),
        Command::Verify(args) => commands::verify::run(args, output),
        Command::Convert(args) => commands::convert::run(args, output),
        Command::Bench(args) => commands::bench::run(args, output),
        Command::Trace(args) => commands::trace::run(args, output),
        Command::Serve(args) => commands::serve::run(args),
        Command::Token(args) => commands::token::run(args, output),
        Command::Submit(args) => commands::remote::submit(args, output),
        Command::Status(args) => commands::remote::status(args, output),
        Command::Cancel(args) => commands::remote::cancel(args, output),
        Command::Jobs(args) => commands::remote::jobs(args, output),
        Command::Doctor(args) => commands::doctor::run(args, output),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "zkhost", &mut script);
            output.text(&String::from_utf8_lossy(&script));
            Ok(())
        }
        // Handled before anything else is set up.
        Command::CompileWorker => Ok(()),
    }
}

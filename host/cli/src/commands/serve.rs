//! `zkhost serve`

use crate::circuit::COMPILE_WORKER;
use crate::error::{Code, Failure};
use crate::version;
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::filter::LevelFilter;
use zkhost_runtime::Compiler;
use zkhost_service::{Config, HostParts, Server, ServerError, StartError};

/// Run the host as a service
///
/// Circuits are folders of the watched folder (`circuits` in the data folder), each with a manifest, or are uploaded. Jobs
/// are accepted when they are on disk and survive a crash. SIGTERM or Ctrl-C lets jobs end that run; a second one stops at
/// once. What waits or ran then is there at the next start. OPERATING.md explains it all.
#[derive(Args)]
#[command(after_help = "\
Examples:
  zkhost serve --data /var/lib/zkhost
  zkhost serve --config /etc/zkhost.toml
  ZKHOST_JOBS__RUNNING_MAX=4 zkhost serve --tcp 127.0.0.1:7878")]
pub struct ServeArgs {
    /// The configuration, TOML; every key has a default
    #[arg(long, short, value_name = "FILE", env = "ZKHOST_CONFIG")]
    config: Option<PathBuf>,
    /// The data folder [default: zkhost-data]
    #[arg(long, value_name = "FOLDER", env = "ZKHOST_DATA")]
    data: Option<PathBuf>,
    /// Listen on this address and port as well as on the Unix socket
    #[arg(long, value_name = "ADDRESS:PORT")]
    tcp: Option<SocketAddr>,
    /// How logs, on standard error, are written
    #[arg(long, value_enum, default_value = "text", env = "ZKHOST_LOG_FORMAT")]
    log_format: LogFormat,
    /// What is logged: error, warn, info, debug or off
    #[arg(long, value_name = "LEVEL", default_value = "info", env = "ZKHOST_LOG")]
    log: LevelFilter,
}

#[derive(Clone, Copy, ValueEnum)]
enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

impl ServeArgs {
    /// The configuration: the file, then the environment, then the command line.
    pub fn config(&self) -> Result<Config> {
        let (text, place) = match &self.config {
            Some(path) => {
                let text = std::fs::read_to_string(path);
                (
                    text.with_context(|| format!("cannot read the configuration {}", path.display()))?,
                    path.display().to_string(),
                )
            }
            None => (String::new(), "of the environment".into()),
        };
        let variables: Vec<_> = std::env::vars().filter(|(name, _)| name.starts_with("ZKHOST_")).collect();
        let mut config = Config::with_environment(&text, &place, &variables)?;
        config.data = self.data.clone().or(config.data);
        config.listen.tcp = self.tcp.or(config.listen.tcp);
        config.check().map_err(|reason| Failure::new(Code::Usage, reason))?;
        Ok(config)
    }
}

/// Run the command.
pub fn run(args: &ServeArgs) -> Result<()> {
    let config = args.config()?;
    let logs = tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(args.log).with_target(false);
    match args.log_format {
        LogFormat::Json => logs.json().flatten_event(true).init(),
        LogFormat::Text => logs.with_ansi(false).init(),
    }
    let program = std::env::current_exe().context("cannot find this program, to start the compiler with it")?;
    let compiler = Compiler::Child { program, args: vec![COMPILE_WORKER.into()] };
    let drain = Duration::from_secs(config.jobs.drain_seconds);
    let socket = config.unix_socket();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no threads to serve with")?;
    let served = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).context("signals cannot be handled")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("signals cannot be handled")?;
        let parts = HostParts { config, compiler, version: version::of_service() };
        let server = Server::start(parts).await.map_err(|error| match error {
            ServerError::Start(StartError::InUse(_)) => Failure::new(Code::Busy, error.to_string()).into(),
            error => anyhow::Error::from(error),
        })?;
        let tcp = server.tcp().map(|address| address.to_string());
        let socket = socket.map(|path| format!("unix:{}", path.display()));
        let addresses = socket.into_iter().chain(tcp).collect::<Vec<_>>().join(" and ");
        tracing::info!(%addresses, "zkhost listens");
        let mut any = async || {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        any().await;
        tracing::info!("draining: jobs that run are finished; a second signal stops them");
        server.stop(drain, any()).await;
        tracing::info!("stopped");
        Ok(())
    });
    // A circuit that is being loaded is not waited for.
    runtime.shutdown_background();
    served
}

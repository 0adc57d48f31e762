//! `zkhost inspect`

use crate::circuit::CircuitArgs;
use crate::error::{Code, Failure};
use crate::files;
use crate::output::Output;
use crate::progress::Stages;
use anyhow::Result;
use clap::Args;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use zkhost_groth16::Encoding;
use zkhost_runtime::examine;

/// Show what a circuit says of itself, and its constraint system
#[derive(Args)]
#[command(after_help = "\
Examples:
  zkhost inspect spend.wasm
  zkhost inspect merkle.wasm --params '{\"arity\": 8}'")]
pub struct InspectArgs {
    #[command(flatten)]
    circuit: CircuitArgs,
}

#[derive(Serialize)]
struct InspectResult {
    name: String,
    version: String,
    about: String,
    /// What parameters mean, as a caller would write them.
    params: String,
    /// What the input holds, as a caller would write it.
    input: String,
    /// BLAKE3 of the component.
    component: String,
    /// BLAKE3 of the constraint system: the circuit's name in keys.
    shape: String,
    /// The interfaces it imports and exports.
    imports: Vec<String>,
    exports: Vec<String>,
    /// Bytes of memory that an instance starts with.
    memory_bytes: u64,
    /// Whether it computes with wide arithmetic; without, it is several times slower.
    wide_arithmetic: bool,
    constraints: usize,
    /// Public inputs, the constant one excluded.
    publics: u32,
    /// Private variables.
    aux: u32,
    /// Terms of A, B and C, merged.
    terms: [usize; 3],
    /// log2 of the evaluation domain.
    log2_domain: u32,
    partitions: u32,
    /// Segments of each partition.
    segments: usize,
    /// How elements travel: canonical or Montgomery.
    encoding: &'static str,
    /// The limits in force; times in seconds.
    limits: BTreeMap<&'static str, u64>,
}

impl fmt::Display for InspectResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}\n{}\n", self.name, self.version, self.about)?;
        let params = if self.params.is_empty() { "none" } else { &self.params };
        writeln!(f, "parameters   {params}\ninput        {}", self.input)?;
        writeln!(f, "component    {}\nshape        {}", self.component, self.shape)?;
        let wide =
            if self.wide_arithmetic { "wide arithmetic" } else { "no wide arithmetic: slow, build it with zkhost" };
        writeln!(f, "imports      {}", self.imports.join(", "))?;
        writeln!(f, "exports      {}", self.exports.join(", "))?;
        writeln!(f, "instances    start with {} bytes of memory; {wide}", self.memory_bytes)?;
        writeln!(f, "constraints  {} (domain 2^{})", self.constraints, self.log2_domain)?;
        writeln!(f, "variables    {} public, {} private", self.publics, self.aux)?;
        let [a, b, c] = self.terms;
        writeln!(f, "terms        A {a}, B {b}, C {c}")?;
        let InspectResult { partitions, segments, encoding, .. } = self;
        writeln!(f, "plan         partitions {partitions}, segments of each {segments}, elements {encoding}")?;
        let limits = self.limits.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
        write!(f, "limits       {}", limits.join("\n             "))
    }
}

/// Run the command.
pub fn run(args: &InspectArgs, output: Output) -> Result<()> {
    let (path, limits) = args.circuit.component()?;
    let component = files::read(path, "the component", limits.component_bytes)?;
    let examined = examine(&component, &limits)
        .map_err(|problem| Failure::new(Code::Guest, format!("component {}: {problem}", path.display())))?;
    let mut stages = Stages::new(output);
    let loaded = args.circuit.load(&mut stages)?;
    let info = loaded.circuit.describe()?;
    let layout = loaded.plan(&mut stages)?;
    let shape = loaded.shape(&mut stages)?;
    output.result(&InspectResult {
        name: info.name,
        version: info.version,
        about: info.about,
        params: info.params_help,
        input: info.input_help,
        component: loaded.circuit.digest().to_string(),
        shape: shape.hash().to_string(),
        imports: examined.imports,
        exports: examined.exports,
        memory_bytes: examined.memory_bytes,
        wide_arithmetic: examined.wide_arithmetic,
        constraints: shape.constraints(),
        publics: shape.public_count,
        aux: shape.aux_count,
        terms: [0, 1, 2].map(|matrix| shape.matrices[matrix].terms()),
        log2_domain: shape.log2_domain(),
        partitions: layout.partitions,
        segments: layout.segments.len(),
        encoding: match layout.encoding {
            Encoding::Canonical => "canonical",
            Encoding::Montgomery => "Montgomery",
        },
        limits: loaded.circuit.limits().named(),
    });
    Ok(())
}

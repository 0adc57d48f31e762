//! What is counted, for Prometheus.

use crate::host::Host;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// One label and its value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Label {
    kind: String,
}

fn label(kind: &str) -> Label {
    Label { kind: kind.to_owned() }
}

type Histograms = Family<Label, Histogram, fn() -> Histogram>;

/// The metrics of a host.
pub struct Metrics {
    registry: Registry,
    accepted: Counter,
    ended: Family<Label, Counter>,
    refusals: Family<Label, Counter>,
    stages: Histograms,
    gauges: Family<Label, Gauge>,
    bytes: Family<Label, Gauge>,
    partitions: Family<Label, Gauge>,
    slots: Family<Label, Gauge>,
    engine: Family<Label, Gauge>,
}

/// From a millisecond to half an hour.
fn seconds() -> Histogram {
    Histogram::new([0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1800.0])
}

impl Default for Metrics {
    fn default() -> Self {
        let (accepted, ended, refusals) = (Counter::default(), Family::default(), Family::default());
        let stages = Histograms::new_with_constructor(seconds);
        let (gauges, bytes, engine) = (Family::default(), Family::default(), Family::default());
        let (partitions, slots) = (Family::default(), Family::default());
        let mut registry = Registry::with_prefix("zkhost");
        registry.register("jobs_accepted", "Jobs that were accepted", accepted.clone());
        registry.register("jobs_ended", "Jobs that ended, by how", ended.clone());
        registry.register("refusals", "Requests that were refused, by the problem's code", refusals.clone());
        registry.register("stage_seconds", "Time of a job's stages, summed over its partitions", stages.clone());
        registry.register("now", "Things there are now", gauges.clone());
        registry.register("bytes", "Bytes in use, by budget, and their limits", bytes.clone());
        registry.register(
            "partitions",
            "Partitions of running jobs, by state; `proving` ones have a slot",
            partitions.clone(),
        );
        registry.register("slots", "Slots, by device", slots.clone());
        registry.register("engine_events", "What happened in the engine since its start", engine.clone());
        Self { registry, accepted, ended, refusals, stages, gauges, bytes, partitions, slots, engine }
    }
}

impl Metrics {
    /// A job was accepted.
    pub fn accepted(&self) {
        self.accepted.inc();
    }

    /// A job ended like this.
    pub fn ended(&self, state: &str) {
        self.ended.get_or_create(&label(state)).inc();
    }

    /// A request was refused with this code.
    pub fn refused(&self, code: &str) {
        self.refusals.get_or_create(&label(code)).inc();
    }

    /// A stage of a job took so long.
    pub fn stage(&self, stage: &str, milliseconds: f64) {
        self.stages.get_or_create(&label(stage)).observe(milliseconds / 1e3);
    }

    /// All of it in OpenMetrics' text form, with what the host has now.
    pub fn text(&self, host: &Host) -> Result<String, std::fmt::Error> {
        let gauge = |family: &Family<Label, Gauge>, kind: &str, value: u64| {
            family.get_or_create(&label(kind)).set(i64::try_from(value).unwrap_or(i64::MAX));
        };
        let health = host.health();
        gauge(&self.gauges, "jobs_queued", health.queued);
        gauge(&self.gauges, "jobs_running", health.running);
        gauge(&self.gauges, "circuits", health.circuits);
        let circuits = host.registry().all();
        gauge(&self.gauges, "keys_resident", circuits.iter().filter(|circuit| circuit.is_resident()).count() as u64);
        gauge(&self.bytes, "inputs", host.input_memory().used_bytes());
        for (index, device) in host.engine().devices().iter().enumerate() {
            gauge(&self.slots, &format!("device_{index}"), device.spec().slots.into());
        }
        host.partitions().iter().for_each(|(state, count)| gauge(&self.partitions, state, *count));
        if let Ok((usage, counters)) = host.engine().usage() {
            gauge(&self.bytes, "guests", usage.host_bytes);
            gauge(&self.bytes, "guests_limit", host.config().engine.guest_bytes_max);
            gauge(&self.bytes, "pinned", usage.pinned_bytes);
            gauge(&self.bytes, "pinned_limit", host.config().engine.arena_bytes);
            for (index, (device, bytes)) in host.engine().devices().iter().zip(&usage.device_bytes).enumerate() {
                gauge(&self.bytes, &format!("device_{index}"), *bytes);
                gauge(&self.bytes, &format!("device_{index}_limit"), device.memory().capacity_bytes);
            }
            gauge(&self.engine, "key_loads", counters.loads);
            gauge(&self.engine, "key_evictions", counters.evictions);
            gauge(&self.engine, "retries", counters.retries);
            gauge(&self.engine, "faulty_proofs", counters.faulty_proofs);
            gauge(&self.engine, "device_losses", counters.device_losses);
        }
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

//! What the world does on the scheduler's orders: guests, slots and loaders, each with its faults.

use super::*;

impl World {
    pub(super) fn obey(&mut self) {
        loop {
            let actions = self.scheduler.take_actions();
            if actions.is_empty() {
                break;
            }
            for action in actions {
                self.order.push(describe(&action));
                self.act(action);
            }
        }
        self.check_usage();
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Admit { partition, leases } => {
                let run = self.run_mut(partition);
                assert_eq!(leases.len(), run.submission.segments.len());
                assert!(run.admitted.insert(partition.index, leases).is_none(), "a partition is admitted once");
            }
            Action::Synthesise { partition, segment } => self.synthesise(partition, segment),
            Action::KeepGuests { job, count } => {
                let guests = &mut self.runs.get_mut(&job).unwrap().guests;
                guests.resting = guests.resting.min(count.saturating_sub(guests.writing));
            }
            Action::Evict { device, circuit } => self.order_load(device, LoaderOrder::Evict(circuit)),
            Action::Load { device, circuit } => self.order_load(device, LoaderOrder::Load(circuit)),
            Action::Restart { device } => {
                assert!(
                    self.devices[usize::from(device.0)].proving.is_empty(),
                    "no slot works while a device restarts"
                );
                self.order_load(device, LoaderOrder::Restart);
            }
            Action::Prove { slot, partition, circuit } => self.prove(slot, partition, circuit),
            Action::Check { partition, proof } => self.check(partition, proof),
            Action::Abort { job } => self.abort(job),
            Action::Release { partition } => {
                let nanos = self.below(MILLISECOND);
                self.after(nanos, Happening::Report(Report::Released { partition }));
            }
            Action::End { job, outcome } => self.end(job, outcome),
            Action::Drained => {
                assert!(self.runs.values().all(|run| run.outcome.is_some()), "drained means that no job is left");
                self.drained = true;
            }
        }
    }

    fn synthesise(&mut self, partition: PartitionKey, segment: u32) {
        self.synthesising += 1;
        assert!(self.synthesising <= self.setup.config.synthesis_workers, "orders wait for a worker");
        let guests = &mut self.run_mut(partition).guests;
        guests.writing += 1;
        match guests.resting {
            0 => guests.opened += 1,
            _ => guests.resting -= 1,
        }
        let panics = self.setup.faults.panic;
        let result = if self.run_mut(partition).truth.guest_fault == Some((partition.index, segment)) {
            Err(SynthesisFault::Guest("unreachable executed".into()))
        } else if self.chance(panics) {
            Err(SynthesisFault::Panicked)
        } else {
            Ok(())
        };
        let nanos = self.within(self.setup.synthesis_nanos.clone());
        self.after(nanos, Happening::Report(Report::Synthesised { partition, segment, result }));
    }

    fn prove(&mut self, slot: SlotId, partition: PartitionKey, circuit: CircuitId) {
        let device = &mut self.devices[usize::from(slot.device.0)];
        assert!(device.resident.contains_key(&circuit), "a slot proves with a key that is there");
        assert!(device.proving.insert(slot.index, (partition, circuit)).is_none(), "a slot has one partition");
        let now = self.now;
        let run = self.run_mut(partition);
        assert_eq!(run.submission.circuit, circuit);
        assert!(run.ready_at.contains_key(&partition.index), "a partition is proved when all segments are written");
        run.proving_at.entry(partition.index).or_insert(now);
        run.slots.push((partition.index, slot));
        let fault = self.next_fault();
        let rates = self.setup.faults;
        let result = match fault {
            Some(Fault::Failed) => Err(DeviceFault::Failed("launch failed".into())),
            Some(Fault::Lost) => Err(DeviceFault::Lost("illegal address".into())),
            Some(Fault::Panicked) => Err(DeviceFault::Panicked),
            Some(Fault::Faulty) => Ok(PartitionProof { bytes: proof_of(partition), publics: vec![] }),
            None if self.chance(rates.failed) => Err(DeviceFault::Failed("out of memory".into())),
            None if self.chance(rates.lost) => Err(DeviceFault::Lost("fell off the bus".into())),
            None => Ok(PartitionProof { bytes: proof_of(partition), publics: vec![] }),
        };
        let faulty = fault == Some(Fault::Faulty) || self.chance(rates.faulty);
        self.run_mut(partition).computed.insert(partition.index, (slot, !faulty));
        let nanos = self.within(self.setup.prove_nanos.clone());
        self.after(nanos, Happening::Report(Report::Proved { slot, partition, result }));
    }

    fn next_fault(&mut self) -> Option<Fault> {
        let call = self.device_calls;
        self.device_calls += 1;
        self.setup.fault_at.filter(|&(at, _)| at == call).map(|(_, fault)| fault)
    }

    fn check(&mut self, partition: PartitionKey, proof: ProofBytes) {
        self.checking += 1;
        assert!(self.checking <= self.setup.config.check_workers);
        assert_eq!(proof, proof_of(partition), "a partition's own proof is checked");
        let run = self.run_mut(partition);
        let good = run.computed[&partition.index].1;
        let verdict = if run.truth.unsatisfied == Some(partition.index) {
            Verdict::Unsatisfied(Unsatisfied { index: 7, name: None })
        } else if good {
            Verdict::Valid
        } else {
            Verdict::Faulty
        };
        let nanos = self.below(3 * MILLISECOND);
        self.after(nanos, Happening::Report(Report::Checked { partition, verdict }));
    }

    /// Workers of the job notice soon.
    fn abort(&mut self, job: JobKey) {
        let about = |happening: &Happening| match happening {
            Happening::Report(Report::Synthesised { partition, .. } | Report::Proved { partition, .. }) => {
                partition.job == job
            }
            _ => false,
        };
        let affected: Vec<_> = self.happenings.iter().filter(|(_, h)| about(h)).map(|(&at, _)| at).collect();
        for at in affected {
            let Some(Happening::Report(report)) = self.happenings.remove(&at) else { unreachable!() };
            let soon = self.now.plus_nanos(self.within(ABORT_NANOS));
            let report = match report {
                report if at.0 <= soon => report,
                Report::Synthesised { partition, segment, .. } => {
                    Report::Synthesised { partition, segment, result: Err(SynthesisFault::Cancelled) }
                }
                Report::Proved { slot, partition, .. } => {
                    Report::Proved { slot, partition, result: Err(DeviceFault::Cancelled) }
                }
                report => report,
            };
            self.at(at.0.min(soon), Happening::Report(report));
        }
    }

    fn order_load(&mut self, device: DeviceId, order: LoaderOrder) {
        self.devices[usize::from(device.0)].loader.push_back(order);
        self.next_load(device);
    }

    /// A device's loader does one thing at a time, in order.
    pub(super) fn next_load(&mut self, id: DeviceId) {
        while !self.devices[usize::from(id.0)].loading {
            let device = &mut self.devices[usize::from(id.0)];
            let Some(order) = device.loader.pop_front() else { break };
            match order {
                LoaderOrder::Evict(circuit) => {
                    let in_use = device.proving.values().any(|&(_, other)| other == circuit);
                    assert!(!in_use, "what a slot uses is not evicted");
                    assert!(device.resident.remove(&circuit).is_some(), "what is evicted was there");
                }
                LoaderOrder::Load(circuit) => {
                    let used: u64 = device.resident.values().sum();
                    let capacity = self.setup.devices[usize::from(id.0)].1.capacity_bytes;
                    assert!(used + self.circuit_bytes[&circuit] <= capacity, "a load finds the room it was granted");
                    let fails = self.setup.faults.load;
                    let result = match self.next_fault() {
                        Some(Fault::Lost) => Err(DeviceFault::Lost("illegal address".into())),
                        Some(_) => Err(DeviceFault::Failed("out of memory".into())),
                        None if self.chance(fails) => Err(DeviceFault::Failed("out of memory".into())),
                        None => Ok(()),
                    };
                    self.begin_load(id, Report::Loaded { device: id, circuit, result });
                }
                LoaderOrder::Restart => {
                    let fails = self.setup.faults.restart;
                    let failed = self.next_fault().is_some() || self.chance(fails);
                    let result = if failed { Err(DeviceFault::Failed("no device".into())) } else { Ok(()) };
                    self.begin_load(id, Report::Restarted { device: id, result });
                }
            }
        }
    }

    fn begin_load(&mut self, id: DeviceId, report: Report) {
        self.devices[usize::from(id.0)].loading = true;
        let nanos = self.within(self.setup.load_nanos.clone());
        self.after(nanos, Happening::LoaderDone(id, report));
    }
}

//! The end of a run: frames still in flight are counted, and the report is made.

use super::account::tally;
use super::{InFlight, Report, SLEEP_MAX_NS, Supervisor, Worker, load_sample};
use crate::cable::FrameTally;
use crate::cable::impairment::Injected;
use crate::clock::monotonic_ns;
use crate::observer::Observer;
use crate::timer;
use proto::units::Instant;
use std::os::fd::AsFd;

/// The cables count as empty when no frame has come for so long after the stop.
const QUIET_NS: u64 = 100_000_000;
/// Upper limit of the time spent waiting for that.
const DRAIN_MAX_NS: u64 = 1_000_000_000;

impl Worker {
    /// Makes the report. Devices handle nothing any more.
    pub(super) fn finish(mut self, supervisor: &impl Supervisor, cpu_before: u64) -> Report {
        let stop = self.run.plan.stop;
        let reached = self.run.clock.now() >= stop;
        let cut_short = !reached || self.next_instant() < stop;
        let stopped_at = if cut_short { self.now } else { stop };
        let on_the_line = tally(&self.departures);
        let waiting = tally(&self.arrivals);
        self.drain(supervisor);
        self.sample_until(stopped_at);
        let recording = self.run.recorder.finish(stopped_at, &mut self.run.devices);
        let injected = Injected::by(self.run.impairers.iter().flatten());
        let end = load_sample(&self.run.exchange);
        let departures = self.meter.departures;
        let (lateness, timeline) = self.meter.finish(&self.run.clock, stopped_at, end);
        let exchange = self.run.exchange.report(&self.run.lines);
        let drained = exchange.received.iter().map(|line| line.counts.drained);
        let on_cables = drained.fold(waiting, FrameTally::plus);
        Report {
            process: self.run.process,
            stopped_at,
            cut_short,
            priority: self.priority,
            departures,
            changes: self.changes,
            lateness,
            timeline,
            in_flight: InFlight { on_the_line, on_cables },
            injected,
            unwired: self.unwired,
            exchange,
            wall_ns: end.wall_ns.saturating_sub(self.run.clock.origin_ns()),
            cpu_ns: end.cpu_ns - cpu_before,
            recording,
        }
    }

    /// Takes the samples that were due before `end` but that the loop did not reach. The recorder takes the one
    /// at `end` when it finishes.
    fn sample_until(&mut self, end: Instant) {
        while let Some(due) = self.run.recorder.next_due().filter(|due| *due < end) {
            self.now = self.now.max(due);
            self.run.recorder.sample(self.now, &mut self.run.devices);
            if self.run.recorder.next_due() <= Some(due) {
                return;
            }
        }
    }

    /// Counts frames that were on cables at the stop: reads the sockets until they stay empty.
    fn drain(&mut self, supervisor: &impl Supervisor) {
        self.run.exchange.begin_drain();
        let begin = monotonic_ns();
        let mut quiet_since = begin;
        loop {
            self.run.exchange.flush();
            let Worker { run, .. } = self;
            let count = run.exchange.receive(&run.lines, |_| {});
            let now = monotonic_ns();
            if count > 0 {
                quiet_since = now;
            }
            if now >= quiet_since + QUIET_NS || now >= begin + DRAIN_MAX_NS {
                return;
            }
            self.beat_if_due(supervisor);
            let wake = (quiet_since + QUIET_NS).min(now + SLEEP_MAX_NS);
            timer::wait(Some(self.run.exchange.as_fd()), wake);
        }
    }
}

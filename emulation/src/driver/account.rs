//! Where the frames of a process are at one instant of fabric time.
//!
//! The accounts of all processes at one instant are a consistent cut. A frame that one worker has handled by then left
//! its sender earlier, so the sender's account has it. What was sent on a line and is not handled is under way.

use super::{InFlight, Worker};
use crate::cable::FrameTally;
use crate::cable::exchange::ExchangeReport;
use crate::cable::impairment::Injected;
use crate::cable::lines::Destination;
use crate::cable::memory::Flights;
use proto::counters::DeviceReading;
use proto::device::Depth;
use proto::units::Instant;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The account of a worker at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// The instant.
    pub at: Instant,
    /// Frames under way inside the process, and from attached ports.
    pub in_flight: InFlight,
    /// Frames that impairments hit.
    pub injected: Injected,
    /// The account of the sockets. What was received is what the devices have handled.
    pub exchange: ExchangeReport,
    /// By device of the worker.
    pub devices: Vec<DeviceReading>,
}

/// Delivers an account, or none if it was asked for too late. It must not block.
pub type AccountReply = Box<dyn FnOnce(Option<Box<Account>>) + Send>;

/// A request for an account that is not due yet.
pub(super) struct PendingAccount {
    at: Instant,
    reply: AccountReply,
}

impl Worker {
    /// Makes an account once everything up to `at` is handled. There is none if that instant has passed, or another
    /// account is pending.
    pub(super) fn await_account(&mut self, at: Instant, reply: AccountReply) {
        if at <= self.now.max(self.clock_read) || self.account.is_some() {
            return reply(None);
        }
        self.account = Some(PendingAccount { at, reply });
    }

    /// The instant beyond which no step may be executed before an account is made.
    pub(super) fn account_due(&self) -> Instant {
        self.account.as_ref().map_or(Instant::NEVER, |pending| pending.at)
    }

    /// Makes the pending account if everything before its instant has happened at `now`.
    pub(super) fn make_account(&mut self, now: Instant) {
        let due = self.account_due();
        if due > now || self.next_inside().is_some_and(|(next, _)| next <= due) {
            return;
        }
        let Some(PendingAccount { at, reply }) = self.account.take() else { return };
        self.now = self.now.max(at);
        reply(Some(Box::new(self.account_at(at))));
    }

    fn account_at(&mut self, at: Instant) -> Account {
        let mut exchange = self.run.exchange.report(&self.run.lines);
        let mut on_cables = FrameTally::default();
        let mut unhandled: BTreeMap<_, FrameTally> = BTreeMap::new();
        for flight in self.arrivals.iter() {
            let line = self.run.lines.outgoing(flight.device, flight.port);
            match line.filter(|line| matches!(line.to, Destination::Process(_))) {
                None => on_cables.count(&flight.frame),
                Some(line) => {
                    unhandled
                        .entry((line.link, line.end.other()))
                        .or_default()
                        .count(&flight.frame);
                }
            }
        }
        for line in &mut exchange.received {
            let waiting = unhandled.remove(&(line.link, line.end)).unwrap_or_default();
            line.counts.received = line.counts.received.minus(waiting);
        }
        let read = |device: &mut Box<dyn proto::device::Device>| {
            let mut reading = DeviceReading::default();
            device.read_to(Depth::Ports, at, &mut reading);
            reading
        };
        Account {
            at,
            in_flight: InFlight { on_the_line: tally(&self.departures), on_cables },
            injected: Injected::by(self.run.impairers.iter().flatten()),
            exchange,
            devices: self.run.devices.iter_mut().map(read).collect(),
        }
    }
}

/// The frames of `flights`.
pub(super) fn tally(flights: &Flights) -> FrameTally {
    let mut tally = FrameTally::default();
    flights.iter().for_each(|flight| tally.count(&flight.frame));
    tally
}

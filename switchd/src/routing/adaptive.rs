//! Adaptive: frames turn away from ports behind which notifications have told of congestion.
//!
//! A congestion point samples a frame and tells its source. Each switch on the message's way overhears it
//! and notes in its congestion table that behind the port where the message came in, on the way to the
//! sampled frame's destination, there is congestion. Later frames to that destination take the first legal port
//! without such an entry, or if all have one, the port with the least feedback. The message goes on to the source all
//! the same: where no other way exists, its limiter does what it always did.
//!
//! ```text
//!              frames to d ─────────▶            ┌── port p ──▶ … congested …
//!   source ───────────────── this switch ────────┤      ◀── notification about d: note (d, p)
//!              ◀── the notification, by any      └── port q ──▶ …        later frames to d
//!                  port that leads to the source
//! ```
//!
//! An adapter can tell of congestion on the way to itself and nothing else: whatever else comes in by its
//! port is refused there, so no switch behind it hears of it.
//!
//! Source: the seed's slides on adaptive routing with 802.1Qau; algorithms.md 6.

use super::{Heard, Passage, Passing, RoutingPolicy};
use crate::config::SwitchConfig;
use crate::port_set::PortSet;
use congestion_table::CongestionTable;
use proto::congestion::Roles;
use proto::frame::FrameClass;
use proto::ids::PortNumber;
use proto::params::{self, Key, KeyTable, Kind, ParamError, Params};
use proto::random::Random;
use proto::units::{Bytes, Duration, Instant};
use proto::wire::ethernet::{MacAddress, plan};

pub mod congestion_table;

/// The key of `[fabric.switch]` with the parameters.
pub static SECTION: Key = Key::new("adaptive", Kind::Table(&TABLE), "{}", TABLE.about);

static TABLE: KeyTable =
    KeyTable::new("the congestion table of adaptive routing", AdaptiveParams::KEYS);

proto::params! {
    /// Parameters of the congestion table.
    struct AdaptiveParams {
        /// Time for which a report of another switch holds after its last notification.
        timeout: Duration = Span, Default("250 ms");
        /// A report about an output of the switch itself ends when its queue is this short.
        low: Option<Bytes> = Size, Else("half the scheme's set point, 13 KB if it has none");
        /// Whether notifications end where another way is free, so that sources do not receive them.
        absorb: bool = Flag, Default("false");
    }
}

/// The default set point of 802.1Q, for schemes without one. Source: IEEE8021-CN-MIB.
const SET_POINT: Bytes = Bytes::new(26_000);

/// What is counted of one port.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Notifications that came in by it and changed the table.
    snooped: u64,
    /// Of these, those that ended here.
    absorbed: u64,
    /// Notifications refused because an adapter may not say that.
    refused: u64,
    /// Frames that took it although another port was preferred.
    diverted: u64,
}

/// Chooses by congestion.
#[derive(Debug)]
pub struct Adaptive {
    table: CongestionTable,
    /// Ports that lead to adapters.
    adapters: PortSet,
    /// A local entry ends when the output's queue has fallen so far.
    low: Bytes,
    /// Notifications end where another way is free.
    absorbs: bool,
    random: Random,
    /// By port.
    counts: Vec<Counts>,
}

impl Adaptive {
    /// A policy without congestion so far.
    ///
    /// # Errors
    /// If a parameter is unknown or wrong.
    pub fn new(config: &SwitchConfig, roles: &dyn Roles) -> Result<Adaptive, ParamError> {
        let mut adapters = PortSet::EMPTY;
        for (index, _) in config.ports.iter().enumerate().filter(|(_, port)| port.faces_adapter) {
            adapters.insert(PortNumber::from_index(index));
        }
        let numbers: AdaptiveParams = params::read(&config.routing.params)?;
        let half = Bytes::new(roles.set_point().unwrap_or(SET_POINT).get() / 2);
        Ok(Adaptive {
            table: CongestionTable::new(numbers.timeout),
            adapters,
            low: numbers.low.unwrap_or(half),
            absorbs: numbers.absorb,
            random: Random::stream(config.seed, &config.name, "notification routes"),
            counts: vec![Counts::default(); config.ports.len()],
        })
    }

    fn counts(&mut self, port: PortNumber) -> &mut Counts {
        &mut self.counts[port.index()]
    }
}

impl RoutingPolicy for Adaptive {
    /// A notification goes by any port, each anew, so that all switches that could send otherwise hear of it.
    fn choose(&mut self, packet: Passing<'_>, legal: &[PortNumber]) -> PortNumber {
        let Passing { headers, now, .. } = packet;
        if headers.class == FrameClass::Notification {
            return legal[self.random.below(legal.len() as u64) as usize];
        }
        if self.table.is_empty() {
            return legal[0];
        }
        let destination = plan::adapter_of_mac(MacAddress::from_number(headers.destination));
        let Some(destination) = destination else { return legal[0] };
        self.table.expire(now);
        let port = self.table.choose(destination, legal);
        if port != legal[0] {
            self.counts(port).diverted += 1;
        }
        port
    }

    fn listens(&self) -> bool {
        true
    }

    fn on_notification(&mut self, heard: Heard<'_>) -> Passage {
        let Heard { port, destination, legal, severity, now } = heard;
        if self.adapters.contains(port) && legal != [port] {
            self.counts(port).refused += 1;
            return Passage::Refuse;
        }
        // With one way there is nothing to choose; behind any other port our frames do not go.
        if legal.len() < 2 || !legal.contains(&port) {
            return Passage::Forward;
        }
        self.table.note((destination, port), severity, false, now);
        self.counts(port).snooped += 1;
        let is_free = |other: &PortNumber| !self.table.is_congested(destination, *other);
        if self.absorbs && legal.iter().any(is_free) {
            self.counts(port).absorbed += 1;
            return Passage::Absorb;
        }
        Passage::Forward
    }

    fn on_own_notification(&mut self, made: Heard<'_>) {
        let Heard { port, destination, legal, severity, now } = made;
        if legal.len() > 1 && legal.contains(&port) {
            self.table.note((destination, port), severity, true, now);
        }
    }

    fn answers_backwards(&self) -> bool {
        true
    }

    fn watched(&self) -> PortSet {
        self.table.local_ports()
    }

    fn on_departure(&mut self, output: PortNumber, standing: Bytes) {
        if standing <= self.low {
            self.table.clear_local(output);
        }
    }

    fn poll_timeout(&self) -> Instant {
        self.table.next_expiry()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.table.expire(now);
    }

    fn read(&self, port: PortNumber, named: &mut Vec<(String, u64)>) {
        let Counts { snooped, absorbed, refused, diverted } = self.counts[port.index()];
        let (remote, local) = self.table.entries_of(port);
        let rows = [
            ("ar_remote_entries", remote),
            ("ar_local_entries", local),
            ("ar_snooped_packets", snooped),
            ("ar_absorbed_packets", absorbed),
            ("ar_refused_packets", refused),
            ("ar_diverted_packets", diverted),
        ];
        named.extend(rows.map(|(name, count)| (name.to_owned(), count)));
    }
}

#[cfg(test)]
mod tests;

//! Adaptive routing: frames avoid ports behind which notifications have reported congestion.
//!
//! A congestion point samples a frame and notifies its source. Each switch on the path of the message
//! inspects it and records congestion behind the receiving port, on the way to the sampled frame's
//! destination. Later frames to that destination take the first port without such an entry; if all have one,
//! the port with the least feedback. The message still reaches the source, whose rate limiter reacts where
//! no other path exists.
//!
//! ```text
//!              frames to d ─────────▶            ┌── port p ──▶ … congested …
//!   source ───────────────── this switch ────────┤      ◀── notification about d: record (d, p)
//!              ◀── the notification, by any      └── port q ──▶ …        later frames to d
//!                  port that leads to the source
//! ```
//!
//! An adapter may only report congestion on the way to itself. Its switch drops all other notifications from
//! it, so no other switch receives them.
//!
//! Source: slides on adaptive routing with 802.1Qau; docs/spec/algorithms.md 6.

use super::{CongestionReport, NotificationAction, RoutedPacket, RoutingPolicy};
use crate::config::SwitchConfig;
use crate::port_set::PortSet;
use congestion_table::CongestionTable;
use proto::congestion::Roles;
use proto::frame::FrameClass;
use proto::ids::PortNumber;
use proto::params::{self, Key, KeyTable, Kind, ParamError, Params};
use proto::random::Random;
use proto::units::{Bytes, Duration, Instant};
use proto::wire::ethernet::plan;

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

/// Counters of one port.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Received notifications that changed the table.
    snooped: u64,
    /// Of these, those consumed here.
    absorbed: u64,
    /// Notifications dropped because an adapter may not send them.
    refused: u64,
    /// Frames that took this port instead of the preferred one.
    diverted: u64,
}

/// The policy.
#[derive(Debug)]
pub struct Adaptive {
    table: CongestionTable,
    /// Ports that lead to adapters.
    adapters: PortSet,
    /// A local entry ends when the output's queue has fallen to this level.
    low: Bytes,
    /// Notifications are consumed where another port is free.
    absorbs: bool,
    random: Random,
    /// By port.
    counts: Vec<Counts>,
}

impl Adaptive {
    /// A policy with an empty congestion table.
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
    /// Notifications take a random port each, so that all switches with alternative paths receive some.
    fn choose(&mut self, packet: RoutedPacket<'_>, legal: &[PortNumber]) -> PortNumber {
        let RoutedPacket { headers, now, .. } = packet;
        if headers.class == FrameClass::Notification {
            return legal[self.random.below(legal.len() as u64) as usize];
        }
        if self.table.is_empty() {
            return legal[0];
        }
        let destination = plan::adapter_of(headers.destination);
        let Some(destination) = destination else { return legal[0] };
        self.table.expire(now);
        let port = self.table.choose(destination, legal);
        if port != legal[0] {
            self.counts(port).diverted += 1;
        }
        port
    }

    fn uses_notifications(&self) -> bool {
        true
    }

    fn on_notification(&mut self, heard: CongestionReport<'_>) -> NotificationAction {
        let CongestionReport { port, destination, legal, severity, now } = heard;
        if self.adapters.contains(port) && legal != [port] {
            self.counts(port).refused += 1;
            return NotificationAction::Refuse;
        }
        // With one port there is no choice, and this switch sends no such frames by other ports.
        if legal.len() < 2 || !legal.contains(&port) {
            return NotificationAction::Forward;
        }
        self.table.note((destination, port), severity, false, now);
        self.counts(port).snooped += 1;
        let is_free = |other: &PortNumber| !self.table.is_congested(destination, *other);
        if self.absorbs && legal.iter().any(is_free) {
            self.counts(port).absorbed += 1;
            return NotificationAction::Absorb;
        }
        NotificationAction::Forward
    }

    fn on_local_notification(&mut self, made: CongestionReport<'_>) {
        let CongestionReport { port, destination, legal, severity, now } = made;
        if legal.len() > 1 && legal.contains(&port) {
            self.table.note((destination, port), severity, true, now);
        }
    }

    fn returns_to_input(&self) -> bool {
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

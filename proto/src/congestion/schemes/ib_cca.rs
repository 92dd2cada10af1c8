//! InfiniBand congestion control: switches mark with FECN at the roots of congestion, receivers
//! return BECN, senders walk a table of inter-packet delays.
//!
//! Sources: IBTA Vol 1, annex A10; Pfister et al., "Solving hot spot contention using InfiniBand
//! architecture congestion control" (the paper's parameters); the Linux hfi1 driver for the order
//! of index, limit and timer.
//!
//! ```text
//!   switch output            receiver                 sender
//!   queue > threshold        FECN on data             BECN: CCTI += CCTI_Increase (≤ CCTI_Limit)
//!   and root of a tree  ──▶  BECN on ACK, or CNP ──▶  timer: CCTI −= 1 (≥ CCTI_Min)
//!   sets FECN                                         after each packet a gap of CCT[CCTI]
//! ```

use super::params::{self, Kind, Param};
use super::{Scheme, fecn_marker};
use crate::congestion::{
    Heard, Notification, NotificationPoint, Permission, Place, ReactionPoint, ReactionState, Scope,
    TransportNote, Travel,
};
use crate::frame::{FrameClass, FrameHeaders};
use crate::units::{BitRate, Bytes, Duration, Instant};
use std::sync::Arc;

/// The row of the registry.
pub const SCHEME: Scheme = Scheme {
    name: "ib-cca",
    source: "IBTA Vol 1, annex A10",
    check: |table| params::check(table, &[fecn_marker::PARAMS, PARAMS]),
    scope: |table| match params::word(table, "scope", "queue-pair") {
        "service-level" => Scope::ServiceLevel,
        _ => Scope::QueuePair,
    },
    reaction_points: |_| usize::MAX,
    congestion_point: fecn_marker::congestion_point,
    notification_point: |place| {
        let travel = match params::word(place.params, "becn", "ack") {
            "cnp" => Travel::Cnp,
            _ => Travel::AckOrCnp,
        };
        Box::new(Echo { travel })
    },
    reaction_point: |place| Box::new(Throttle::new(&place)),
};

/// The channel adapter's parameters under the names of annex A10, and the project's own where A10
/// leaves it to the vendor.
const PARAMS: &[Param] = &[
    Param { name: "scope", kind: Kind::Word(&["queue-pair", "service-level"]) },
    Param { name: "becn", kind: Kind::Word(&["ack", "cnp"]) },
    Param { name: "ccti_increase", kind: Kind::Integer(0, 255) },
    Param { name: "ccti_limit", kind: Kind::Integer(0, 16_383) },
    Param { name: "ccti_min", kind: Kind::Integer(0, 255) },
    // In units of 1.024 µs.
    Param { name: "ccti_timer", kind: Kind::Integer(0, 65_535) },
    Param { name: "trigger_threshold", kind: Kind::Integer(0, 255) },
    // `linear`, or the table's 16-bit entries: two bits of shift, fourteen of multiplier.
    Param { name: "cct", kind: Kind::WordOrList(&["linear"], 0, 65_535, 16_384) },
    // The linear table's delay at its last index, in packet times.
    Param { name: "cct_max_ipd", kind: Kind::Integer(0, 2_047) },
];

/// The notification point: FECN in, BECN out.
#[derive(Debug)]
struct Echo {
    travel: Travel,
}

impl NotificationPoint for Echo {
    fn on_receive(
        &mut self,
        headers: &FrameHeaders,
        _: Bytes,
        _: Instant,
    ) -> Option<TransportNote> {
        let answers = headers.fecn && headers.class == FrameClass::Data && !headers.multicast;
        answers.then(|| TransportNote::becn(self.travel))
    }
}

/// One entry of the congestion control table: a delay of (packet time >> shift) × multiplier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CctEntry(u16);

impl CctEntry {
    /// The entry as it stands in a MAD: shift in bits 15..14, multiplier in 13..0.
    pub const fn from_bits(bits: u16) -> CctEntry {
        CctEntry(bits)
    }

    /// The delay added after a packet that took `packet_time`.
    pub fn delay(self, packet_time: Duration) -> Duration {
        let shift = self.0 >> 14;
        let multiplier = u64::from(self.0 & 0x3fff);
        Duration::from_ps((packet_time.as_ps() >> shift) * multiplier)
    }
}

/// The paper's table: 128 entries rising linearly to `max` packet times, in eighths (shift 3).
pub fn linear_table(max: u16) -> Vec<CctEntry> {
    const LAST: u32 = 127;
    (0..=LAST)
        .map(|i| {
            let multiplier = (8 * u32::from(max) * i + LAST / 2) / LAST;
            CctEntry(3 << 14 | multiplier as u16)
        })
        .collect()
}

/// The reaction point: an index into the congestion control table.
#[derive(Debug)]
struct Throttle {
    line_rate: BitRate,
    full_frame: Bytes,
    table: Arc<[CctEntry]>,
    ccti: u16,
    ccti_increase: u16,
    ccti_limit: u16,
    ccti_min: u16,
    ccti_timer: Duration,
    trigger_threshold: u16,
    /// When the index falls by one; set while it is above its minimum.
    decrease_at: Option<Instant>,
    last_packet: Bytes,
}

impl Throttle {
    fn new(place: &Place<'_>) -> Throttle {
        let params = place.params;
        let table: Vec<CctEntry> = match params::list(params, "cct") {
            Some(entries) => entries.into_iter().map(|bits| CctEntry(bits as u16)).collect(),
            None => linear_table(params::integer(params, "cct_max_ipd", 31) as u16),
        };
        let last = table.len() as u16 - 1;
        let field = |key, default| params::integer(params, key, default) as u16;
        let ccti_limit = field("ccti_limit", 127).min(last);
        let ccti_min = field("ccti_min", 0).min(ccti_limit);
        Throttle {
            line_rate: place.line_rate,
            full_frame: place.full_frame,
            table: table.into(),
            ccti: ccti_min,
            ccti_increase: field("ccti_increase", 5),
            ccti_limit,
            ccti_min,
            // 1.024 µs a unit: CCTI_Timer of CACongestionSetting, A10.4.3.8.
            ccti_timer: Duration::from_ns(1_024) * u64::from(field("ccti_timer", 31)),
            trigger_threshold: field("trigger_threshold", 0),
            decrease_at: None,
            last_packet: place.full_frame,
        }
    }

    fn delay_after(&self, size: Bytes) -> Duration {
        self.table[usize::from(self.ccti)].delay(size.time_at(self.line_rate))
    }
}

impl ReactionPoint for Throttle {
    fn on_notification(&mut self, notification: &Notification, now: Instant) -> Heard {
        let Some(note) = notification.transport() else { return Heard::Refused };
        if !note.becn {
            return Heard::Taken;
        }
        let before = self.ccti;
        self.ccti = (self.ccti + self.ccti_increase).min(self.ccti_limit);
        if self.ccti > self.ccti_min && self.ccti_timer > Duration::ZERO {
            self.decrease_at.get_or_insert(now + self.ccti_timer);
        }
        let threshold = self.trigger_threshold;
        if threshold != 0 && before < threshold && self.ccti >= threshold {
            return Heard::Crossed;
        }
        Heard::Taken
    }

    fn on_transmit(&mut self, size: Bytes, _: Instant) {
        self.last_packet = size;
    }

    fn may_send_at(&self, last_departure: Option<Instant>) -> Permission {
        Permission::At(match last_departure {
            Some(last) => last + self.delay_after(self.last_packet),
            None => Instant::ZERO,
        })
    }

    fn is_released(&self) -> bool {
        self.ccti == self.ccti_min
    }

    fn handle_timeout(&mut self, now: Instant) {
        // On an absolute schedule: a late call makes up every step it missed.
        while let Some(due) = self.decrease_at.filter(|due| *due <= now) {
            self.ccti = self.ccti.saturating_sub(1).max(self.ccti_min);
            self.decrease_at = (self.ccti > self.ccti_min).then(|| due + self.ccti_timer);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.decrease_at
    }

    fn state(&self) -> ReactionState {
        let gap = self.delay_after(self.full_frame);
        let busy = self.full_frame.time_at(self.line_rate);
        let line = u128::from(self.line_rate.get());
        let rate = line * u128::from(busy.as_ps()) / u128::from((busy + gap).as_ps());
        ReactionState {
            gap,
            rate: BitRate::new(rate as u64).unwrap_or(self.line_rate),
            scalar: u64::from(self.ccti),
        }
    }
}

#[cfg(test)]
mod tests;

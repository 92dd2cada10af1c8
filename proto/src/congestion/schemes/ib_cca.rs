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

use super::fecn_marker::MarkerParams;
use super::{Scheme, SharedBy, Throttling};
use crate::congestion::{
    CongestionPoint, Effect, Notification, NotificationPoint, Permission, Place, ReactionPoint,
    ReactionState, Roles, Scope, TransportNote, Travel,
};
use crate::frame::{FrameClass, FrameHeaders};
use crate::params::{Complaint, FromValue, Kind, Params, Value};
use crate::technology::Technology;
use crate::units::{BitRate, Bytes, Duration, Instant};
use std::sync::Arc;

/// The row of the registry.
pub const SCHEME: Scheme = Scheme {
    name: "ib-cca",
    about: "Switches mark with FECN, receivers return BECN, senders walk a table of delays.",
    source: "IBTA Vol 1, annex A10",
    technologies: &[Technology::Infiniband],
    keys: &[MarkerParams::KEYS, AdapterParams::KEYS],
    parse: |reader| {
        let (marker, adapter) = (MarkerParams::read(reader), AdapterParams::read(reader));
        let (marker, control) = (marker?, Control::new(adapter?));
        let AdapterParams { ccti_min, ccti_limit, .. } = control.params;
        if ccti_min > ccti_limit {
            let message = format!("{ccti_min} is above the largest CCTI");
            let hint = format!("at most {ccti_limit}, from ccti_limit and the last index of cct");
            reader.refuse("ccti_min", Complaint::new(message, hint));
        }
        Some(Arc::new(IbCca { marker, control: Arc::new(control) }))
    },
    signals: None,
    shows: Throttling::Gap,
};

crate::params! {
    /// Parameters of the channel adapter. Names are those of annex A10 where it has one.
    struct AdapterParams {
        /// The flows that share one CCTI.
        scope: SharedBy = SharedBy::KIND, Default("queue-pair"), "IBTA Vol 1, A10";
        /// What returns BECN: the acknowledgement if one is due, or always a packet of its own.
        becn: BecnTravel = BecnTravel::KIND, Default("ack");
        /// Increase of CCTI with each BECN.
        ccti_increase: u16 = Whole(0, 255), Default("5"), "IBTA Vol 1, A10; Pfister et al.";
        /// Largest CCTI; at most the table's last index.
        ccti_limit: u16 = Whole(0, 16_383), Default("127"), "IBTA Vol 1, A10";
        /// Smallest CCTI.
        ccti_min: u16 = Whole(0, 255), Default("0"), "IBTA Vol 1, A10";
        /// Time between two decrements of CCTI, in units of 1.024 us; 0 for none.
        ccti_timer: u16 = Whole(0, 65_535), Default("31"), "IBTA Vol 1, A10.4.3.8";
        /// A CCTI that reaches this value is logged; 0 logs nothing.
        trigger_threshold: u16 = Whole(0, 255), Default("0"), "IBTA Vol 1, A10";
        /// The congestion control table: `linear`, or its 16-bit entries (2 bits of shift, 14 of multiplier).
        cct: Cct = CCT, Default("linear"), "IBTA Vol 1, A10";
        /// Delay at the last index of the linear table, in packet times.
        cct_max_ipd: u16 = Whole(0, 2_047), Default("31"), "Pfister et al." => Is("cct", &["linear"]);
    }
}

crate::words! {
    /// What returns BECN.
    enum BecnTravel {
        /// The acknowledgement if one is due, else a packet of its own.
        Ack = "ack",
        /// A packet of its own.
        Cnp = "cnp",
    }
}

const CCT: Kind =
    Kind::Either(&[Kind::Word(|| vec!["linear"]), Kind::UpTo(16_384, &Kind::Whole(0, 65_535))]);

/// The congestion control table as written.
#[derive(Clone, Debug, PartialEq)]
enum Cct {
    Linear,
    Entries(Vec<u16>),
}

impl FromValue for Cct {
    fn from_value(value: &Value) -> Option<Cct> {
        match value.text() {
            Some(_) => Some(Cct::Linear),
            None => Vec::from_value(value).map(Cct::Entries),
        }
    }
}

/// The scheme with its parameters.
#[derive(Debug)]
struct IbCca {
    marker: MarkerParams,
    control: Arc<Control>,
}

impl Roles for IbCca {
    fn scope(&self) -> Scope {
        self.control.params.scope.into()
    }

    fn congestion_point(&self, place: Place) -> Box<dyn CongestionPoint> {
        self.marker.congestion_point(place)
    }

    fn notification_point(&self, _: Place) -> Box<dyn NotificationPoint> {
        let travel = match self.control.params.becn {
            BecnTravel::Ack => Travel::AckOrCnp,
            BecnTravel::Cnp => Travel::Cnp,
        };
        Box::new(Echo { travel })
    }

    fn reaction_point(&self, place: Place) -> Box<dyn ReactionPoint> {
        Box::new(Throttle::new(&self.control, &place))
    }

    fn in_force(&self, _: &Place) -> Vec<(&'static str, String)> {
        self.marker.in_force()
    }
}

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

/// What all reaction points of an adapter share.
#[derive(Debug)]
struct Control {
    params: AdapterParams,
    table: Box<[CctEntry]>,
    timer: Duration,
}

impl Control {
    /// The limit is clamped to the table.
    fn new(mut params: AdapterParams) -> Control {
        let table: Vec<CctEntry> = match &params.cct {
            Cct::Linear => linear_table(params.cct_max_ipd),
            Cct::Entries(entries) => entries.iter().copied().map(CctEntry::from_bits).collect(),
        };
        params.ccti_limit = params.ccti_limit.min(table.len() as u16 - 1);
        // 1.024 µs a unit: CCTI_Timer of CACongestionSetting, A10.4.3.8.
        let timer = Duration::from_ns(1_024) * u64::from(params.ccti_timer);
        Control { params, table: table.into(), timer }
    }
}

/// The reaction point: an index into the congestion control table.
#[derive(Debug)]
struct Throttle {
    control: Arc<Control>,
    line_rate: BitRate,
    full_frame: Bytes,
    ccti: u16,
    /// Instant of the next decrement; set while the index is above its minimum.
    decrease_at: Option<Instant>,
    last_packet: Bytes,
}

impl Throttle {
    fn new(control: &Arc<Control>, place: &Place) -> Throttle {
        Throttle {
            control: Arc::clone(control),
            line_rate: place.line_rate,
            full_frame: place.full_frame,
            ccti: control.params.ccti_min,
            decrease_at: None,
            last_packet: place.full_frame,
        }
    }

    fn delay_after(&self, size: Bytes) -> Duration {
        self.control.table[usize::from(self.ccti)].delay(size.time_at(self.line_rate))
    }
}

impl ReactionPoint for Throttle {
    fn on_notification(&mut self, notification: &Notification, now: Instant) -> Effect {
        let Some(note) = notification.transport() else { return Effect::Refused };
        if !note.becn {
            return Effect::Valid;
        }
        let Control { params, timer, .. } = &*self.control;
        let before = self.ccti;
        self.ccti = (self.ccti + params.ccti_increase).min(params.ccti_limit);
        if self.ccti > params.ccti_min && *timer > Duration::ZERO {
            self.decrease_at.get_or_insert(now + *timer);
        }
        let threshold = params.trigger_threshold;
        if threshold != 0 && before < threshold && self.ccti >= threshold {
            return Effect::Crossed;
        }
        Effect::Valid
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
        self.ccti == self.control.params.ccti_min
    }

    fn handle_timeout(&mut self, now: Instant) {
        let (least, timer) = (self.control.params.ccti_min, self.control.timer);
        // On an absolute schedule: a late call makes up every step it missed.
        while let Some(due) = self.decrease_at.filter(|due| *due <= now) {
            self.ccti = self.ccti.saturating_sub(1).max(least);
            self.decrease_at = (self.ccti > least).then(|| due + timer);
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

//! RR CC: the receiver separates congested flows from victims by the share of marked packets, measures
//! the rate of a flow, and notifies the sender of that rate.
//!
//! Sources: the RR CC slides (algorithms 1 and 2); a public simulator of it for the values that
//! the slides leave open. The switch is a plain InfiniBand switch.
//!
//! ```text
//!   receiver, at the end of a period            sender
//!   marked ≥ 95 %    ── CNP, BECN, rate ──▶     target = current, current = rate·d
//!   rate < line rate ── CNP, rate ────────▶     third in a row and later: target += R_AI
//!                                               current = (current + target) / 2
//! ```

use super::fecn_marker::MarkerParams;
use super::pace::Pace;
use super::{Scheme, SharedBy, Signals, Throttling};
use crate::congestion::{
    CongestionPoint, Effect, Notification, NotificationPoint, Permission, Place, ReactionPoint,
    ReactionState, Roles, Scope, TransportNote, Travel,
};
use crate::counters::Periods;
use crate::frame::{FrameClass, FrameHeaders};
use crate::params::{Millionths, Params};
use crate::technology::Technology;
use crate::units::{Bytes, Duration, Instant};
use std::sync::Arc;

mod body;

use body::{Body, Closed};

/// The row of the registry.
pub const SCHEME: Scheme = Scheme {
    name: "rr-cc",
    about: "Receivers measure the rate of each flow and send it to the sender.",
    source: "RR CC: receiver-driven congestion control for InfiniBand",
    technologies: &[Technology::Infiniband],
    keys: &[MarkerParams::KEYS, AdapterParams::KEYS],
    parse: |reader| {
        let (marker, adapter) = (MarkerParams::read(reader), AdapterParams::read(reader));
        Some(Arc::new(RrCc { marker: marker?, adapter: adapter? }))
    },
    signals: Some(Signals { marks: "FECN marks", notifications: "CNPs" }),
    shows: Throttling::Gap,
};

crate::params! {
    /// Parameters of the channel adapter.
    struct AdapterParams {
        /// T, the period of a receiver, in times of one full frame on its line.
        period_frames: u64 = Whole(1, 4_096), Default("16"), "RR CC, algorithm 1";
        /// Share of marked frames from which a flow is a cause of congestion.
        congested_from: Millionths = Real(0.0, 1.0), Default("0.95"), "RR CC, algorithm 1";
        /// Share of the line's rate from which a flow that is not congested gets no notification.
        silent_from: Millionths = Real(0.0, 1.0), Default("0.98");
        /// d, the share of the received rate that a sender keeps.
        decrease: Millionths = Real(0.0, 1.0), Default("0.93"), "RR CC, algorithm 2";
        /// R_AI, as a share of the line's rate.
        additive_increase: Millionths = Real(0.0, 1.0), Default("0.012"), "RR CC, algorithm 2";
        /// Whether senders obey. One that does not shows what receivers measure of unlimited flows.
        sender: Obedience = Obedience::KIND, Default("obeys");
        /// The flows that share one rate.
        scope: SharedBy = SharedBy::KIND, Default("queue-pair");
    }
}

crate::words! {
    /// Whether senders obey notifications.
    enum Obedience {
        /// They do.
        Obeys = "obeys",
        /// They keep their rate.
        Ignores = "ignores",
    }
}

/// The scheme with its parameters.
#[derive(Debug)]
struct RrCc {
    marker: MarkerParams,
    adapter: AdapterParams,
}

impl Roles for RrCc {
    fn scope(&self) -> Scope {
        self.adapter.scope.into()
    }

    fn congestion_point(&self, place: Place) -> Box<dyn CongestionPoint> {
        self.marker.congestion_point(place)
    }

    fn notification_point(&self, place: Place) -> Box<dyn NotificationPoint> {
        Box::new(Receiver::new(&self.adapter, &place))
    }

    fn reaction_point(&self, place: Place) -> Box<dyn ReactionPoint> {
        Box::new(Sender::new(&self.adapter, &place))
    }

    fn in_force(&self, _: &Place) -> Vec<(&'static str, String)> {
        self.marker.in_force()
    }
}

/// Millionths of one.
const ONE: u64 = 1_000_000;

/// The lowest rate is the line's rate divided by this.
const FLOOR_PART: u64 = 1_000;

fn share(rate: u64, millionths: u64) -> u64 {
    (u128::from(rate) * u128::from(millionths) / u128::from(ONE)) as u64
}

/// Arrivals in the current period.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    frames: u64,
    marked: u64,
    octets: u64,
}

/// The notification point: algorithm 1, for one flow.
#[derive(Debug)]
struct Receiver {
    line_rate: u64,
    period: Duration,
    /// A flow whose frames are further apart was idle: a sender at its lowest rate is twice as fast.
    idle: Duration,
    congested_from: u64,
    silent_from: u64,
    began: Option<Instant>,
    count: Count,
    periods: Periods,
}

impl Receiver {
    fn new(params: &AdapterParams, place: &Place) -> Receiver {
        let frame_time = place.full_frame.time_at(place.line_rate);
        Receiver {
            line_rate: place.line_rate.get(),
            period: frame_time * params.period_frames,
            idle: frame_time * (2 * FLOOR_PART),
            congested_from: params.congested_from.0,
            silent_from: params.silent_from.0,
            began: None,
            count: Count::default(),
            periods: Periods::default(),
        }
    }

    /// Ends the period that began at `began`; the notification for the sender, if one is due.
    fn close(&mut self, began: Instant, now: Instant, closed: Closed) -> Option<TransportNote> {
        let Count { frames, marked, octets } = std::mem::take(&mut self.count);
        self.began = Some(now);
        let elapsed = now.since(began);
        let bits = u128::from(octets) * 8 * u128::from(Duration::from_us(1_000_000).as_ps());
        let rate = bits / u128::from(elapsed.as_ps().max(1));
        let rate = u64::try_from(rate).unwrap_or(u64::MAX).min(self.line_rate);
        let congested = marked * ONE >= frames * self.congested_from;
        self.periods.judged += 1;
        self.periods.congested += u64::from(congested);
        if !congested && rate >= share(self.line_rate, self.silent_from) {
            return None;
        }
        let body = Body { rate_kbps: rate / 1_000, closed, period: elapsed, frames, marked };
        Some(TransportNote { travel: Travel::Cnp, becn: congested, body: body.emit() })
    }
}

impl NotificationPoint for Receiver {
    fn on_receive(
        &mut self,
        headers: &FrameHeaders,
        size: Bytes,
        now: Instant,
    ) -> Option<TransportNote> {
        if headers.class != FrameClass::Data || headers.multicast {
            return None;
        }
        let Some(began) = self.began.filter(|began| now.since(*began) <= self.idle) else {
            // The first frame opens a period and is not counted in it: the frames after it are counted
            // over the time since then.
            self.began = Some(now);
            return None;
        };
        self.count.frames += 1;
        self.count.marked += u64::from(headers.fecn);
        self.count.octets += size.get();
        if now.since(began) < self.period {
            return None;
        }
        self.close(began, now, Closed::ByArrival)
    }

    fn handle_timeout(&mut self, now: Instant) -> Option<TransportNote> {
        let began = self.began?;
        if self.count.frames == 0 || now < began + self.period {
            return None;
        }
        self.close(began, now, Closed::ByTimer)
    }

    /// A period without arrivals continues.
    fn poll_timeout(&self) -> Option<Instant> {
        self.began.filter(|_| self.count.frames > 0).map(|began| began + self.period)
    }

    fn periods(&self) -> Periods {
        self.periods
    }
}

/// The reaction point: algorithm 2. Rates in bit/s.
#[derive(Debug)]
struct Sender {
    pace: Pace,
    /// d, in millionths.
    decrease: u64,
    additive_increase: u64,
    floor: u64,
    current: u64,
    target: u64,
    /// Notifications without BECN since the last one with BECN.
    increases: u32,
    ignores: bool,
}

/// The target grows from this consecutive notification without BECN on.
const GROWS_FROM: u32 = 3;

impl Sender {
    fn new(params: &AdapterParams, place: &Place) -> Sender {
        let line = place.line_rate.get();
        Sender {
            pace: Pace::new(place),
            decrease: params.decrease.0,
            additive_increase: share(line, params.additive_increase.0).max(1),
            floor: (line / FLOOR_PART).max(1),
            current: line,
            target: line,
            increases: 0,
            ignores: params.sender == Obedience::Ignores,
        }
    }

    /// The rate in the notification, in bit/s. `None` if the octets are invalid.
    fn rate_in(&self, note: &TransportNote) -> Option<u64> {
        if note.body == [0; 16] {
            // A plain CNP or BECN has no rate: the current rate stands in for it.
            return Some(self.current);
        }
        let rate = Body::parse(&note.body)?.rate_kbps.checked_mul(1_000)?;
        (rate > 0 && rate <= self.pace.line_rate.get()).then_some(rate)
    }
}

impl ReactionPoint for Sender {
    fn on_notification(&mut self, notification: &Notification, _: Instant) -> Effect {
        let Some(note) = notification.transport() else { return Effect::Refused };
        let Some(rate) = self.rate_in(note) else { return Effect::Refused };
        if self.ignores {
            return Effect::Valid;
        }
        if note.becn {
            self.increases = 0;
            self.target = self.current;
            self.current = self.current.min(share(rate, self.decrease)).max(self.floor);
            return Effect::Valid;
        }
        self.increases = self.increases.saturating_add(1);
        if self.increases >= GROWS_FROM {
            self.target = (self.target + self.additive_increase).min(self.pace.line_rate.get());
        }
        self.current = (self.current + self.target).div_ceil(2);
        Effect::Valid
    }

    fn on_transmit(&mut self, size: Bytes, _: Instant) {
        self.pace.on_transmit(size);
    }

    fn may_send_at(&self, last_departure: Option<Instant>) -> Permission {
        self.pace.next(last_departure, self.current)
    }

    fn is_released(&self) -> bool {
        self.current >= self.pace.line_rate.get()
    }

    fn state(&self) -> ReactionState {
        self.pace.state(self.current)
    }
}

#[cfg(test)]
mod tests;

//! RR CC: the receiver tells congested flows from victims by the share of marked packets, measures
//! the rate at which a flow gets through, and tells the sender that rate.
//!
//! Sources: the RR CC slides (algorithms 1 and 2); a public simulator of it for the values the
//! slides leave open (algorithms.md 3.3). The switch is a plain InfiniBand switch.
//!
//! ```text
//!   receiver, at the end of a period            sender
//!   marked ≥ 95 %    ── CNP, BECN, rate ──▶     target = current, current = rate·d
//!   rate < line rate ── CNP, rate ────────▶     third in a row and later: target += R_AI
//!                                               current = (current + target) / 2
//! ```

use super::params::{self, Kind, Param};
use super::{Scheme, fecn_marker};
use crate::congestion::{
    Heard, Notification, NotificationPoint, Periods, Permission, Place, ReactionPoint,
    ReactionState, Scope, TransportNote, Travel,
};
use crate::frame::{FrameClass, FrameHeaders};
use crate::units::{BitRate, Bytes, Duration, Instant};

mod body;

use body::{Body, Closed};

/// The row of the registry.
pub const SCHEME: Scheme = Scheme {
    name: "rr-cc",
    source: "RR CC: receiver-driven congestion control for InfiniBand",
    check: |table| params::check(table, &[fecn_marker::PARAMS, PARAMS]),
    scope: |table| match params::word(table, "scope", "queue-pair") {
        "service-level" => Scope::ServiceLevel,
        _ => Scope::QueuePair,
    },
    reaction_points: |_| usize::MAX,
    congestion_point: fecn_marker::congestion_point,
    notification_point: |place| Box::new(Receiver::new(&place)),
    reaction_point: |place| Box::new(Sender::new(&place)),
};

/// The channel adapter's parameters. Defaults: algorithms.md 3.3.
const PARAMS: &[Param] = &[
    // T, in times of one full frame on the receiver's line.
    Param { name: "period_frames", kind: Kind::Integer(1, 4_096) },
    // The share of marked frames from which a flow is a cause of congestion.
    Param { name: "congested_from", kind: Kind::Fraction },
    // From this share of the line's rate on there is nothing to tell a flow that is not congested.
    Param { name: "silent_from", kind: Kind::Fraction },
    // d: what a sender keeps of the rate that got through.
    Param { name: "decrease", kind: Kind::Fraction },
    // R_AI, as a share of the line's rate.
    Param { name: "additive_increase", kind: Kind::Fraction },
    // Whether senders obey; one that does not shows what receivers find out about unhindered flows.
    Param { name: "sender", kind: Kind::Word(&["obeys", "ignores"]) },
    Param { name: "scope", kind: Kind::Word(&["queue-pair", "service-level"]) },
];

/// Millionths of one.
const ONE: u64 = 1_000_000;

/// No rate is held below this part of the line's.
const FLOOR_PART: u64 = 1_000;

fn share(rate: u64, millionths: u64) -> u64 {
    (u128::from(rate) * u128::from(millionths) / u128::from(ONE)) as u64
}

/// What arrived in the period under way.
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
    /// Whose frames are further apart than this was idle: a sender at the least rate it keeps is
    /// twice as fast.
    idle: Duration,
    congested_from: u64,
    silent_from: u64,
    began: Option<Instant>,
    count: Count,
    periods: Periods,
}

impl Receiver {
    fn new(place: &Place<'_>) -> Receiver {
        let frame_time = place.full_frame.time_at(place.line_rate);
        let fraction = |key, default| params::millionths(place.params, key).unwrap_or(default);
        Receiver {
            line_rate: place.line_rate.get(),
            period: frame_time * params::integer(place.params, "period_frames", 16) as u64,
            idle: frame_time * (2 * FLOOR_PART),
            congested_from: fraction("congested_from", 950_000),
            silent_from: fraction("silent_from", 980_000),
            began: None,
            count: Count::default(),
            periods: Periods::default(),
        }
    }

    /// Ends the period that began at `began` and says what the sender is to know.
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
            // The first frame opens a period and is not of it: what follows it is counted over the
            // time since then.
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

    /// A period in which nothing arrived goes on.
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
    line_rate: BitRate,
    full_frame: Bytes,
    /// d, in millionths.
    decrease: u64,
    additive_increase: u64,
    floor: u64,
    current: u64,
    target: u64,
    /// Notifications without BECN since the last one with it.
    good_news: u32,
    last_frame: Bytes,
    ignores: bool,
}

/// From which notification without BECN in a row on the target grows.
const GROWS_FROM: u32 = 3;

impl Sender {
    fn new(place: &Place<'_>) -> Sender {
        let line = place.line_rate.get();
        let fraction = |key, default| params::millionths(place.params, key).unwrap_or(default);
        Sender {
            line_rate: place.line_rate,
            full_frame: place.full_frame,
            decrease: fraction("decrease", 930_000),
            additive_increase: share(line, fraction("additive_increase", 12_000)).max(1),
            floor: (line / FLOOR_PART).max(1),
            current: line,
            target: line,
            good_news: 0,
            last_frame: place.full_frame,
            ignores: params::word(place.params, "sender", "obeys") == "ignores",
        }
    }

    /// What gets through, in bit/s. `None` if the octets are nonsense.
    fn rate_told(&self, note: &TransportNote) -> Option<u64> {
        if note.body == [0; 16] {
            // A plain CNP or BECN knows no rate: what is sent now is what may get through.
            return Some(self.current);
        }
        let rate = Body::parse(&note.body)?.rate_kbps.checked_mul(1_000)?;
        (rate > 0 && rate <= self.line_rate.get()).then_some(rate)
    }

    fn gap_after(&self, size: Bytes) -> Duration {
        let allowed = BitRate::new(self.current).unwrap_or(self.line_rate);
        let (slow, fast) = (size.time_at(allowed), size.time_at(self.line_rate));
        Duration::from_ps(slow.as_ps().saturating_sub(fast.as_ps()))
    }
}

impl ReactionPoint for Sender {
    fn on_notification(&mut self, notification: &Notification, _: Instant) -> Heard {
        let Some(note) = notification.transport() else { return Heard::Refused };
        let Some(rate) = self.rate_told(note) else { return Heard::Refused };
        if self.ignores {
            return Heard::Taken;
        }
        if note.becn {
            self.good_news = 0;
            self.target = self.current;
            self.current = self.current.min(share(rate, self.decrease)).max(self.floor);
            return Heard::Taken;
        }
        self.good_news = self.good_news.saturating_add(1);
        if self.good_news >= GROWS_FROM {
            self.target = (self.target + self.additive_increase).min(self.line_rate.get());
        }
        self.current = (self.current + self.target).div_ceil(2);
        Heard::Taken
    }

    fn on_transmit(&mut self, size: Bytes, _: Instant) {
        self.last_frame = size;
    }

    fn may_send_at(&self, last_departure: Option<Instant>) -> Permission {
        let last = last_departure.map(|last| last + self.gap_after(self.last_frame));
        Permission::At(last.unwrap_or(Instant::ZERO))
    }

    fn is_released(&self) -> bool {
        self.current >= self.line_rate.get()
    }

    fn state(&self) -> ReactionState {
        let rate = BitRate::new(self.current).unwrap_or(self.line_rate);
        let gap = self.gap_after(self.full_frame);
        ReactionState { gap, rate, scalar: self.current * 1_000 / self.line_rate.get() }
    }
}

#[cfg(test)]
mod tests;

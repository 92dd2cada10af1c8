//! AIMD: switches mark with CE above a threshold, receivers answer with CNPs, senders cut their rate by a share
//! and add to it by a timer.
//!
//! Sources: Chiu and Jain, 1989; Ramakrishnan and Jain, 1990, for the share of 7/8. The timer and the CNPs stand in
//! for the windows and acknowledgements of these papers.

use proto::congestion::schemes::pace::Pace;
use proto::congestion::schemes::{Scheme, Throttling};
use proto::congestion::{
    CongestionPoint, Effect, Marking, Notification, NotificationPoint, Permission, Place,
    QueueSample, ReactionPoint, ReactionState, Roles, TransportNote, Travel,
};
use proto::frame::{FrameClass, FrameHeaders};
use proto::ids::Ecn;
use proto::params::{Millionths, Params};
use proto::technology::Technology;
use proto::units::{Bytes, Duration, Instant};
use std::sync::Arc;

/// The row of the registry.
pub const SCHEME: Scheme = Scheme {
    name: "aimd",
    about: "Switches mark above a threshold, senders cut their rate by a share and raise it by a timer.",
    source: "Chiu and Jain, Analysis of the increase and decrease algorithms, 1989",
    technologies: &[Technology::Ethernet],
    keys: &[Settings::KEYS],
    parse: |reader| Some(Arc::new(Aimd(Settings::read(reader)?))),
    signals: None,
    shows: Throttling::Rate,
};

proto::params! {
    /// The keys of `[scheme]`.
    #[derive(Copy)]
    struct Settings {
        /// Frames that join a longer queue are marked.
        mark_above: Bytes = Octets, Default("50 KB");
        /// Time between two increases, and the least time between two CNPs of a flow.
        interval: Duration = Span, Default("50 us");
        /// Share of its rate that a sender keeps after a CNP.
        keep: Millionths = Real(0.0, 1.0), Default("0.875"), "Ramakrishnan and Jain, 1990";
        /// Share of the line's rate that one increase adds.
        add: Millionths = Real(0.0, 1.0), Default("0.005");
    }
}

/// The scheme with its parameters: makes the roles of a device.
#[derive(Debug)]
struct Aimd(Settings);

impl Roles for Aimd {
    fn congestion_point(&self, _: Place) -> Box<dyn CongestionPoint> {
        Box::new(Output { mark_above: self.0.mark_above })
    }

    fn notification_point(&self, _: Place) -> Box<dyn NotificationPoint> {
        Box::new(Receiver { interval: self.0.interval, last: None })
    }

    fn reaction_point(&self, place: Place) -> Box<dyn ReactionPoint> {
        let (pace, rate) = (Pace::new(&place), place.line_rate.get());
        let step = share(rate, self.0.add);
        Box::new(Sender { pace, settings: self.0, step, rate, increase_at: None })
    }
}

/// In a switch, for one output and priority.
struct Output {
    mark_above: Bytes,
}

impl CongestionPoint for Output {
    fn on_enqueue(&mut self, headers: &FrameHeaders, sample: &QueueSample, _: Instant) -> Marking {
        let marks = headers.class == FrameClass::Data
            && matches!(headers.ecn, Ecn::Capable0 | Ecn::Capable1)
            && sample.queue > self.mark_above;
        if marks { Marking::Ce { limit: self.mark_above } } else { Marking::Pass }
    }
}

/// In a receiving NIC, for one flow.
struct Receiver {
    interval: Duration,
    last: Option<Instant>,
}

impl NotificationPoint for Receiver {
    fn on_receive(
        &mut self,
        headers: &FrameHeaders,
        _: Bytes,
        now: Instant,
    ) -> Option<TransportNote> {
        let is_marked =
            headers.class == FrameClass::Data && headers.ecn == Ecn::CongestionExperienced;
        let is_due = self.last.is_none_or(|last| now.since(last) >= self.interval);
        (is_marked && is_due).then(|| {
            self.last = Some(now);
            TransportNote::becn(Travel::Cnp)
        })
    }
}

/// In a sending NIC, for one flow. Rates in bit/s.
struct Sender {
    pace: Pace,
    settings: Settings,
    /// What one increase adds; the lowest rate, too.
    step: u64,
    rate: u64,
    increase_at: Option<Instant>,
}

/// A share of a rate, rounded up, so that no rate becomes zero.
fn share(rate: u64, Millionths(share): Millionths) -> u64 {
    (u128::from(rate) * u128::from(share)).div_ceil(1_000_000) as u64
}

impl ReactionPoint for Sender {
    fn on_notification(&mut self, notification: &Notification, now: Instant) -> Effect {
        if notification.transport().is_none() {
            return Effect::Refused;
        }
        self.rate = share(self.rate, self.settings.keep).max(self.step);
        self.increase_at = Some(now + self.settings.interval);
        Effect::Valid
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.increase_at
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.rate = (self.rate + self.step).min(self.pace.line_rate.get());
        self.increase_at = (!self.is_released()).then(|| now + self.settings.interval);
    }

    fn on_transmit(&mut self, size: Bytes, _: Instant) {
        self.pace.on_transmit(size);
    }

    fn may_send_at(&self, last_departure: Option<Instant>) -> Permission {
        self.pace.next(last_departure, self.rate)
    }

    fn is_released(&self) -> bool {
        self.rate >= self.pace.line_rate.get()
    }

    fn state(&self) -> ReactionState {
        self.pace.state(self.rate)
    }
}

//! A requester of a reliable connection: why it sends a number again.

use super::history::{History, Packet};
use super::timer::{RESOLUTION_NS, Stated, Timer};
use super::{Report, Tally};
use proto::ids::Psn;

/// An answer to requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// All numbers up to this one arrived: an acknowledgement or a response.
    Positive,
    /// A NAK: all numbers before this one arrived, and this one has to be sent again.
    Nak,
    /// An RNR NAK: likewise, but not before this time is over, nanoseconds.
    NotReady(u64),
    /// The file does not hold its syndrome, or the syndrome is reserved.
    Unreadable,
}

/// Why a number came again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A NAK asked for it.
    Nak,
    /// An RNR NAK asked for it, and its time was over.
    NotReady,
    /// An RNR NAK asked for it, and its time was not over: time since the NAK and time due, nanoseconds.
    TooSoon(u64, u64),
    /// As before, but it may have left before the RNR NAK arrived.
    Crossed,
    /// The number was never seen: it fills a gap, in order or not.
    Gap,
    /// A READ or atomic request: a lost response or the timer.
    Fetch,
    /// The timer, so long after it can have started, nanoseconds; `None` if the file does not show it.
    Timer(Option<u64>),
}

#[derive(Clone, Copy, Debug)]
struct NotReady {
    psn: Psn,
    at_ns: u64,
    wait_ns: u64,
}

/// Why times are not judged.
const BACK: &str = "retransmissions in flows whose capture times run back";
const UNANSWERED: &str = "retransmissions in flows whose acknowledgements the file does not hold";
/// Why times are not judged: an answer could not be read, or names what was not seen.
pub const UNCLEAR: &str =
    "retransmissions in flows with acknowledgements that cannot be attributed";
/// Why times are not judged: too many flows.
pub const CROWDED: &str =
    "retransmissions between ends with more queue pairs than can be distinguished";

/// The number before `psn`.
fn before(psn: Psn) -> Psn {
    psn.plus(Psn::MAX)
}

/// What is known of a requester.
#[derive(Clone, Debug, Default)]
pub struct Requester {
    /// What it sent.
    pub history: History,
    /// Its timer.
    pub timer: Timer,
    /// The last NAK, and how many NAKs were not yet followed by a repetition.
    nak: Option<(Psn, u32)>,
    not_ready: Option<NotReady>,
    /// Last repetition that only the timer explains, nanoseconds.
    expired_ns: u64,
    /// Latest time of a request, of an answer, and of both, nanoseconds. A file may hold both directions of a port
    /// slightly out of order.
    sent_ns: u64,
    answered_ns: u64,
    clock_ns: u64,
    is_answered: bool,
    /// Why its times are not judged, if they are not.
    unknown: Option<&'static str>,
}

impl Requester {
    /// A requester with this timeout.
    pub fn new(stated: Option<Stated>) -> Requester {
        Requester { timer: Timer::new(stated), ..Requester::default() }
    }

    /// Its times are not judged, for this reason.
    pub fn doubt(&mut self, why: &'static str) {
        self.unknown.get_or_insert(why);
    }

    /// The time of a packet in one direction, of which `last_ns` is the latest.
    fn at(&mut self, last_ns: u64, at_ns: u64) {
        if at_ns < last_ns {
            self.doubt(BACK);
        }
        self.clock_ns = self.clock_ns.max(at_ns);
    }

    /// True if a NAK of either kind asked for this number or one before it.
    pub fn is_asked(&self, psn: Psn) -> bool {
        let asked = [self.nak.map(|(asked, _)| asked), self.not_ready.map(|asked| asked.psn)];
        asked.iter().flatten().any(|asked| psn.distance_from(*asked) >= 0)
    }

    /// A packet is sent, for the first time or within a repetition.
    pub fn send(&mut self, packet: &Packet, room: usize) {
        self.at(self.sent_ns, packet.at_ns);
        self.sent_ns = packet.at_ns;
        self.history.add(packet, room);
        if packet.asks {
            self.timer.restart(packet.psn, self.clock_ns);
        }
    }

    /// A packet in frame `frame` begins a repetition. Returns why.
    pub fn repeat(&mut self, packet: &Packet, frame: u64, room: usize) -> Cause {
        let cause = self.cause(packet);
        if !matches!(cause, Cause::Nak | Cause::NotReady | Cause::TooSoon(..)) {
            self.timer.waited(packet.at_ns, frame);
        }
        if matches!(cause, Cause::Timer(_)) {
            self.expired_ns = packet.at_ns;
        }
        self.timer.stop();
        self.send(packet, room);
        cause
    }

    fn cause(&mut self, packet: &Packet) -> Cause {
        let Packet { psn, at_ns, .. } = *packet;
        if let Some((asked, count)) = self.nak
            && psn.distance_from(asked) >= 0
        {
            self.nak = (count > 1).then_some((asked, count - 1));
            return Cause::Nak;
        }
        let since = self.history.watched_since(psn).map(|since| since.max(self.expired_ns));
        let after = since.map(|since| at_ns.saturating_sub(since));
        if let Some(NotReady { psn: asked, at_ns: from, wait_ns }) = self.not_ready
            && psn.distance_from(asked) >= 0
        {
            let waited = at_ns.saturating_sub(from);
            if waited + RESOLUTION_NS >= wait_ns {
                self.not_ready = None;
                return Cause::NotReady;
            }
            let is_near = since.is_none_or(|since| waited <= from.saturating_sub(since));
            let least = self.timer.stated.map_or(0, |stated| stated.least_ns());
            let is_due = after.is_none_or(|after| after + RESOLUTION_NS >= least);
            return if is_near && is_due {
                Cause::Crossed
            } else {
                Cause::TooSoon(waited, wait_ns)
            };
        }
        match (self.history.holds(psn), packet.fetches) {
            (false, _) => Cause::Gap,
            (true, true) => Cause::Fetch,
            (true, false) => Cause::Timer(after),
        }
    }

    /// An answer in frame `frame` names `psn`.
    pub fn answer(&mut self, answer: Answer, psn: Psn, at_ns: u64, frame: u64) {
        self.at(self.answered_ns, at_ns);
        (self.answered_ns, self.is_answered) = (at_ns, true);
        let arrived = if answer == Answer::Positive { psn } else { before(psn) };
        match answer {
            Answer::Unreadable => return self.doubt(UNCLEAR),
            Answer::Positive => self.timer.answered(psn, at_ns, frame),
            Answer::Nak | Answer::NotReady(_) => {
                self.timer.waited(at_ns, frame);
                self.refused(answer, psn, at_ns);
            }
        }
        self.history.acknowledge(arrived, at_ns);
        if self.not_ready.is_some_and(|asked| asked.psn.distance_from(arrived) <= 0) {
            self.not_ready = None;
        }
    }

    /// An answer names a number of this requester and of others; it may belong to each of them.
    pub fn may_be_answered(&mut self, answer: Answer, psn: Psn, at_ns: u64) {
        self.timer.stop();
        match answer {
            Answer::Positive => {}
            Answer::Unreadable => self.doubt(UNCLEAR),
            // The requester may have to wait, or another one.
            Answer::NotReady(_) => self.refused(Answer::Nak, psn, at_ns),
            Answer::Nak => self.refused(answer, psn, at_ns),
        }
    }

    fn refused(&mut self, answer: Answer, psn: Psn, at_ns: u64) {
        self.timer.stop();
        if let Answer::NotReady(wait_ns) = answer {
            self.not_ready = Some(NotReady { psn, at_ns, wait_ns });
        } else {
            self.nak = Some((psn, self.nak.map_or(1, |(_, count)| count + 1)));
        }
    }

    /// Reports the retransmissions that were not due.
    pub fn settle(&mut self, report: &mut Report, kept: u64) {
        let unknown = self.unknown.or((!self.is_answered).then_some(UNANSWERED));
        self.timer.settle(report, kept, unknown);
    }
}

/// Counts a repetition by its cause.
pub fn count(tally: &mut Tally, cause: Cause) {
    match cause {
        Cause::Nak => tally.checked("retransmissions after a NAK", 1),
        Cause::NotReady => tally.checked("retransmissions after an RNR NAK", 1),
        Cause::Gap => tally.noted("packets behind others that were sent later", 1),
        Cause::Fetch => tally.noted("READ and atomic requests again", 1),
        Cause::Crossed => tally.not_checked("retransmissions that may have crossed an RNR NAK", 1),
        Cause::Timer(None) => tally.not_checked("retransmissions of packets long before", 1),
        Cause::TooSoon(..) | Cause::Timer(Some(_)) => {}
    }
}

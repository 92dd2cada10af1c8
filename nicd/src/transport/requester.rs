//! The sending half of a queue pair: messages in, packets out, acknowledgements taken.
//!
//! ```text
//!   front_psn       unacknowledged        next_psn            newest_psn
//!       │                 │                  │                     │
//!   ────┼─────────────────┼──────────────────┼─────────────────────┼────▶ PSN
//!       │ confirmed part  │ under way        │ to be sent again    │ never sent
//!       │ of messages[0]  │                  │ (after going back)  │
//! ```
//!
//! Nothing is kept a packet: going back recomputes which packet of which message a PSN is.
//! Source: IBTA Vol 1, 9.7.3 (PSN, go-back-N), 9.7.5.2.8 (retry counters), 9.7.5.1.2 (duplicate
//! half of the PSN space); 9.8.3 for the unreliable services, which forget what has left.

use crate::config::Transport as Service;
use crate::transport::message::Message;
use proto::ids::Psn;
use proto::units::Duration;
use proto::wire::infiniband::opcode::Position;
use proto::wire::infiniband::{NakCode, Syndrome};
use std::collections::VecDeque;

/// How often a requester tries again.
#[derive(Clone, Copy, Debug)]
pub struct RetryLimits {
    /// After a timeout or a gap, without progress in between.
    pub retry_count: u8,
    /// After RNR; [`RetryLimits::FOR_EVER`] is no limit.
    pub rnr_retry: u8,
}

impl RetryLimits {
    /// The RNR retry count that never runs out.
    pub const FOR_EVER: u8 = 7;
}

/// What a requester is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Sending what there is.
    Open,
    /// Waiting as long as an RNR NAK asked for.
    AwaitingReceiver,
    /// Given up; nothing leaves any more.
    Failed,
}

/// The packet to send next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Its sequence number.
    pub psn: Psn,
    /// Where in its message it stands.
    pub position: Position,
    /// Octets of payload.
    pub length: u32,
    /// It has never been sent before.
    pub is_first_transmission: bool,
    /// Its message.
    pub message: Message,
}

/// What an acknowledgement led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckOutcome {
    /// Messages it completed.
    pub completed: u64,
    /// At least one packet more is confirmed.
    pub progress: bool,
    /// What to do about it.
    pub action: RequesterAction,
}

/// How a requester goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequesterAction {
    /// As before.
    Continue,
    /// It has gone back to an earlier packet.
    GoBack,
    /// It has gone back and must wait this long.
    Wait(Duration),
    /// It has given up, or must.
    GiveUp,
}

/// Messages taken back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Withdrawn {
    /// How many.
    pub messages: u64,
    /// Octets of them that had never been sent.
    pub octets: u64,
}

/// The sending half of one queue pair.
#[derive(Clone, Debug)]
pub struct Requester {
    service: Service,
    mtu: u32,
    /// Posted and not completed, oldest first.
    messages: VecDeque<Message>,
    /// PSN of the first packet of `messages[0]`.
    front_psn: Psn,
    unacknowledged: Psn,
    next_psn: Psn,
    newest_psn: Psn,
    /// Which message `next_psn` belongs to, and which of its packets it is.
    cursor: usize,
    packet: u32,
    retries: u8,
    rnr_retries: u8,
    state: State,
}

impl Requester {
    /// Packets that may be unconfirmed: beyond half the PSN space old and new look alike.
    const WINDOW: i32 = (1 << 23) - 1;

    /// A requester with nothing to send, for messages cut into packets of `mtu`.
    pub fn new(service: Service, mtu: u32) -> Requester {
        Requester {
            service,
            mtu,
            messages: VecDeque::new(),
            front_psn: Psn::default(),
            unacknowledged: Psn::default(),
            next_psn: Psn::default(),
            newest_psn: Psn::default(),
            cursor: 0,
            packet: 0,
            retries: 0,
            rnr_retries: 0,
            state: State::Open,
        }
    }

    /// Takes a message over. A failed requester takes none: false.
    pub fn post(&mut self, message: Message) -> bool {
        let accepts = self.state != State::Failed;
        if accepts {
            self.messages.push_back(message);
        }
        accepts
    }

    /// Takes over all messages there are so far, oldest first.
    pub fn adopt_messages(&mut self, messages: VecDeque<Message>) {
        debug_assert!(
            self.messages.is_empty() && self.state == State::Open,
            "it has just been made"
        );
        self.messages = messages;
    }

    /// The packet to send next, if one may be sent.
    pub fn next_packet(&self) -> Option<Packet> {
        let message = *self.messages.get(self.cursor)?;
        let window_open = self.service != Service::Rc
            || self.next_psn.distance_from(self.unacknowledged) < Self::WINDOW;
        if self.state != State::Open || !window_open {
            return None;
        }
        let packets = self.packets(&message);
        let position = match (self.packet, self.packet + 1 == packets) {
            (0, true) => Position::Only,
            (0, false) => Position::First,
            (_, true) => Position::Last,
            (_, false) => Position::Middle,
        };
        Some(Packet {
            psn: self.next_psn,
            position,
            length: (message.size - self.packet * self.mtu).min(self.mtu),
            is_first_transmission: self.next_psn == self.newest_psn,
            message,
        })
    }

    /// The packet of [`Requester::next_packet`] leaves; how many messages that completes (on an
    /// unreliable service a message is complete when its last packet has left).
    pub fn on_transmit(&mut self) -> u64 {
        let packets = self.packets(&self.messages[self.cursor]);
        if self.next_psn == self.newest_psn {
            self.newest_psn = self.newest_psn.next();
        }
        self.next_psn = self.next_psn.next();
        self.packet += 1;
        if self.packet < packets {
            return 0;
        }
        self.packet = 0;
        if self.service == Service::Rc {
            self.cursor += 1;
            return 0;
        }
        self.messages.pop_front();
        self.front_psn = self.next_psn;
        self.unacknowledged = self.next_psn;
        1
    }

    /// Packets are under way whose acknowledgement is awaited.
    pub fn awaits_acknowledgement(&self) -> bool {
        self.service == Service::Rc && self.next_psn != self.unacknowledged
    }

    /// An AETH arrived.
    pub fn on_acknowledge(
        &mut self,
        psn: Psn,
        syndrome: Syndrome,
        limits: RetryLimits,
    ) -> AckOutcome {
        // Of packets never sent nobody can speak; of packets long confirmed it is an old echo.
        let known =
            psn.distance_from(self.unacknowledged) >= 0 && psn.distance_from(self.newest_psn) < 0;
        if self.service != Service::Rc || self.state == State::Failed || !known {
            return AckOutcome { completed: 0, progress: false, action: RequesterAction::Continue };
        }
        // A NAK names the packet expected, an ACK the last one received.
        let confirmed_to = match syndrome {
            Syndrome::Ack { .. } => psn.next(),
            _ => psn,
        };
        let progress = confirmed_to != self.unacknowledged;
        if progress {
            self.retries = 0;
            self.rnr_retries = 0;
        }
        let completed = self.confirm(confirmed_to);
        let action = match syndrome {
            Syndrome::Ack { .. } => RequesterAction::Continue,
            Syndrome::Rnr { timer } => self.await_receiver(psn, timer, limits.rnr_retry),
            Syndrome::Nak(NakCode::PsnSequence) => self.go_back(limits.retry_count),
            Syndrome::Nak(_) | Syndrome::Unknown(_) => RequesterAction::GiveUp,
        };
        AckOutcome { completed, progress, action }
    }

    /// No acknowledgement came in time.
    pub fn on_timeout(&mut self, limits: RetryLimits) -> RequesterAction {
        if self.awaits_acknowledgement() && self.state == State::Open {
            self.go_back(limits.retry_count)
        } else {
            RequesterAction::Continue
        }
    }

    /// The wait that an RNR NAK asked for is over.
    pub fn on_receiver_ready(&mut self) {
        if self.state == State::AwaitingReceiver {
            self.state = State::Open;
        }
    }

    /// Gives up and takes every message back; nothing leaves any more.
    pub fn give_up(&mut self) -> Withdrawn {
        let octets = self.unsent_octets();
        let messages = self.messages.len() as u64;
        self.messages.clear();
        self.cursor = 0;
        self.packet = 0;
        self.state = State::Failed;
        Withdrawn { messages, octets }
    }

    /// Takes back the messages of traffic item `item` of which no packet has ever left.
    pub fn withdraw(&mut self, item: u16) -> Withdrawn {
        let (first, packet) = self.locate(self.newest_psn);
        let untouched = first + usize::from(packet > 0);
        let mut withdrawn = Withdrawn::default();
        let mut index = 0;
        self.messages.retain(|message| {
            let goes = index >= untouched && message.item == item;
            index += 1;
            if goes {
                withdrawn.messages += 1;
                withdrawn.octets += u64::from(message.size);
            }
            !goes
        });
        withdrawn
    }

    fn packets(&self, message: &Message) -> u32 {
        message.size.div_ceil(self.mtu).max(1)
    }

    /// How many packets `psn` is behind the first packet of `messages[0]`. Never negative, and never
    /// 2^24: a message has at most half that many packets (2^31 octets at an MTU of 256), and so
    /// has the window.
    fn offset(&self, psn: Psn) -> u32 {
        psn.get().wrapping_sub(self.front_psn.get()) & Psn::MAX
    }

    /// Which message and which of its packets has this PSN; just past the last message if none.
    fn locate(&self, psn: Psn) -> (usize, u32) {
        let mut ahead = self.offset(psn);
        for (index, message) in self.messages.iter().enumerate() {
            let packets = self.packets(message);
            if ahead < packets {
                return (index, ahead);
            }
            ahead -= packets;
        }
        (self.messages.len(), 0)
    }

    fn seek(&mut self, psn: Psn) {
        (self.cursor, self.packet) = self.locate(psn);
        self.next_psn = psn;
    }

    /// Everything before `psn` has arrived; how many messages that completes.
    fn confirm(&mut self, psn: Psn) -> u64 {
        let mut completed = 0;
        self.unacknowledged = psn;
        while let Some(message) = self.messages.front() {
            let packets = self.packets(message);
            if self.offset(psn) < packets {
                break;
            }
            self.front_psn = self.front_psn.plus(packets);
            self.messages.pop_front();
            self.cursor = self.cursor.saturating_sub(1);
            completed += 1;
        }
        if self.next_psn.distance_from(psn) < 0 {
            // Gone back too far: what is confirmed need not be sent again.
            self.seek(psn);
        }
        completed
    }

    fn go_back(&mut self, retry_count: u8) -> RequesterAction {
        if self.retries >= retry_count {
            return RequesterAction::GiveUp;
        }
        self.retries += 1;
        self.seek(self.unacknowledged);
        RequesterAction::GoBack
    }

    fn await_receiver(&mut self, psn: Psn, timer: u8, rnr_retry: u8) -> RequesterAction {
        if rnr_retry != RetryLimits::FOR_EVER {
            if self.rnr_retries >= rnr_retry {
                return RequesterAction::GiveUp;
            }
            self.rnr_retries += 1;
        }
        self.seek(psn);
        self.state = State::AwaitingReceiver;
        RequesterAction::Wait(super::rnr_timer::wait(timer))
    }

    fn unsent_octets(&self) -> u64 {
        let (first, packet) = self.locate(self.newest_psn);
        let rest: u64 = self.messages.iter().skip(first).map(|m| u64::from(m.size)).sum();
        rest - u64::from(packet) * u64::from(self.mtu)
    }
}

#[cfg(test)]
mod tests;

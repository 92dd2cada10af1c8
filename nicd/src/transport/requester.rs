//! The requester: the sending half of a queue pair. Messages in, packets out, acknowledgements in.
//!
//! ```text
//!   front_psn       unacknowledged        next_psn            newest_psn
//!       │                 │                  │                     │
//!   ────┼─────────────────┼──────────────────┼─────────────────────┼────▶ PSN
//!       │ acknowledged    │ in flight        │ to be retransmitted │ never sent
//!       │ (messages[0])   │                  │ (after going back)  │
//! ```
//!
//! There is no state per packet: going back recomputes which packet of which message a PSN is. Source: IBTA
//! Vol 1, 9.7.3 (PSN, go-back-N), 9.7.5.2.8 (retry counters), 9.7.5.1.2 (duplicate half of the PSN space);
//! 9.8.2 and 9.8.3 (UC and UD, which never retransmit).

use crate::config::Transport as Service;
use crate::transport::message::Message;
use proto::ids::Psn;
use proto::units::Duration;
use proto::wire::infiniband::opcode::Position;
use proto::wire::infiniband::{NakCode, Syndrome};
use std::collections::VecDeque;

/// Limits of retransmission.
#[derive(Clone, Copy, Debug)]
pub struct RetryLimits {
    /// Retransmissions after a timeout or a PSN sequence error, without progress in between.
    pub retry_count: u8,
    /// Retries after RNR NAKs; [`RetryLimits::FOR_EVER`] means no limit.
    pub rnr_retry: u8,
}

impl RetryLimits {
    /// The RNR retry count that means no limit.
    pub const FOR_EVER: u8 = 7;
}

/// The state of a requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Its connection to a foreign host is not set up yet.
    Unconnected,
    /// It may send.
    Open,
    /// It waits as long as an RNR NAK asked for.
    AwaitingReceiver,
    /// It is in the error state and sends nothing.
    Failed,
}

/// The next packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Its sequence number.
    pub psn: Psn,
    /// Position in its message.
    pub position: Position,
    /// Octets of payload.
    pub length: u32,
    /// This is not a retransmission.
    pub is_first_transmission: bool,
    /// The message.
    pub message: Message,
}

/// The result of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckOutcome {
    /// Messages that it completed.
    pub completed: u64,
    /// It acknowledged at least one packet.
    pub progress: bool,
    /// What the queue pair must do.
    pub action: RequesterAction,
}

/// What a queue pair must do after an acknowledgement or a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequesterAction {
    /// Nothing.
    Continue,
    /// Retransmit: the requester has gone back to an earlier packet.
    GoBack,
    /// Retransmit after this wait.
    Wait(Duration),
    /// Enter the error state.
    GiveUp,
}

/// Withdrawn messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Withdrawn {
    /// The number of messages.
    pub messages: u64,
    /// Octets of them that were never sent.
    pub octets: u64,
}

/// The sending half of a queue pair.
#[derive(Clone, Debug)]
pub struct Requester {
    service: Service,
    mtu: u32,
    limits: RetryLimits,
    /// Posted and incomplete messages, oldest first.
    messages: VecDeque<Message>,
    /// PSN of the first packet of `messages[0]`.
    front_psn: Psn,
    unacknowledged: Psn,
    next_psn: Psn,
    newest_psn: Psn,
    /// The message of `next_psn`, and the packet within that message.
    cursor: usize,
    packet: u32,
    retries: u8,
    rnr_retries: u8,
    state: State,
}

impl Requester {
    /// The most unacknowledged packets. Beyond half the PSN space, old and new PSNs are ambiguous.
    const WINDOW: i32 = (1 << 23) - 1;

    /// A requester without messages. `mtu` is the payload of a full packet in octets.
    pub fn new(service: Service, mtu: u32, limits: RetryLimits) -> Requester {
        Requester {
            service,
            mtu,
            limits,
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

    /// Sends nothing before [`Requester::open`].
    pub fn hold(&mut self) {
        self.state = State::Unconnected;
    }

    /// Whether it waits for [`Requester::open`].
    pub fn is_held(&self) -> bool {
        self.state == State::Unconnected
    }

    /// The connection is set up: the first packet has PSN `first`, a full one `mtu` octets.
    pub fn open(&mut self, first: Psn, mtu: u32) {
        debug_assert!(self.state == State::Unconnected, "`hold` was called and nothing was sent");
        self.mtu = mtu;
        (self.front_psn, self.unacknowledged) = (first, first);
        (self.next_psn, self.newest_psn) = (first, first);
        self.state = State::Open;
    }

    /// Adds a message. Returns false, and ignores it, in the error state.
    pub fn post(&mut self, message: Message) -> bool {
        let accepts = self.state != State::Failed;
        if accepts {
            self.messages.push_back(message);
        }
        accepts
    }

    /// Takes all messages of a pending connection, oldest first. The requester must be new.
    pub fn adopt_messages(&mut self, messages: VecDeque<Message>) {
        debug_assert!(
            self.messages.is_empty() && matches!(self.state, State::Open | State::Unconnected),
            "the requester is new"
        );
        self.messages = messages;
    }

    /// Messages that are posted and not complete.
    pub fn open_messages(&self) -> usize {
        self.messages.len()
    }

    /// The next packet, if one may be sent.
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

    /// The packet of [`Requester::next_packet`] leaves. Returns how many messages that completes: on an
    /// unreliable service a message is complete when its last packet has left.
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

    /// Whether packets in flight await an acknowledgement.
    pub fn awaits_acknowledgement(&self) -> bool {
        self.service == Service::Rc && self.next_psn != self.unacknowledged
    }

    /// Handles an AETH with `psn` and `syndrome`.
    pub fn on_acknowledge(&mut self, psn: Psn, syndrome: Syndrome) -> AckOutcome {
        // Ignore PSNs that were never sent, and late acknowledgements of confirmed packets.
        let known =
            psn.distance_from(self.unacknowledged) >= 0 && psn.distance_from(self.newest_psn) < 0;
        if self.service != Service::Rc || self.state == State::Failed || !known {
            return AckOutcome { completed: 0, progress: false, action: RequesterAction::Continue };
        }
        // A NAK carries the expected PSN, an ACK the last one received.
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
            Syndrome::Rnr { timer } => self.await_receiver(psn, timer),
            Syndrome::Nak(NakCode::PsnSequence) => self.go_back(),
            Syndrome::Nak(_) | Syndrome::Unknown(_) => RequesterAction::GiveUp,
        };
        AckOutcome { completed, progress, action }
    }

    /// The retransmission timer has expired.
    pub fn on_timeout(&mut self) -> RequesterAction {
        if self.awaits_acknowledgement() && self.state == State::Open {
            self.go_back()
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

    /// Enters the error state and withdraws every message.
    pub fn give_up(&mut self) -> Withdrawn {
        let octets = self.unsent_octets();
        let messages = self.messages.len() as u64;
        self.messages.clear();
        self.cursor = 0;
        self.packet = 0;
        self.state = State::Failed;
        Withdrawn { messages, octets }
    }

    /// The peer starts again: messages that it has not acknowledged as a whole are sent again, from the first PSN on.
    pub fn restart(&mut self) {
        // Packets of messages that are left; the error state leaves none.
        let sent = if self.messages.is_empty() { 0 } else { self.offset(self.newest_psn) };
        (self.front_psn, self.unacknowledged) = Default::default();
        self.newest_psn = self.front_psn.plus(sent);
        self.seek(self.front_psn);
        (self.retries, self.rnr_retries) = (0, 0);
        self.state = State::Open;
    }

    /// Withdraws the messages of traffic item `item` of which no packet has been sent.
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

    /// The distance from `front_psn` to `psn`, in packets. It stays below 2^24: a message has at most 2^23
    /// packets (2^31 octets at an MTU of 256), and so has the window.
    fn offset(&self, psn: Psn) -> u32 {
        psn.get().wrapping_sub(self.front_psn.get()) & Psn::MAX
    }

    /// The message and the packet within it that have this PSN; just behind the last message if none has.
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

    /// Acknowledges all packets before `psn`. Returns how many messages that completes.
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
            // Acknowledged packets need no retransmission.
            self.seek(psn);
        }
        completed
    }

    fn go_back(&mut self) -> RequesterAction {
        if self.retries >= self.limits.retry_count {
            return RequesterAction::GiveUp;
        }
        self.retries += 1;
        self.seek(self.unacknowledged);
        RequesterAction::GoBack
    }

    fn await_receiver(&mut self, psn: Psn, timer: u8) -> RequesterAction {
        let rnr_retry = self.limits.rnr_retry;
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

    /// Octets of its messages that were never sent.
    pub fn unsent_octets(&self) -> u64 {
        let (first, packet) = self.locate(self.newest_psn);
        let rest: u64 = self.messages.iter().skip(first).map(|m| u64::from(m.size)).sum();
        rest - u64::from(packet) * u64::from(self.mtu)
    }
}

#[cfg(test)]
mod tests;

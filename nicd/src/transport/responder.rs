//! The receiving half of a queue pair: packets in order in, acknowledgements out.
//!
//! Reliable: only the expected PSN is taken; one ahead is refused with one NAK a gap, one behind is
//! acknowledged again. Unreliable connection: a gap ends the message under way, and packets are
//! refused until the next message begins; a PSN seen before is refused too, so that nothing is
//! delivered twice (the standard leaves that to chance). Datagrams: whatever comes.
//!
//! Source: IBTA Vol 1, 9.7.4 (packet validation), 9.7.5 (acknowledgements, RNR), 9.8.2 (UC),
//! 9.8.3 (UD).

use crate::config::Transport as Service;
use crate::transport::memory_region::MemoryRegion;
use crate::transport::message::Stamp;
use crate::transport::receive_buffers::ReceiveBuffers;
use proto::counters::DropReason;
use proto::ids::Psn;
use proto::units::{Duration, Instant};
use proto::wire::infiniband::opcode::Position;
use proto::wire::infiniband::{NakCode, Reth, Syndrome};

/// What a responder is nak_sent.
#[derive(Clone, Copy, Debug)]
pub struct ResponderConfig {
    /// The service.
    pub service: Service,
    /// Payload of every packet but a message's last.
    pub mtu: u32,
    /// Requests per acknowledgement, at least 1.
    pub ack_every: u32,
    /// Receive buffers posted; 0 is no limit.
    pub receive_depth: u32,
    /// Time to post one again.
    pub receive_refill: Duration,
    /// RNR timer code.
    pub rnr_code: u8,
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// SEND.
    Send,
    /// RDMA WRITE.
    Write,
    /// Anything else: refused, once it is its turn.
    Unsupported,
}

/// One request packet, as far as the responder cares.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Its sequence number.
    pub psn: Psn,
    /// What it does.
    pub verb: Verb,
    /// Where in its message it stands.
    pub position: Position,
    /// Its RETH, if it has one.
    pub reth: Option<Reth>,
    /// Its payload.
    pub payload: &'a [u8],
}

/// An acknowledgement to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckPacket {
    /// Last packet received, or for a NAK the one expected.
    pub psn: Psn,
    /// ACK, RNR or NAK.
    pub syndrome: Syndrome,
    /// Messages completed, modulo 2^24.
    pub msn: u32,
}

/// Whether the requester hears of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckAction {
    /// It does not.
    None,
    /// Later, with others, but within the acknowledgement delay.
    Coalesce,
    /// At once.
    Send(AckPacket),
}

/// A message has been delivered whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// What its first octets said.
    pub stamp: Option<Stamp>,
}

/// What became of a request packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestOutcome {
    /// The message that the packet completed, if any; or why the packet was refused.
    pub result: Result<Option<Delivery>, DropReason>,
    /// The PSN is ahead of the expected one.
    pub out_of_order: bool,
    /// Which acknowledgement the requester gets.
    pub ack: AckAction,
}

impl RequestOutcome {
    fn refused(reason: DropReason, ack: AckAction) -> RequestOutcome {
        RequestOutcome { result: Err(reason), out_of_order: false, ack }
    }
}

/// A message of which not every packet has arrived.
#[derive(Clone, Copy, Debug)]
struct PartialMessage {
    verb: Verb,
    stamp: Option<Stamp>,
    received: u64,
    /// Octets that the RETH dma_length.
    dma_length: Option<u32>,
}

/// The receiving half of one queue pair.
#[derive(Clone, Debug)]
pub struct Responder {
    config: ResponderConfig,
    expected: Psn,
    partial: Option<PartialMessage>,
    /// Messages completed, modulo 2^24.
    msn: u32,
    /// Packets taken since the last acknowledgement.
    unacknowledged: u32,
    /// The requester has been nak_sent of the present gap, or to wait.
    nak_sent: bool,
    failed: bool,
    buffers: ReceiveBuffers,
}

impl Responder {
    /// A responder that has received nothing.
    pub fn new(config: ResponderConfig) -> Responder {
        let buffers = ReceiveBuffers::new(config.receive_depth, config.receive_refill);
        Responder {
            config,
            expected: Psn::default(),
            partial: None,
            msn: 0,
            unacknowledged: 0,
            nak_sent: false,
            failed: false,
            buffers,
        }
    }

    /// It has refused a request for good, and its queue pair with it.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// The PSN that is next.
    pub fn expected(&self) -> Psn {
        self.expected
    }

    /// Packets have been taken that no acknowledgement has confirmed yet.
    pub fn owes_ack(&self) -> bool {
        self.unacknowledged > 0
    }

    /// The acknowledgement of everything taken so far.
    pub fn acknowledge(&mut self) -> AckPacket {
        self.unacknowledged = 0;
        self.ack_packet(self.expected.plus(Psn::MAX), Syndrome::ACK)
    }

    /// Refuses everything from now on.
    pub fn fail(&mut self) {
        self.failed = true;
        self.unacknowledged = 0;
    }

    /// A request packet arrived.
    pub fn on_request(&mut self, request: &Request<'_>, now: Instant) -> RequestOutcome {
        if self.failed {
            return RequestOutcome::refused(DropReason::QueuePair, AckAction::None);
        }
        match self.config.service {
            Service::Rc => self.on_reliable(request, now),
            Service::Uc => self.on_unreliable(request, now),
            // Test frames are no requests.
            Service::Ud | Service::Test => self.on_datagram(request, now),
        }
    }

    fn on_reliable(&mut self, request: &Request<'_>, now: Instant) -> RequestOutcome {
        match request.psn.distance_from(self.expected) {
            0 => {}
            ahead if ahead > 0 => return self.refuse_gap(),
            _ => {
                let ack = AckAction::Send(self.acknowledge());
                return RequestOutcome::refused(DropReason::Duplicate, ack);
            }
        }
        if let Err((reason, code)) = self.check(request) {
            self.fail();
            let ack = AckAction::Send(self.ack_packet(self.expected, Syndrome::Nak(code)));
            return RequestOutcome::refused(reason, ack);
        }
        if !self.begin_message(request, now) {
            // What follows is ahead of its turn, but the requester knows.
            self.nak_sent = true;
            let syndrome = Syndrome::Rnr { timer: self.config.rnr_code };
            let ack = AckAction::Send(self.ack_packet(self.expected, syndrome));
            return RequestOutcome::refused(DropReason::ReceiverNotReady, ack);
        }
        self.nak_sent = false;
        self.expected = self.expected.next();
        let delivery = self.accept_payload(request, now);
        self.unacknowledged += 1;
        let ack = if self.unacknowledged >= self.config.ack_every {
            AckAction::Send(self.acknowledge())
        } else {
            AckAction::Coalesce
        };
        RequestOutcome { result: Ok(delivery), out_of_order: false, ack }
    }

    fn refuse_gap(&mut self) -> RequestOutcome {
        let ack = if self.nak_sent {
            AckAction::None
        } else {
            self.nak_sent = true;
            self.unacknowledged = 0;
            AckAction::Send(self.ack_packet(self.expected, Syndrome::Nak(NakCode::PsnSequence)))
        };
        let reason = DropReason::OutOfSequence;
        RequestOutcome { out_of_order: true, ..RequestOutcome::refused(reason, ack) }
    }

    fn on_unreliable(&mut self, request: &Request<'_>, now: Instant) -> RequestOutcome {
        let ahead = request.psn.distance_from(self.expected);
        if ahead < 0 {
            return RequestOutcome::refused(DropReason::Duplicate, AckAction::None);
        }
        self.expected = request.psn.next();
        let begins = matches!(request.position, Position::First | Position::Only);
        // A gap, or a message begun before the last one ended, ends the message under way.
        if ahead > 0 || begins {
            self.abandon_message(now);
        }
        let result = match self.partial {
            None if !begins => Err(DropReason::OutOfSequence),
            _ => self.accept(request, now),
        };
        RequestOutcome { result, out_of_order: ahead > 0, ack: AckAction::None }
    }

    fn on_datagram(&mut self, request: &Request<'_>, now: Instant) -> RequestOutcome {
        let out_of_order = request.psn != self.expected;
        self.expected = request.psn.next();
        self.partial = None;
        RequestOutcome { result: self.accept(request, now), out_of_order, ack: AckAction::None }
    }

    /// Accepts a packet of an unreliable service. A packet that fails a check ends its message.
    fn accept(
        &mut self,
        request: &Request<'_>,
        now: Instant,
    ) -> Result<Option<Delivery>, DropReason> {
        if let Err((reason, _)) = self.check(request) {
            self.abandon_message(now);
            return Err(reason);
        }
        if !self.begin_message(request, now) {
            return Err(DropReason::ReceiverNotReady);
        }
        Ok(self.accept_payload(request, now))
    }

    /// Whether the packet fits the message under way, its own header and our memory.
    fn check(&self, request: &Request<'_>) -> Result<(), (DropReason, NakCode)> {
        use Position::{First, Last, Middle, Only};
        let invalid = |reason| Err((reason, NakCode::InvalidRequest));
        if request.verb == Verb::Unsupported {
            return invalid(DropReason::Opcode);
        }
        let fits = match (request.position, &self.partial) {
            (First | Only, partial) => partial.is_none(),
            (Middle | Last, Some(partial)) => partial.verb == request.verb,
            (Middle | Last, None) => false,
        };
        if !fits {
            return invalid(DropReason::Opcode);
        }
        let (length, mtu) = (request.payload.len() as u64, u64::from(self.config.mtu));
        let length_fits = match request.position {
            First | Middle => length == mtu,
            Last => length > 0 && length <= mtu,
            Only => length <= mtu,
        };
        if !length_fits {
            return invalid(DropReason::PacketLength);
        }
        if let Some(reth) = &request.reth
            && !MemoryRegion::admits(reth)
        {
            return Err((DropReason::Key, NakCode::RemoteAccess));
        }
        // DMALen is the length of the whole message, no more and no less.
        let received = self.partial.map_or(0, |partial| partial.received) + length;
        let dma_length =
            request.reth.map(|reth| reth.dma_length).or(self.partial.and_then(|p| p.dma_length));
        let length_matches = dma_length.is_none_or(|dma_length| match request.position {
            First | Middle => received < u64::from(dma_length),
            Last | Only => received == u64::from(dma_length),
        });
        if length_matches { Ok(()) } else { invalid(DropReason::PacketLength) }
    }

    /// Begins a message if the packet does; false if a SEND finds no receive buffer.
    fn begin_message(&mut self, request: &Request<'_>, now: Instant) -> bool {
        if !matches!(request.position, Position::First | Position::Only) {
            return true;
        }
        if request.verb == Verb::Send && !self.buffers.take(now) {
            return false;
        }
        self.partial = Some(PartialMessage {
            verb: request.verb,
            stamp: Stamp::parse(request.payload),
            received: 0,
            dma_length: request.reth.map(|reth| reth.dma_length),
        });
        true
    }

    /// Takes the payload of a packet that is in order.
    fn accept_payload(&mut self, request: &Request<'_>, now: Instant) -> Option<Delivery> {
        let partial = self.partial.as_mut()?;
        partial.received += request.payload.len() as u64;
        if !matches!(request.position, Position::Last | Position::Only) {
            return None;
        }
        let done = self.partial.take()?;
        if done.verb == Verb::Send {
            self.buffers.give_back(now);
        }
        self.msn = (self.msn + 1) & Psn::MAX;
        Some(Delivery { stamp: done.stamp })
    }

    /// Forgets the message under way; its receive buffer goes back to the user.
    fn abandon_message(&mut self, now: Instant) {
        if self.partial.take().is_some_and(|partial| partial.verb == Verb::Send) {
            self.buffers.give_back(now);
        }
    }

    fn ack_packet(&self, psn: Psn, syndrome: Syndrome) -> AckPacket {
        AckPacket { psn, syndrome, msn: self.msn }
    }
}

#[cfg(test)]
mod tests;

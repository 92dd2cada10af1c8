//! The responder: the receiving half of a queue pair. Requests in, acknowledgements out.
//!
//! RC accepts the expected PSN only. It refuses a later PSN with one NAK per gap, and acknowledges an earlier
//! PSN again. On UC a gap ends the message in progress, and packets are refused until the next message
//! begins. A repeated PSN is refused too, so that nothing is delivered twice; the standard leaves this open.
//! UD accepts every PSN.
//!
//! Source: IBTA Vol 1, 9.7.4 (packet validation), 9.7.5 (acknowledgements, RNR), 9.8.2 (UC), 9.8.3 (UD).

use crate::config::Transport as Service;
use crate::transport::memory_region::MemoryRegion;
use crate::transport::message::Stamp;
use crate::transport::receive_buffers::ReceiveBuffers;
use proto::counters::DropReason;
use proto::ids::Psn;
use proto::units::{Duration, Instant};
use proto::wire::infiniband::opcode::Position;
use proto::wire::infiniband::{NakCode, Reth, Syndrome};

/// The configuration of a responder.
#[derive(Clone, Copy, Debug)]
pub struct ResponderConfig {
    /// The transport service.
    pub service: Service,
    /// Octets of payload in every packet except a message's last.
    pub mtu: u32,
    /// Requests per acknowledgement, at least 1.
    pub ack_every: u32,
    /// Receive buffers posted; 0 means no limit.
    pub receive_depth: u32,
    /// The time to post one receive buffer again.
    pub receive_refill: Duration,
    /// The timer code in RNR NAKs. Source: IBTA Vol 1, 9.7.5.2.8.
    pub rnr_code: u8,
}

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// SEND.
    Send,
    /// RDMA WRITE.
    Write,
    /// Any other operation. The responder refuses it in its turn.
    Unsupported,
}

/// A request packet.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Packet sequence number.
    pub psn: Psn,
    /// The operation.
    pub verb: Verb,
    /// Position in its message.
    pub position: Position,
    /// The RETH, which the first packet of an RDMA WRITE has.
    pub reth: Option<Reth>,
    /// Octets of payload, without padding.
    pub length: u64,
    /// The payload, as far as it is in memory: at least the first octets.
    pub payload: &'a [u8],
}

/// An acknowledgement to send: ACK, RNR NAK or NAK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckPacket {
    /// The last PSN received, or in a NAK the expected one.
    pub psn: Psn,
    /// The kind of acknowledgement.
    pub syndrome: Syndrome,
    /// Message sequence number: messages completed, modulo 2^24. Source: IBTA Vol 1, 9.7.7.
    pub msn: u32,
}

/// Which acknowledgement a request gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckAction {
    /// None.
    None,
    /// A coalesced one, within the acknowledgement delay.
    Coalesce,
    /// This one, immediately.
    Send(AckPacket),
}

/// A complete message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The stamp in its first octets.
    pub stamp: Option<Stamp>,
}

/// The message that a packet completed, if any; or why the packet was refused.
pub type Completion = Result<Option<Delivery>, DropReason>;

/// The result of a request packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestOutcome {
    /// The message that the packet completed, if any; or why the packet was refused.
    pub result: Completion,
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

/// A message in progress.
#[derive(Clone, Copy, Debug)]
struct PartialMessage {
    verb: Verb,
    stamp: Option<Stamp>,
    received: u64,
    /// Octets that the RETH announced.
    dma_length: Option<u32>,
}

/// The receiving half of a queue pair.
#[derive(Clone, Debug)]
pub struct Responder {
    config: ResponderConfig,
    expected: Psn,
    partial: Option<PartialMessage>,
    /// Messages completed, modulo 2^24.
    msn: u32,
    /// Packets accepted since the last acknowledgement.
    unacknowledged: u32,
    /// A NAK for the current gap, or an RNR NAK, has been sent.
    nak_sent: bool,
    failed: bool,
    buffers: ReceiveBuffers,
}

impl Responder {
    /// A responder that expects PSN 0.
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

    /// Whether the responder is in the error state.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// The expected PSN.
    pub fn expected(&self) -> Psn {
        self.expected
    }

    /// Whether accepted packets await a coalesced acknowledgement.
    pub fn owes_ack(&self) -> bool {
        self.unacknowledged > 0
    }

    /// The acknowledgement of every packet accepted so far.
    pub fn acknowledge(&mut self) -> AckPacket {
        self.unacknowledged = 0;
        self.ack_packet(self.expected.plus(Psn::MAX), Syndrome::ACK)
    }

    /// Enters the error state: every later request is refused.
    pub fn fail(&mut self) {
        self.failed = true;
        self.unacknowledged = 0;
    }

    /// Handles a request packet.
    pub fn on_request(&mut self, request: &Request<'_>, now: Instant) -> RequestOutcome {
        if self.failed {
            return RequestOutcome::refused(DropReason::QueuePair, AckAction::None);
        }
        match self.config.service {
            Service::Rc => self.on_reliable(request, now),
            Service::Uc => self.on_unreliable(request, now),
            // Test frames never reach the responder.
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
            // The requester will retransmit, so later packets need no NAK.
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
        // A gap, or a new message before the end of the last one, ends the message in progress.
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
    fn accept(&mut self, request: &Request<'_>, now: Instant) -> Completion {
        if let Err((reason, _)) = self.check(request) {
            self.abandon_message(now);
            return Err(reason);
        }
        if !self.begin_message(request, now) {
            return Err(DropReason::ReceiverNotReady);
        }
        Ok(self.accept_payload(request, now))
    }

    /// Checks operation, position, length, memory key and bounds. Source: IBTA Vol 1, 9.7.4.1.
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
        let (length, mtu) = (request.length, u64::from(self.config.mtu));
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
        // DMALen is the exact length of the whole message.
        let received = self.partial.map_or(0, |partial| partial.received) + length;
        let dma_length =
            request.reth.map(|reth| reth.dma_length).or(self.partial.and_then(|p| p.dma_length));
        let length_matches = dma_length.is_none_or(|dma_length| match request.position {
            First | Middle => received < u64::from(dma_length),
            Last | Only => received == u64::from(dma_length),
        });
        if length_matches { Ok(()) } else { invalid(DropReason::PacketLength) }
    }

    /// Begins a message if the packet is its first. False if a SEND finds no receive buffer.
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

    /// Accepts the payload of a packet. Returns the message if this was its last packet.
    fn accept_payload(&mut self, request: &Request<'_>, now: Instant) -> Option<Delivery> {
        let partial = self.partial.as_mut()?;
        partial.received += request.length;
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

    /// Discards the message in progress. Its receive buffer is posted again.
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

//! Connection management: the states of a connection, and the messages that move it.
//!
//! ```text
//!   passive                                    active
//!   (Listen) ── REQ ──▶ REP Sent               (Idle) ── connect ──▶ REQ Sent ── MRA ──▶ REP Wait
//!                          │ RTU, or data                               │ REP               │ REP
//!                          ▼                                            ▼                   │
//!                      Established ◀───────────── RTU sent ─────────────┴───────────────────┘
//!                          │ close ──▶ DREQ Sent ── DREP, or time ──▶ Timewait
//!                          └── DREQ ──────────────── DREP sent ─────▶ Timewait
//! ```
//!
//! A message without an answer is repeated. A REJ, or the last repetition, ends a connection that is not yet
//! established. Source: IBTA Vol 1, 12.9 (state diagrams of the passive and active side), 12.9.8 (time-outs).

pub mod table;

use crate::host::requester::Patience;
use proto::ids::{MacAddress, Psn, QueuePairNumber};
use proto::units::{Duration, Instant};
use proto::wire::ethernet::plan;
use proto::wire::infiniband::connection::{Disconnect, Message, Ready, Reply, Request};
use proto::wire::infiniband::mad::Mad;
use std::net::{IpAddr, Ipv6Addr};

/// A state of a connection. Source: IBTA Vol 1, figures of 12.9.5 and 12.9.6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// REQ is sent.
    ReqSent,
    /// The peer has asked for time with an MRA.
    RepWait,
    /// REP is sent.
    RepSent,
    /// Data may flow.
    Established,
    /// DREQ is sent.
    DreqSent,
    /// Late messages of the connection may still come.
    Timewait,
}

/// A connection.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Its state.
    pub state: State,
    /// The peer's address.
    pub peer: IpAddr,
    /// The own identifier.
    pub local_id: u32,
    /// The peer's identifier; 0 before its REP.
    pub remote_id: u32,
    /// The own queue pair.
    pub number: QueuePairNumber,
    /// The peer's queue pair.
    pub remote: QueuePairNumber,
    /// The transaction of the exchange in progress.
    pub transaction: u64,
    /// The message that is repeated until its answer comes.
    pub awaited: Option<Box<[u8; Mad::DATAGRAM]>>,
    /// When it is repeated, or when Timewait ends.
    pub due: Instant,
    /// The time between repetitions.
    pub interval: Duration,
    /// Repetitions left.
    pub repetitions: u8,
}

/// How long Timewait lasts. It covers the life of packets on a fabric of one switch or a few. Source: IBTA Vol 1,
/// 12.9.8.4.
pub const TIMEWAIT: Duration = Duration::from_us(1_000_000);
/// The most repetitions of a message. Source: IBTA Vol 1, 12.7.27 (four bits).
pub const REPETITIONS: u8 = 15;

impl Connection {
    /// Begins to wait for an answer to `message`.
    pub fn await_answer(&mut self, message: Box<[u8; Mad::DATAGRAM]>, now: Instant) {
        self.awaited = Some(message);
        self.repetitions = REPETITIONS;
        self.due = now + self.interval;
    }

    /// The connection is established: nothing is awaited.
    pub fn establish(&mut self) {
        self.state = State::Established;
        self.awaited = None;
        self.due = Instant::NEVER;
    }

    /// Enters Timewait.
    pub fn retire(&mut self, now: Instant) {
        self.state = State::Timewait;
        self.awaited = None;
        self.due = now + TIMEWAIT;
    }

    /// RTU of this connection.
    pub fn ready(&self) -> Message {
        Message::Ready(Ready { local_id: self.local_id, remote_id: self.remote_id })
    }

    /// DREQ of this connection.
    pub fn disconnect(&self) -> Message {
        let (local_id, remote_id, queue_pair) = (self.local_id, self.remote_id, self.remote);
        Message::Disconnect(Disconnect { local_id, remote_id, queue_pair, reserved8: 0 })
    }
}

/// The time of a code: 4.096 µs · 2^code. Source: IBTA Vol 1, 12.7.34.
pub fn time(code: u8) -> Duration {
    Duration::from_ps(4_096_000) * (1u64 << (code & 31))
}

/// The octets of an MTU code; `None` for reserved codes. Source: IBTA Vol 1, 12.7.23.
pub fn mtu(code: u8) -> Option<u32> {
    (1..=5).contains(&code).then(|| 128 << code)
}

/// The code of an MTU that is a power of two from 256 to 4096.
pub fn mtu_code(octets: u32) -> u8 {
    octets.ilog2().clamp(8, 12) as u8 - 7
}

/// The GUID of the adapter with this MAC address (EUI-64). Source: IBTA Vol 1, 4.1.1; RFC 4291, appendix A.
pub fn guid(mac: MacAddress) -> u64 {
    let octets = mac.number();
    let (high, low) = (octets >> 24, octets & 0xff_ffff);
    (high << 40 | 0xff_fe00_0000 | low) ^ 1 << 57
}

/// How patient the requester of the passive side is: as the REQ asks.
pub fn patience(request: &Request) -> Patience {
    Patience {
        timeout: time(request.primary.ack_timeout.min(TIMEOUT_MAX)),
        retries: request.head.retry_count,
        rnr_retries: request.head.rnr_retry_count,
    }
}

/// The longest code of a retransmission time: 2.1 s. A REQ may ask for hours.
const TIMEOUT_MAX: u8 = 19;

/// REP to `request`; the peer shall begin at PSN `expected`.
pub fn reply(
    request: &Request,
    local_id: u32,
    number: QueuePairNumber,
    expected: Psn,
    resources: u8,
    mac: MacAddress,
) -> Reply {
    Reply {
        local_id,
        remote_id: request.head.local_id,
        queue_key: 0,
        queue_pair: number,
        reserved8: 0,
        context: 0,
        reserved8b: 0,
        starting_psn: expected,
        reserved8c: 0,
        // What the peer wants to send is what this side must answer, and the other way round.
        responder_resources: request.head.initiator_depth.min(resources),
        initiator_depth: request.head.responder_resources.min(1),
        target_ack_delay: TARGET_ACK_DELAY,
        failover: 1,
        flow_control: false,
        rnr_retry_count: 7,
        shared_receive_queue: false,
        reserved4: 0,
        guid: guid(mac),
    }
}

/// The longest delay of an acknowledgement: 134 ms, more than a live run is ever late. Source: IBTA Vol 1,
/// 12.7.33.
const TARGET_ACK_DELAY: u8 = 15;

/// Whether `gid` is an address of the plan's adapter with this MAC, in either IP version.
pub fn is_own(gid: Ipv6Addr, mac: MacAddress) -> bool {
    let Some(number) = plan::adapter_of_mac(mac) else { return false };
    gid == plan::ipv6(number) || gid == plan::ipv4(number).to_ipv6_mapped()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_times_and_sizes_of_the_standard() {
        assert_eq!(time(0), Duration::from_ps(4_096_000));
        assert_eq!(time(14), Duration::from_ps(4_096_000 << 14));
        assert_eq!([1, 3, 5].map(mtu), [Some(256), Some(1024), Some(4096)]);
        assert_eq!([0, 6].map(mtu), [None, None]);
        assert_eq!([256, 1024, 4096].map(mtu_code), [1, 3, 5]);
    }

    #[test]
    fn the_guid_of_a_mac_address_is_its_eui_64() {
        // As `ibv_devinfo` of soft-RoCE shows it for 02:00:00:00:00:01.
        assert_eq!(guid(MacAddress::from_number(0x0200_0000_0001)), 0x0000_00ff_fe00_0001);
    }
}

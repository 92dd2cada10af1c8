//! The fixed parts of the connection messages.
//!
//! Times are codes: 4.096 µs · 2^code. Source: IBTA Vol 1, 12.6.5 to 12.6.11, 12.7 (fields).

use crate::ids::{Lid, Psn, QueuePairNumber, ServiceLevel};
use crate::wire::header::header;
use core::net::Ipv6Addr;

header! {
    /// A path in a [`Request`]. Source: IBTA Vol 1, 12.6.5 and 12.7.21.
    pub struct Path[44] "path" {
        /// LID of the requester; 0xFFFF with RoCE.
        pub local_lid: Lid = 0..16,
        /// LID of the responder; 0xFFFF with RoCE.
        pub remote_lid: Lid = 16..32,
        /// GID of the requester; with RoCEv2 its IP address.
        pub local_gid: Ipv6Addr = 32..160,
        /// GID of the responder.
        pub remote_gid: Ipv6Addr = 160..288,
        /// Flow label, twenty bits.
        pub flow_label: u32 = 288..308,
        /// Reserved.
        pub reserved6: u8 = 308..314,
        /// Packet rate, a code of six bits.
        pub packet_rate: u8 = 314..320,
        /// Traffic class.
        pub traffic_class: u8 = 320..328,
        /// Hop limit.
        pub hop_limit: u8 = 328..336,
        /// Service level.
        pub service_level: ServiceLevel = 336..340,
        /// The path stays in its subnet.
        pub subnet_local: bool = 340..341,
        /// Reserved.
        pub reserved3: u8 = 341..344,
        /// Local ACK timeout that the responder uses, a code of five bits.
        pub ack_timeout: u8 = 344..349,
        /// Reserved.
        pub reserved3b: u8 = 349..352,
    }

    /// REQ without its paths.
    pub struct RequestHead[52] "REQ" {
        /// The requester's identifier of the connection.
        pub local_id: u32 = 0..32,
        /// Reserved.
        pub reserved32: u32 = 32..64,
        /// What is asked for.
        pub service: u64 = 64..128,
        /// GUID of the requester's channel adapter.
        pub guid: u64 = 128..192,
        /// Reserved.
        pub reserved32b: u32 = 192..224,
        /// The requester's Q_Key.
        pub queue_key: u32 = 224..256,
        /// The requester's queue pair.
        pub queue_pair: QueuePairNumber = 256..280,
        /// RDMA READs and atomics in flight that the requester can answer.
        pub responder_resources: u8 = 280..288,
        /// The requester's end-to-end context.
        pub context: u32 = 288..312,
        /// RDMA READs and atomics in flight that the requester wants to send.
        pub initiator_depth: u8 = 312..320,
        /// The responder's end-to-end context.
        pub remote_context: u32 = 320..344,
        /// How long the responder may take for an answer, a code of five bits.
        pub remote_response_timeout: u8 = 344..349,
        /// Transport service: 0 RC, 1 UC, 2 RD, 3 by the extended type.
        pub transport: u8 = 349..351,
        /// The requester keeps to end-to-end credits.
        pub flow_control: bool = 351..352,
        /// The first PSN that the receiver of this message shall send. Source: 12.7.31.
        pub starting_psn: Psn = 352..376,
        /// How long the requester may take for an answer, a code of five bits.
        pub local_response_timeout: u8 = 376..381,
        /// Retransmissions after a time-out or NAK.
        pub retry_count: u8 = 381..384,
        /// Partition key.
        pub partition_key: u16 = 384..400,
        /// Path MTU: 1 to 5 for 256 to 4096 octets.
        pub path_mtu: u8 = 400..404,
        /// The RDC exists.
        pub rdc_exists: bool = 404..405,
        /// Retries after RNR NAKs; 7 means no limit.
        pub rnr_retry_count: u8 = 405..408,
        /// Repetitions of a connection message.
        pub cm_retries: u8 = 408..412,
        /// The requester's queue pair has a shared receive queue.
        pub shared_receive_queue: bool = 412..413,
        /// Extended transport type.
        pub extended_transport: u8 = 413..416,
    }

    /// MRA: the answer to a message takes longer. Source: IBTA Vol 1, 12.6.6.
    pub struct Wait[10] "MRA" {
        /// The sender's identifier.
        pub local_id: u32 = 0..32,
        /// The receiver's identifier.
        pub remote_id: u32 = 32..64,
        /// What is answered later: 0 a REQ, 1 a REP, 2 another message.
        pub message: u8 = 64..66,
        /// Reserved.
        pub reserved6: u8 = 66..72,
        /// How long it may take, a code of five bits.
        pub service_timeout: u8 = 72..77,
        /// Reserved.
        pub reserved3: u8 = 77..80,
    }

    /// REJ, with the first half of its additional information as a number. Source: IBTA Vol 1, 12.6.7.
    pub struct Reject[84] "REJ" {
        /// The sender's identifier; 0 if it has none.
        pub local_id: u32 = 0..32,
        /// The receiver's identifier.
        pub remote_id: u32 = 32..64,
        /// What is refused: 0 a REQ, 1 a REP, 2 no message.
        pub message: u8 = 64..66,
        /// Reserved.
        pub reserved6: u8 = 66..72,
        /// Valid octets of additional information.
        pub information_length: u8 = 72..79,
        /// Reserved.
        pub reserved1: bool = 79..80,
        /// Why ([`super::reason`]).
        pub reason: u16 = 80..96,
        /// Additional information, octets 0 to 15.
        pub information: Ipv6Addr = 96..224,
        /// Octets 16 to 31.
        pub information2: Ipv6Addr = 224..352,
        /// Octets 32 to 47.
        pub information3: Ipv6Addr = 352..480,
        /// Octets 48 to 63.
        pub information4: Ipv6Addr = 480..608,
        /// Octets 64 to 71.
        pub information5: u64 = 608..672,
    }

    /// REP. Source: IBTA Vol 1, 12.6.8.
    pub struct Reply[36] "REP" {
        /// The sender's identifier.
        pub local_id: u32 = 0..32,
        /// The receiver's identifier.
        pub remote_id: u32 = 32..64,
        /// The sender's Q_Key.
        pub queue_key: u32 = 64..96,
        /// The sender's queue pair.
        pub queue_pair: QueuePairNumber = 96..120,
        /// Reserved.
        pub reserved8: u8 = 120..128,
        /// The sender's end-to-end context.
        pub context: u32 = 128..152,
        /// Reserved.
        pub reserved8b: u8 = 152..160,
        /// The first PSN that the receiver of this message shall send. Source: 12.7.31.
        pub starting_psn: Psn = 160..184,
        /// Reserved.
        pub reserved8c: u8 = 184..192,
        /// RDMA READs and atomics in flight that the sender can answer.
        pub responder_resources: u8 = 192..200,
        /// RDMA READs and atomics in flight that the sender wants to send.
        pub initiator_depth: u8 = 200..208,
        /// How long the sender may take for an acknowledgement, a code of five bits.
        pub target_ack_delay: u8 = 208..213,
        /// Whether the alternate path is accepted, two bits.
        pub failover: u8 = 213..215,
        /// The sender keeps to end-to-end credits.
        pub flow_control: bool = 215..216,
        /// Retries after RNR NAKs; 7 means no limit.
        pub rnr_retry_count: u8 = 216..219,
        /// The sender's queue pair has a shared receive queue.
        pub shared_receive_queue: bool = 219..220,
        /// Reserved.
        pub reserved4: u8 = 220..224,
        /// GUID of the sender's channel adapter.
        pub guid: u64 = 224..288,
    }

    /// RTU. Source: IBTA Vol 1, 12.6.9.
    pub struct Ready[8] "RTU" {
        /// The sender's identifier.
        pub local_id: u32 = 0..32,
        /// The receiver's identifier.
        pub remote_id: u32 = 32..64,
    }

    /// DREQ. Source: IBTA Vol 1, 12.6.10.
    pub struct Disconnect[12] "DREQ" {
        /// The sender's identifier.
        pub local_id: u32 = 0..32,
        /// The receiver's identifier.
        pub remote_id: u32 = 32..64,
        /// The receiver's queue pair.
        pub queue_pair: QueuePairNumber = 64..88,
        /// Reserved.
        pub reserved8: u8 = 88..96,
    }

    /// DREP. Source: IBTA Vol 1, 12.6.11.
    pub struct DisconnectReply[8] "DREP" {
        /// The sender's identifier.
        pub local_id: u32 = 0..32,
        /// The receiver's identifier.
        pub remote_id: u32 = 32..64,
    }

    /// The header at the start of a REQ's private data that names IP addresses. Source: IBTA Vol 1, A11.
    pub struct IpAddressing[36] "IP addressing" {
        /// Major version of this header: 0.
        pub major: u8 = 0..4,
        /// Minor version of this header: 0.
        pub minor: u8 = 4..8,
        /// IP version: 4 or 6.
        pub ip_version: u8 = 8..12,
        /// Reserved.
        pub reserved4: u8 = 12..16,
        /// The requester's port.
        pub source_port: u16 = 16..32,
        /// The requester's address; IPv4 in the last four octets.
        pub source: Ipv6Addr = 32..160,
        /// The responder's address.
        pub destination: Ipv6Addr = 160..288,
    }
}

/// REQ. Source: IBTA Vol 1, 12.6.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Everything before the paths.
    pub head: RequestHead,
    /// The path of the connection.
    pub primary: Path,
    /// A path for automatic migration; zero if there is none.
    pub alternate: Path,
}

impl Request {
    /// Octets before the private data.
    pub const LEN: usize = RequestHead::LEN + 2 * Path::LEN;

    /// Reads the fixed part of a REQ.
    ///
    /// # Errors
    /// If the octets are fewer than [`Request::LEN`].
    pub fn parse(octets: &[u8]) -> Result<Request, crate::wire::error::ParseError> {
        let octets = crate::wire::header::first_octets::<{ Request::LEN }>("REQ", octets)?;
        Ok(Request {
            head: RequestHead::parse(octets)?,
            primary: Path::parse(&octets[RequestHead::LEN..])?,
            alternate: Path::parse(&octets[RequestHead::LEN + Path::LEN..])?,
        })
    }

    /// Writes the fixed part of a REQ.
    ///
    /// # Panics
    /// If there are fewer octets than [`Request::LEN`].
    pub fn emit(&self, octets: &mut [u8]) {
        self.head.emit(octets);
        self.primary.emit(&mut octets[RequestHead::LEN..]);
        self.alternate.emit(&mut octets[RequestHead::LEN + Path::LEN..]);
    }
}

impl IpAddressing {
    /// The service ID of TCP-like `port` among IP services. Source: IBTA Vol 1, A11.2.2.
    pub const fn service(port: u16) -> u64 {
        0x0000_0000_0106_0000 | port as u64
    }

    /// The port of a service ID made by [`IpAddressing::service`].
    pub const fn port(service: u64) -> Option<u16> {
        if service >> 16 == 0x0106 { Some(service as u16) } else { None }
    }
}

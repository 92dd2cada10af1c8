//! Packets of InfiniBand that tests send.

use bytes::BytesMut;
use proto::frame::{Frame, FrameKind};
use proto::ids::{Lid, Psn, QueuePairNumber, ServiceLevel, VirtualLane};
use proto::wire::infiniband::extended_headers::ExtendedHeaders;
use proto::wire::infiniband::{Bth, Opcode, PacketBuilder, crc};

/// One packet between the queue pairs that two adapters have for a connection class.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// The sender's LID.
    pub from: u16,
    /// The receiver's LID.
    pub to: u16,
    /// The connection class.
    pub class: u8,
    /// The opcode.
    pub opcode: Opcode,
    /// Its sequence number; a test's own mark to find it again.
    pub psn: u32,
    /// The lane.
    pub lane: u8,
    /// The service level.
    pub level: u8,
    /// Octets of payload.
    pub payload: usize,
    /// With FECN.
    pub fecn: bool,
    /// With BECN.
    pub becn: bool,
    /// Whether it asks for an acknowledgement.
    pub ack: bool,
    /// Headers after the BTH, as the opcode demands.
    pub extended: ExtendedHeaders,
}

impl Packet {
    /// An RC SEND Only of half a full frame on lane and service level 0, class 0: short, and still so
    /// long on the line that a daemon knows of its departure well before it is due.
    pub const fn new(from: u16, to: u16, psn: u32) -> Packet {
        Packet {
            from,
            to,
            class: 0,
            opcode: Opcode::RC_SEND_ONLY,
            psn,
            lane: 0,
            level: 0,
            payload: 1024,
            fecn: false,
            becn: false,
            ack: true,
            extended: ExtendedHeaders::NONE,
        }
    }

    /// The same with a full payload.
    pub const fn full(from: u16, to: u16, psn: u32) -> Packet {
        Packet { payload: 2048, ..Packet::new(from, to, psn) }
    }

    /// A congestion notification.
    pub const fn cnp(from: u16, to: u16) -> Packet {
        let shape = Packet::new(from, to, 0);
        Packet { opcode: Opcode::CNP, becn: true, payload: 0, ..shape }
    }

    /// Its octets with both CRCs.
    ///
    /// # Panics
    /// If there is no such packet: a test asks only for those that there are.
    pub fn octets(&self) -> BytesMut {
        let queue_pair = QueuePairNumber::planned(self.class, Lid::new(self.from));
        let bth = Bth {
            ack_request: self.ack,
            fecn: self.fecn,
            becn: self.becn,
            ..Bth::new(self.opcode, queue_pair, Psn::truncate(self.psn))
        };
        let builder = PacketBuilder {
            virtual_lane: VirtualLane::truncate(self.lane),
            service_level: ServiceLevel::truncate(self.level),
            slid: Lid::new(self.from),
            dlid: Lid::new(self.to),
            extended: self.extended,
            ..PacketBuilder::new(bth)
        };
        let mut octets = BytesMut::new();
        builder.emit(&mut octets, self.payload, super::fill).expect("a test asks for real packets");
        octets
    }

    /// The same as a frame.
    pub fn frame(&self) -> Frame {
        Frame::unchecked(FrameKind::Infiniband, self.octets())
    }
}

/// `octets` with `change` made and both CRCs computed anew.
pub fn altered(mut octets: BytesMut, change: impl FnOnce(&mut [u8])) -> BytesMut {
    change(&mut octets);
    crc::refresh_both(&mut octets);
    octets
}

/// `octets` with `change` made and no CRC computed anew.
pub fn damaged(mut octets: BytesMut, change: impl FnOnce(&mut [u8])) -> BytesMut {
    change(&mut octets);
    octets
}

/// `octets` with `words` in PktLen, CRCs computed anew.
pub fn with_length(octets: BytesMut, words: u16) -> BytesMut {
    altered(octets, |octets| {
        octets[4] = octets[4] & 0xf8 | (words >> 8) as u8 & 7;
        octets[5] = words as u8;
    })
}

/// The PktLen of a packet. Units: words.
pub fn length_of(octets: &[u8]) -> u16 {
    u16::from_be_bytes([octets[4], octets[5]]) & 0x7ff
}

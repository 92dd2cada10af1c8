//! Frames that a tester sends: short to ask for, whole on the wire.

use bytes::BytesMut;
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
    /// What it is.
    pub opcode: Opcode,
    /// Its sequence number; a case's own mark to find it again.
    pub psn: u32,
    /// On which lane.
    pub lane: u8,
    /// On which service level.
    pub level: u8,
    /// Octets of payload.
    pub payload: usize,
    /// With FECN.
    pub fecn: bool,
    /// With BECN.
    pub becn: bool,
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
            extended: ExtendedHeaders::NONE,
        }
    }

    /// Its octets with both CRCs.
    ///
    /// # Panics
    /// If there is no such packet: a case asks only for those that there are.
    pub fn octets(&self) -> BytesMut {
        let queue_pair = QueuePairNumber::planned(self.class, Lid::new(self.from));
        let bth = Bth {
            ack_request: true,
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
        let fill = |place: &mut [u8]| {
            place.iter_mut().enumerate().for_each(|(index, octet)| *octet = index as u8);
        };
        builder.emit(&mut octets, self.payload, fill).expect("a case asks for packets there are");
        octets
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

/// `octets` whose PktLen says `words`, CRCs as they must be for that.
pub fn with_length(octets: BytesMut, words: u16) -> BytesMut {
    altered(octets, |octets| {
        octets[4] = octets[4] & 0xf8 | (words >> 8) as u8 & 7;
        octets[5] = words as u8;
    })
}

/// What PktLen says. Units: words.
pub fn length_of(octets: &[u8]) -> u16 {
    u16::from_be_bytes([octets[4], octets[5]]) & 0x7ff
}

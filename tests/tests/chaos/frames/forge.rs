//! Hostile frames by seed: half of them are valid but for one field, the rest are wrong in any way.

use emulation::cable::shim::{SendingEnd, Shim};
use proto::frame::FrameKind;
use proto::ids::{Lid, Psn, QueuePairNumber, VirtualLane};
use proto::random::Random;
use proto::technology::Technology;
use proto::units::Instant;
use proto::wire::ethernet::{MacControl, Pause, Pfc, crc as roce, plan};
use proto::wire::infiniband::{
    Bth, ExtendedHeaders, FlowControlOp, FlowControlPacket, Opcode,
    PacketBuilder as InfinibandBuilder, crc,
};
use proto::wire::internet::{Ipv4, Udp, checksum};
use proto::wire::roce::{NetworkHeaders, PacketBuilder as RoceBuilder};
use std::ops::Range;

/// A named field of a frame, by its octets.
type Field = (&'static str, Range<usize>);

/// Source: the layout in emulation/src/cable/shim.rs.
const SHIM: [Field; 10] = [
    ("shim magic", 0..4),
    ("shim version", 4..5),
    ("shim kind", 5..6),
    ("shim flags", 6..7),
    ("shim end", 7..8),
    ("shim link", 8..12),
    ("shim epoch", 12..16),
    ("shim sequence", 16..20),
    ("shim length", 20..24),
    ("shim stamp", 24..32),
];

/// Source: IBTA Vol 1, 7.7 (LRH) and 9.2 (BTH).
const INFINIBAND: [Field; 12] = [
    ("VL and LVer", 0..1),
    ("SL and LNH", 1..2),
    ("DLID", 2..4),
    ("PktLen", 4..6),
    ("SLID", 6..8),
    ("BTH opcode", 8..9),
    ("BTH flags and TVer", 9..10),
    ("P_Key", 10..12),
    ("FECN and BECN", 12..13),
    ("queue pair", 13..16),
    ("AckReq", 16..17),
    ("PSN", 17..20),
];

/// Source: IBTA Vol 1, 7.9.4.
const FLOW_CONTROL: [Field; 2] = [("Op and FCTBS", 0..2), ("VL and FCCL", 2..4)];

/// Source: IEEE 802.3, 3.1.1; RFC 791; RFC 768; IBTA Vol 1, annex A17.
const ROCE: [Field; 21] = [
    ("destination MAC", 0..6),
    ("source MAC", 6..12),
    ("EtherType", 12..14),
    ("IP version and IHL", 14..15),
    ("DSCP and ECN", 15..16),
    ("IP length", 16..18),
    ("IP identification", 18..20),
    ("IP fragment", 20..22),
    ("TTL", 22..23),
    ("IP protocol", 23..24),
    ("IP source", 26..30),
    ("IP destination", 30..34),
    ("UDP source port", 34..36),
    ("UDP destination port", 36..38),
    ("UDP length", 38..40),
    ("UDP checksum", 40..42),
    ("BTH opcode", 42..43),
    ("BTH flags and TVer", 43..44),
    ("P_Key", 44..46),
    ("queue pair", 47..50),
    ("PSN", 51..54),
];

/// Source: IEEE 802.3, 31.4.1 and annexes 31B and 31D.
const MAC_CONTROL: [Field; 5] = [
    ("control destination", 0..6),
    ("control source", 6..12),
    ("control opcode", 14..16),
    ("pause time or priorities", 16..18),
    ("pause time", 18..20),
];

/// The name of the class of frames without a fault.
pub const GOOD: &str = "good";

/// A valid frame and its fields. A fault in a field leaves the checks behind it valid.
struct Base {
    kind: FrameKind,
    octets: Vec<u8>,
    fields: &'static [Field],
    /// The name of its last check, and its octets.
    check: Option<Field>,
}

/// A hostile datagram or frame.
pub struct Forged {
    pub octets: Vec<u8>,
    /// It comes from an address of no process of the run, where the carrier has addresses.
    pub foreign: bool,
}

/// The line of the far end that sends, on carriers with a shim.
#[derive(Clone, Copy)]
pub struct Line {
    pub link: u32,
    pub end: SendingEnd,
    pub epoch: u32,
}

/// Makes hostile frames for one port. They claim to go from adapter 3 to adapter 2.
pub struct Forge {
    random: Random,
    line: Option<Line>,
    next_sequence: u32,
    bases: Vec<Base>,
}

/// The LID of the adapter in whose place the frames are sent, and that of their receiver.
const FROM: Lid = Lid::new(3);
const TO: Lid = Lid::new(2);

impl Forge {
    pub fn new(technology: Technology, line: Option<Line>, random: Random) -> Forge {
        let bases = match technology {
            Technology::Infiniband => infiniband(),
            Technology::Ethernet => ethernet(),
        };
        Forge { random, line, next_sequence: 0, bases }
    }

    /// All classes of faults, the good frame first.
    pub fn classes(&self) -> Vec<&'static str> {
        let shim = self.line.map_or(&[][..], |_| &SHIM[..]).iter().map(|(name, _)| *name);
        let fields = self.bases.iter().flat_map(|base| base.fields.iter().chain(&base.check));
        let mut names = vec![GOOD, "random octets", "cut", "longer", "foreign"];
        for name in shim.chain(fields.map(|(name, _)| *name)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// The next hostile frame, at `now`.
    pub fn next(&mut self, now: Instant) -> Forged {
        if self.random.chance(1, 2) {
            return self.one_field(now);
        }
        match self.random.below(4) {
            0 => self.of_class("random octets", now),
            1 => self.of_class("cut", now),
            2 => self.of_class("longer", now),
            _ => self.of_class("foreign", now),
        }
    }

    /// A frame that is valid but for one field.
    fn one_field(&mut self, now: Instant) -> Forged {
        let shim = self.line.map_or(0, |_| SHIM.len() as u64);
        // Half of these faults are in the shim, where there is one.
        if shim > 0 && self.random.chance(1, 2) {
            let at = self.random.below(shim) as usize;
            return self.of_class(SHIM[at].0, now);
        }
        let base = &self.bases[self.random.below(self.bases.len() as u64) as usize];
        let count = base.fields.len() + usize::from(base.check.is_some());
        let at = self.random.below(count as u64) as usize;
        let (name, _) = base.fields.iter().chain(&base.check).nth(at).expect("below their number");
        self.of_class(name, now)
    }

    /// A frame of a class.
    pub fn of_class(&mut self, class: &'static str, now: Instant) -> Forged {
        let has_it =
            |base: &&Base| base.fields.iter().chain(&base.check).any(|(name, _)| *name == class);
        let base = self.bases.iter().find(has_it).unwrap_or(&self.bases[0]);
        let (kind, mut octets) = (base.kind, base.octets.clone());
        if let Some((_, place)) = base.fields.iter().find(|(name, _)| *name == class) {
            spoil(&mut octets[place.clone()], &mut self.random);
            make_valid(kind, &mut octets);
        } else if let Some((_, place)) = base.check.as_ref().filter(|(name, _)| *name == class) {
            spoil(&mut octets[place.clone()], &mut self.random);
        }
        let whole = self.behind_shim(kind, octets, now);
        let octets = self.spoiled_whole(class, whole);
        Forged { octets, foreign: class == "foreign" }
    }

    /// The frame as the honest far end would send it now.
    fn behind_shim(&mut self, kind: FrameKind, octets: Vec<u8>, now: Instant) -> Vec<u8> {
        let Some(Line { link, end, epoch }) = self.line else { return octets };
        let sequence = self.next_sequence;
        let length = octets.len() as u32;
        let shim = Shim { kind, flags: 0, end, link, epoch, sequence, length, stamp: now };
        [&shim.emit()[..], &octets].concat()
    }

    /// Faults that concern the datagram as a whole, or its shim.
    fn spoiled_whole(&mut self, class: &str, mut octets: Vec<u8>) -> Vec<u8> {
        let random = &mut self.random;
        match class {
            "random octets" => {
                let length = random.below(2_200) as usize;
                octets = (0..length).map(|_| random.next_u64() as u8).collect();
            }
            "cut" => octets.truncate(random.below(octets.len() as u64) as usize),
            "longer" => {
                let most = if random.chance(1, 8) { 6_000 } else { 200 };
                let more = 1 + random.below(most) as usize;
                octets.extend((0..more).map(|_| random.next_u64() as u8));
            }
            _ => {
                let shim = SHIM.iter().filter(|_| self.line.is_some());
                if let Some((_, place)) = shim.clone().find(|(name, _)| *name == class) {
                    spoil(&mut octets[place.clone()], random);
                }
            }
        }
        self.follow(&octets);
        octets
    }

    /// Continues behind the number that the receiver has seen last, since all that follows an outdated number is a
    /// duplicate.
    fn follow(&mut self, octets: &[u8]) {
        let Some(line) = self.line else { return };
        let seen = Shim::parse(octets).ok().filter(|shim| {
            (shim.link, shim.end, shim.epoch) == (line.link, line.end, line.epoch)
                && Shim::LENGTH + shim.length as usize <= octets.len()
        });
        if let Some(shim) = seen
            && shim.sequence.wrapping_sub(self.next_sequence) < 1 << 31
        {
            self.next_sequence = shim.sequence.wrapping_add(1);
        }
    }
}

/// Changes some octets: to zeros, to ones, in one bit, or to anything.
fn spoil(octets: &mut [u8], random: &mut Random) {
    let before = octets.to_vec();
    match random.below(4) {
        0 => octets.fill(0),
        1 => octets.fill(0xff),
        2 => {}
        _ => octets.iter_mut().for_each(|octet| *octet = random.next_u64() as u8),
    }
    if octets == before {
        let bit = random.below(octets.len() as u64 * 8) as usize;
        octets[bit / 8] ^= 1 << (bit % 8);
    }
}

/// Writes the checks that cover a changed field.
fn make_valid(kind: FrameKind, octets: &mut [u8]) {
    match kind {
        FrameKind::Infiniband => crc::refresh_both(octets),
        FrameKind::InfinibandLink => {
            let computed = crc::lpcrc(octets).to_le_bytes();
            octets[4..6].copy_from_slice(&computed);
        }
        FrameKind::Ethernet if MacControl::is_announced(octets) => {}
        FrameKind::Ethernet => {
            octets[24..26].fill(0);
            let sum = checksum::ipv4_header(&octets[14..34]);
            octets[24..26].copy_from_slice(&sum.to_be_bytes());
            let end = octets.len() - 4;
            let icrc = roce::icrc(roce::Network::Ipv4, 28, &octets[14..end]);
            octets[end..].copy_from_slice(&icrc.to_le_bytes());
        }
    }
}

fn bth() -> Bth {
    // No queue pair of the receiver has this number.
    Bth::new(Opcode::UC_SEND_ONLY, QueuePairNumber::truncate(0x00ab_cdef), Psn::truncate(7))
}

fn infiniband() -> Vec<Base> {
    let builder = InfinibandBuilder { slid: FROM, dlid: TO, ..InfinibandBuilder::new(bth()) };
    let mut octets = bytes::BytesMut::new();
    builder.emit(&mut octets, 256, |place| place.fill(0x5a)).expect("it fits a packet");
    let (vcrc, octets) = (octets.len() - 2..octets.len(), octets.to_vec());
    let packet = Base {
        kind: FrameKind::Infiniband,
        octets,
        fields: &INFINIBAND,
        check: Some(("VCRC", vcrc)),
    };
    let offer = FlowControlPacket {
        op: FlowControlOp::Normal,
        fctbs: 0,
        virtual_lane: VirtualLane::ZERO,
        fccl: 2_000,
    };
    let link = Base {
        kind: FrameKind::InfinibandLink,
        octets: offer.to_octets().to_vec(),
        fields: &FLOW_CONTROL,
        check: Some(("LPCRC", 4..6)),
    };
    vec![packet, link]
}

fn ethernet() -> Vec<Base> {
    let (source, destination) = (plan::ipv4(FROM), plan::ipv4(TO));
    let ip = Ipv4 { source, destination, ..Ipv4::default() };
    let builder = RoceBuilder {
        destination: plan::mac(TO),
        source: plan::mac(FROM),
        tag: None,
        network: NetworkHeaders::Ipv4(ip, &[], Udp::roce(0xc000)),
        bth: bth(),
        extended: ExtendedHeaders::NONE,
    };
    let mut octets = bytes::BytesMut::new();
    builder.emit(&mut octets, 256, |place| place.fill(0x5a)).expect("it fits a packet");
    let kind = FrameKind::Ethernet;
    let icrc = octets.len() - 4..octets.len();
    let packet = Base { kind, octets: octets.to_vec(), fields: &ROCE, check: Some(("ICRC", icrc)) };
    let control = |control: MacControl| Base {
        kind,
        octets: control.to_octets(plan::mac(FROM)).to_vec(),
        fields: &MAC_CONTROL,
        check: None,
    };
    let pfc = Pfc { reserved: 0, enabled: 1, times: [9; 8] };
    vec![packet, control(MacControl::Pause(Pause { time: 9 })), control(MacControl::Pfc(pfc))]
}

/// How often the receiver of a datagram counts: once, but for what follows a record in the same datagram.
pub fn counted(forged: &Forged, has_shim: bool) -> u64 {
    /// Source: `FRAME_MAX` in emulation/src/cable/inbox.rs.
    const LONGEST: usize = 16_384;
    let mut rest = &forged.octets[..];
    if !has_shim || forged.foreign || rest.is_empty() {
        return 1;
    }
    let mut count = 0;
    while !rest.is_empty() {
        count += 1;
        let Ok(shim) = Shim::parse(rest) else { break };
        let length = shim.length as usize;
        if length > LONGEST {
            break;
        }
        let Some((_, after)) = rest[Shim::LENGTH..].split_at_checked(length) else { break };
        rest = after;
    }
    count
}

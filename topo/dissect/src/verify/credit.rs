//! Rules of credit: what link packets say against the blocks seen on the line.
//!
//! ```text
//!        sent[Tx] ──▶ data ──▶            said by Tx: FCTBS = sent[Tx], FCCL limits sent[Rx]
//!   port                         peer
//!        sent[Rx] ◀── data ◀──            said by Rx: FCTBS = sent[Rx], FCCL limits sent[Tx]
//! ```
//!
//! Both directions of a port are needed, so nothing is judged where the file does not tell them. A
//! count is believed from the first link packet on. When one end trains anew its counters begin at
//! zero; those of the other end are then not judged until its next link packet.
//!
//! Necessary conditions only: at a port, what the peer says is a little old when it arrives, so its
//! limit can have been higher than seen here, never lower. Source: IBTA Vol 1, 7.9.4.

use super::{Family, Findings, Rule, Seen, Tally};
use crate::verify::ports::Ports;
use proto::events::Direction;
use proto::frame::FrameKind;
use proto::ids::VirtualLane;
use proto::link::credit::blocks;
use proto::units::Bytes;
use proto::wire::infiniband::{FlowControlOp, FlowControlPacket};
use std::collections::BTreeMap;

/// The rules of this file.
pub const RULES: &[Rule] = &[OP, LANE, START, FCTBS, WINDOW, BACK, OVERDRAWN];

const SOURCE: &str = "IBTA Vol 1, 7.9.4";
const OP: Rule =
    Rule { id: "fcp-op", title: "a link packet's operation is 0 or 1", source: SOURCE };
const LANE: Rule =
    Rule { id: "fcp-lane", title: "VL15 never appears in a link packet", source: SOURCE };
const START: Rule =
    Rule { id: "fctbs-start", title: "FCTBS is zero while the link initialises", source: SOURCE };
const FCTBS: Rule =
    Rule { id: "fctbs", title: "FCTBS is the blocks sent on the lane", source: SOURCE };
const WINDOW: Rule = Rule {
    id: "fccl-window",
    title: "FCCL is at most 2048 blocks beyond what was sent",
    source: SOURCE,
};
const BACK: Rule = Rule { id: "fccl-back", title: "FCCL never falls behind", source: SOURCE };
const OVERDRAWN: Rule = Rule {
    id: "credit",
    title: "a data packet stays within the last FCCL of the other direction",
    source: SOURCE,
};

const MODULUS: u16 = 4096;
/// Half the modulus: what is farther ahead than this is behind.
const WINDOW_MAX: u16 = 2048;

/// One direction of one lane of one port.
#[derive(Clone, Copy, Debug, Default)]
struct Half {
    /// Blocks seen sent this way, if it is known how many there were before.
    sent: Option<u16>,
    /// The last FCCL said this way: a limit of the other direction.
    limit: Option<u16>,
    /// The last link packet this way was of an initialising link.
    initializing: bool,
    /// Blocks of damaged packets at this place at the last link packet.
    unsure: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Port {
    /// By direction and lane.
    halves: [[Half; 15]; 2],
    /// By direction: blocks of packets whose lane or length cannot be believed.
    unsure: [u64; 2],
    /// A replay fed frames here: blocks that no peer has sent, and no peer counts.
    fed: bool,
}

/// The family.
#[derive(Default)]
pub struct Credits {
    ports: BTreeMap<u32, Port>,
}

const fn index(direction: Direction) -> usize {
    direction as usize
}

const fn ahead(of: u16, by: u16) -> u16 {
    (of + MODULUS - by) % MODULUS
}

impl Family for Credits {
    fn look(&mut self, seen: &Seen<'_>, findings: &mut Findings, tally: &mut Tally) {
        let link_packet = seen.kind == FrameKind::InfinibandLink;
        if seen.kind == FrameKind::Ethernet || (link_packet && !seen.is_sound()) {
            return;
        }
        let Some(direction) = seen.place.direction else {
            if link_packet {
                tally.not_checked("link packets without a direction", 1);
            }
            return;
        };
        let port = self.ports.entry(seen.place.port).or_default();
        if !link_packet {
            return port.data(direction, seen, findings, tally);
        }
        let Ok(packet) = FlowControlPacket::parse_intact(seen.octets) else { return };
        tally.checked("link packets", 1);
        port.fed |= Ports::is_fed(seen.interface);
        let lane = packet.virtual_lane;
        if lane == VirtualLane::MANAGEMENT {
            return findings.report(&LANE, seen, || "VL 15".to_owned(), || "0 to 14".to_owned());
        }
        match packet.op {
            FlowControlOp::Unknown(op) => {
                findings.report(&OP, seen, || format!("Op {op}"), || "0 or 1".to_owned());
            }
            FlowControlOp::Init | FlowControlOp::Normal => {
                port.link_packet(direction, &packet, seen, findings, tally);
            }
        }
    }

    fn finish(&mut self, tally: &mut Tally) {
        let lanes = self.ports.values().flat_map(|port| &port.halves).flatten();
        let followed = lanes.filter(|half| half.sent.is_some()).count() as u64;
        tally.checked("lanes, each way", followed);
    }
}

impl Port {
    /// A data packet takes blocks of its lane.
    fn data(
        &mut self,
        direction: Direction,
        seen: &Seen<'_>,
        findings: &mut Findings,
        tally: &mut Tally,
    ) {
        let n = blocks(Bytes::new(seen.wire_size as u64));
        let lrh = seen.anatomy.and_then(|anatomy| anatomy.lrh);
        let Some(lrh) = lrh.filter(|_| seen.is_sound_on_link()) else {
            self.unsure[index(direction)] += u64::from(n);
            return;
        };
        let lane = lrh.virtual_lane;
        if lane == VirtualLane::MANAGEMENT {
            return;
        }
        let limit = self.halves[1 - index(direction)][lane.index()].limit;
        let half = &mut self.halves[index(direction)][lane.index()];
        let Some(sent) = &mut half.sent else { return };
        *sent = ((u32::from(*sent) + n) % u32::from(MODULUS)) as u16;
        let sent = *sent;
        if self.fed && direction == Direction::Rx {
            return;
        }
        let Some(limit) = limit else { return };
        tally.checked("packets against credit", 1);
        if ahead(limit, sent) > WINDOW_MAX {
            let found = || format!("VL {lane}: {n} blocks to {sent}");
            findings.report(&OVERDRAWN, seen, found, || format!("at most FCCL {limit}"));
        }
    }

    /// A link packet says what was sent this way, and limits the other.
    fn link_packet(
        &mut self,
        direction: Direction,
        packet: &FlowControlPacket,
        seen: &Seen<'_>,
        findings: &mut Findings,
        tally: &mut Tally,
    ) {
        let (way, lane) = (index(direction), packet.virtual_lane.index());
        let unsure = self.unsure[way];
        let initializing = packet.op == FlowControlOp::Init;
        let [mut half, mut other] = [self.halves[way][lane], self.halves[1 - way][lane]];
        if initializing {
            if !half.initializing {
                half = Half::default();
                if !other.initializing {
                    (other.sent, other.limit) = (None, None);
                }
            }
            if packet.fctbs != 0 {
                let found = || format!("VL {lane}: FCTBS {}", packet.fctbs);
                findings.report(&START, seen, found, || "0".to_owned());
            }
        }
        // Blocks fed to a port were sent by nobody: its peer cannot count them, and what the port
        // offers the peer is off by them for a while (`launch::replay`).
        if !(self.fed && direction == Direction::Rx) {
            judge_count(&half, unsure, packet, seen, findings, tally);
        }
        if self.fed && direction == Direction::Tx {
            tally.not_checked("FCCL told by a port that a replay fed", 1);
        } else {
            judge_limit(half.limit, other.sent, packet, seen, findings, tally);
        }
        let (sent, limit) = (Some(packet.fctbs), Some(packet.fccl));
        self.halves[way][lane] = Half { sent, limit, initializing, unsure };
        self.halves[1 - way][lane] = other;
    }
}

/// FCTBS against the blocks seen.
fn judge_count(
    half: &Half,
    unsure: u64,
    packet: &FlowControlPacket,
    seen: &Seen<'_>,
    findings: &mut Findings,
    tally: &mut Tally,
) {
    let Some(sent) = half.sent else { return };
    tally.checked("fctbs", 1);
    let missing = ahead(packet.fctbs, sent);
    // Damaged packets may have been of this lane.
    if u64::from(missing) <= unsure - half.unsure {
        return;
    }
    let found = || {
        let off = i32::from(missing) - if missing > WINDOW_MAX { i32::from(MODULUS) } else { 0 };
        format!("VL {}: FCTBS {}, {off:+} blocks", packet.virtual_lane, packet.fctbs)
    };
    findings.report(&FCTBS, seen, found, || sent.to_string());
}

/// FCCL against the one before it and against what the other direction has sent.
fn judge_limit(
    before: Option<u16>,
    sent: Option<u16>,
    packet: &FlowControlPacket,
    seen: &Seen<'_>,
    findings: &mut Findings,
    tally: &mut Tally,
) {
    tally.checked("fccl", 1);
    let (lane, limit) = (packet.virtual_lane, packet.fccl);
    if let Some(before) = before.filter(|before| ahead(limit, *before) > WINDOW_MAX) {
        let found = || format!("VL {lane}: FCCL {limit}");
        findings.report(&BACK, seen, found, || format!("{before} or later"));
    } else if let Some(sent) = sent.filter(|sent| ahead(limit, *sent) > WINDOW_MAX) {
        let found = || format!("VL {lane}: FCCL {limit}, {} beyond {sent}", ahead(limit, sent));
        findings.report(&WINDOW, seen, found, || format!("at most {WINDOW_MAX} beyond"));
    }
}

//! Rules of credit: link packets against the blocks seen on the line.
//!
//! ```text
//!        sent[Tx] ──▶ data ──▶            sent by Tx: FCTBS = sent[Tx], FCCL limits sent[Rx]
//!   port                         peer
//!        sent[Rx] ◀── data ◀──            sent by Rx: FCTBS = sent[Rx], FCCL limits sent[Tx]
//! ```
//!
//! Both directions of a port are needed, so nothing is judged if the file does not state them. A count is used from
//! the first link packet on. If one end trains again, its counters restart at zero; those of the other end are then not
//! judged until its next link packet.
//!
//! The rules are necessary conditions only: an FCCL of the peer is a little old when it arrives, so the limit in force
//! can be higher than the one seen here, never lower. Source: IBTA Vol 1, 7.9.4.

use super::ports::Ports;
use super::rule::rules;
use super::{Check, Family, Report};
use proto::events::Direction;
use proto::frame::FrameKind;
use proto::ids::VirtualLane;
use proto::link::credit::blocks;
use proto::units::Bytes;
use proto::wire::infiniband::{FlowControlOp, FlowControlPacket};
use std::collections::BTreeMap;

rules! {
    OP "fcp-op" "a link packet's operation is 0 or 1", "IBTA Vol 1, 7.9.4";
    LANE "fcp-lane" "VL15 never appears in a link packet", "IBTA Vol 1, 7.9.4";
    START "fctbs-start" "FCTBS is zero while the link initialises", "IBTA Vol 1, 7.9.4";
    FCTBS "fctbs" "FCTBS is the blocks sent on the lane", "IBTA Vol 1, 7.9.4";
    WINDOW "fccl-window" "FCCL is at most 2048 blocks beyond what was sent", "IBTA Vol 1, 7.9.4";
    BACK "fccl-back" "FCCL never falls behind", "IBTA Vol 1, 7.9.4";
    OVERDRAWN "credit" "a data packet stays within the last FCCL of the other direction", "IBTA Vol 1, 7.9.4";
}

/// Counters of blocks wrap at this value.
const MODULUS: u16 = 4096;
/// Half the modulus: a count farther ahead than this is behind.
const WINDOW_MAX: u16 = 2048;

/// One direction of one lane of one port.
#[derive(Clone, Copy, Debug, Default)]
struct Half {
    /// Blocks sent this way, modulo [`MODULUS`]; `None` before the first link packet.
    sent: Option<u16>,
    /// The last FCCL sent this way: the limit of the other direction.
    limit: Option<u16>,
    /// The last link packet this way was one of an initialising link.
    initializing: bool,
    /// Blocks of damaged packets at this place at the last link packet.
    unsure: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Port {
    /// By direction and lane.
    halves: [[Half; 15]; 2],
    /// By direction: blocks of damaged packets, whose lane or length is unknown.
    unsure: [u64; 2],
    /// A replay fed frames here: blocks that the peer neither sent nor counts.
    fed: bool,
}

/// The family.
#[derive(Default)]
pub struct Credits {
    ports: BTreeMap<u32, Port>,
}

const fn ahead(of: u16, by: u16) -> u16 {
    (of + MODULUS - by) % MODULUS
}

impl Family for Credits {
    fn check(&mut self, check: &mut Check<'_>) {
        let seen = check.seen;
        let link_packet = seen.kind == FrameKind::InfinibandLink;
        if seen.kind == FrameKind::Ethernet || (link_packet && !seen.is_sound()) {
            return;
        }
        let Some(direction) = seen.place.direction else {
            if link_packet {
                check.not_checked("link packets without a direction");
            }
            return;
        };
        let port = self.ports.entry(seen.place.port).or_default();
        if !link_packet {
            return port.data(direction, check);
        }
        let Ok(packet) = FlowControlPacket::parse_intact(seen.octets) else { return };
        check.checked("link packets");
        port.fed |= Ports::is_fed(seen.interface);
        match packet.op {
            _ if packet.virtual_lane == VirtualLane::MANAGEMENT => {
                check.breaks(&LANE, "VL 15", "0 to 14");
            }
            FlowControlOp::Unknown(op) => check.breaks(&OP, format_args!("Op {op}"), "0 or 1"),
            FlowControlOp::Init | FlowControlOp::Normal => {
                port.link_packet(direction, &packet, check);
            }
        }
    }

    fn finish(&mut self, report: &mut Report, _kept: u64) {
        let lanes = self.ports.values().flat_map(|port| &port.halves).flatten();
        let followed = lanes.filter(|half| half.sent.is_some()).count() as u64;
        report.tally.checked("lanes, each way", followed);
    }
}

impl Port {
    /// A data packet uses blocks of its lane.
    fn data(&mut self, direction: Direction, check: &mut Check<'_>) {
        let seen = check.seen;
        let n = blocks(Bytes::new(seen.wire_size as u64));
        let lrh = seen.headers.and_then(|headers| headers.lrh);
        let Some(lrh) = lrh.filter(|_| seen.is_sound_on_link()) else {
            self.unsure[direction as usize] += u64::from(n);
            return;
        };
        let lane = lrh.virtual_lane;
        if lane == VirtualLane::MANAGEMENT {
            return;
        }
        let limit = self.halves[1 - direction as usize][lane.index()].limit;
        let half = &mut self.halves[direction as usize][lane.index()];
        let Some(sent) = &mut half.sent else { return };
        *sent = ((u32::from(*sent) + n) % u32::from(MODULUS)) as u16;
        let sent = *sent;
        let Some(limit) = limit.filter(|_| !(self.fed && direction == Direction::Rx)) else {
            return;
        };
        check.checked("packets against credit");
        if ahead(limit, sent) > WINDOW_MAX {
            let found = format_args!("VL {lane}: {n} blocks to {sent}");
            check.breaks(&OVERDRAWN, found, format_args!("at most FCCL {limit}"));
        }
    }

    /// A link packet states what was sent this way, and limits the other way.
    fn link_packet(
        &mut self,
        direction: Direction,
        packet: &FlowControlPacket,
        check: &mut Check<'_>,
    ) {
        let (way, lane) = (direction as usize, packet.virtual_lane.index());
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
                check.breaks(&START, format_args!("VL {lane}: FCTBS {}", packet.fctbs), "0");
            }
        }
        // The peer did not send the blocks that a replay fed to the port and does not count them, so the credit that
        // the port offers is wrong by them for a while.
        if !(self.fed && direction == Direction::Rx) {
            judge_count(&half, unsure, packet, check);
        }
        if self.fed && direction == Direction::Tx {
            check.not_checked("FCCL sent by a port that a replay fed");
        } else {
            judge_limit(half.limit, other.sent, packet, check);
        }
        let (sent, limit) = (Some(packet.fctbs), Some(packet.fccl));
        self.halves[way][lane] = Half { sent, limit, initializing, unsure };
        self.halves[1 - way][lane] = other;
    }
}

/// Checks FCTBS against the blocks seen.
fn judge_count(half: &Half, unsure: u64, packet: &FlowControlPacket, check: &mut Check<'_>) {
    let Some(sent) = half.sent else { return };
    check.checked("fctbs");
    let missing = ahead(packet.fctbs, sent);
    // Damaged packets may have been of this lane.
    if u64::from(missing) > unsure - half.unsure {
        let off = i32::from(missing) - if missing > WINDOW_MAX { i32::from(MODULUS) } else { 0 };
        let (lane, fctbs) = (packet.virtual_lane, packet.fctbs);
        check.breaks(&FCTBS, format_args!("VL {lane}: FCTBS {fctbs}, {off:+} blocks"), sent);
    }
}

/// Checks FCCL against the one before it and against what the other direction has sent.
fn judge_limit(
    before: Option<u16>,
    sent: Option<u16>,
    packet: &FlowControlPacket,
    check: &mut Check<'_>,
) {
    check.checked("fccl");
    let (lane, limit) = (packet.virtual_lane, packet.fccl);
    if let Some(before) = before.filter(|before| ahead(limit, *before) > WINDOW_MAX) {
        let found = format_args!("VL {lane}: FCCL {limit}");
        check.breaks(&BACK, found, format_args!("{before} or later"));
    } else if let Some(sent) = sent.filter(|sent| ahead(limit, *sent) > WINDOW_MAX) {
        let found = format_args!("VL {lane}: FCCL {limit}, {} beyond {sent}", ahead(limit, sent));
        check.breaks(&WINDOW, found, format_args!("at most {WINDOW_MAX} beyond"));
    }
}

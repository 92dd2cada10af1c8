//! The credits of a played neighbour of InfiniBand: it trains its link with flow-control packets and
//! repeats its offer of buffer on every lane; a script may change the offer, or stop the packets.

use proto::frame::FrameKind;
use proto::ids::VirtualLane;
use proto::link::credit::blocks;
use proto::units::{Bytes, Duration, Instant};
use proto::wire::infiniband::{FlowControlOp, FlowControlPacket};

/// Credit counters are twelve bits wide. Source: IBTA Vol 1, 7.9.4.
const MODULUS: u16 = 4096;

/// As much as can be offered. Units: blocks. Source: IBTA Vol 1, 7.9.4.
pub const OFFER_MAX: u16 = 2048;

/// Which flow-control packets a neighbour sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FcMode {
    /// Op 1 until a flow-control packet of every lane has come from the device, then op 0.
    Training,
    /// Op 1, whatever comes from the device.
    Initialize,
    /// Op 0.
    Normal,
    /// Nothing.
    Off,
}

/// A neighbour's account of one lane.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lane {
    /// Blocks it offers beyond what it has received.
    pub offer: u16,
    /// It sends flow-control packets for this lane.
    pub sends: bool,
    /// Blocks it has sent, modulo 4096.
    pub sent: u16,
    /// Blocks it has received, modulo 4096.
    pub received: u16,
    /// The last limit (FCCL) from the device; none before its first flow-control packet.
    pub limit: Option<u16>,
    /// The highest limit (FCCL) that it has sent to the device.
    offered: u16,
    /// Packets that the device sent beyond that limit.
    pub overruns: u32,
}

/// A neighbour's credits, both ways.
#[derive(Clone, Debug)]
pub struct Credits {
    /// By data lane.
    pub lanes: Vec<Lane>,
    /// Which flow-control packets it sends.
    pub mode: FcMode,
    /// How often it sends them.
    pub refresh: Duration,
    /// When the next ones are due.
    pub due: Instant,
    /// Of its flow-control packets one in so many is lost on the way; 0 is none.
    pub loses: u32,
    packets: u32,
}

impl Credits {
    /// Credits of a neighbour that has sent and received nothing and offers as much as can be offered.
    pub fn new(lanes: u8, refresh: Duration) -> Credits {
        let lane = Lane { offer: OFFER_MAX, sends: true, ..Lane::default() };
        Credits {
            lanes: vec![lane; usize::from(lanes)],
            mode: FcMode::Training,
            refresh,
            due: Instant::ZERO,
            loses: 0,
            packets: 0,
        }
    }

    /// Its flow-control packet of `lane` now.
    pub fn packet(&self, lane: u8) -> FlowControlPacket {
        let account = self.lanes[usize::from(lane)];
        let trained = self.lanes.iter().all(|lane| lane.limit.is_some());
        let op = match self.mode {
            FcMode::Initialize => FlowControlOp::Init,
            FcMode::Training if !trained => FlowControlOp::Init,
            _ => FlowControlOp::Normal,
        };
        FlowControlPacket {
            op,
            fctbs: account.sent,
            virtual_lane: VirtualLane::truncate(lane),
            fccl: (account.received + account.offer) % MODULUS,
        }
    }

    /// Accounts for `packet` as sent; false if it is one of those that are lost.
    pub fn announce(&mut self, packet: &FlowControlPacket) -> bool {
        self.packets += 1;
        if self.loses > 0 && self.packets.is_multiple_of(self.loses) {
            return false;
        }
        if let Some(lane) = self.lanes.get_mut(packet.virtual_lane.index())
            && (packet.fccl + MODULUS - lane.offered) % MODULUS <= OFFER_MAX
        {
            lane.offered = packet.fccl;
        }
        true
    }

    /// The flow-control packets due at `now`, without those that are lost.
    pub fn words(&mut self, now: Instant) -> Vec<FlowControlPacket> {
        if self.mode == FcMode::Off || self.due > now {
            return Vec::new();
        }
        self.due = now + self.refresh;
        let mut words = Vec::new();
        for lane in 0..self.lanes.len() as u8 {
            let packet = self.packet(lane);
            let arrives = self.lanes[usize::from(lane)].sends && self.announce(&packet);
            words.extend(arrives.then_some(packet));
        }
        words
    }

    /// It sends a packet: its blocks count as sent, whatever becomes of it.
    pub fn on_send(&mut self, octets: &[u8]) {
        if let Some(lane) = self.lane_of(octets) {
            lane.sent = (lane.sent + cost(octets)) % MODULUS;
        }
    }

    /// Whether the last limit from the device admits this packet.
    pub fn may_send(&self, octets: &[u8]) -> bool {
        let lane = octets.first().and_then(|octet| self.lanes.get(usize::from(octet >> 4)));
        let Some(Lane { sent, limit: Some(limit), .. }) = lane else { return false };
        (limit + 2 * MODULUS - sent - cost(octets)) % MODULUS <= OFFER_MAX
    }

    /// Takes a frame from the device; true if with it a first limit is known of every lane.
    pub fn receive(&mut self, kind: FrameKind, octets: &[u8]) -> bool {
        if kind != FrameKind::InfinibandLink {
            if let Some(lane) = self.lane_of(octets) {
                lane.received = (lane.received + cost(octets)) % MODULUS;
                let left = (lane.offered + MODULUS - lane.received) % MODULUS;
                lane.overruns += u32::from(left > OFFER_MAX);
            }
            return false;
        }
        let Ok(packet) = FlowControlPacket::parse(octets) else { return false };
        let Some(lane) = self.lanes.get_mut(packet.virtual_lane.index()) else { return false };
        if packet.op == FlowControlOp::Init {
            // The device begins anew, and so does what it may send.
            lane.offered = packet.fctbs;
        }
        lane.received = packet.fctbs;
        let is_first = lane.limit.replace(packet.fccl).is_none();
        is_first && self.lanes.iter().all(|lane| lane.limit.is_some())
    }

    fn lane_of(&mut self, octets: &[u8]) -> Option<&mut Lane> {
        self.lanes.get_mut(usize::from(octets.first()? >> 4))
    }
}

/// Credit blocks a packet takes.
pub fn cost(octets: &[u8]) -> u16 {
    blocks(Bytes::new(octets.len() as u64)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn neighbour() -> Credits {
        Credits::new(2, Duration::from_us(1))
    }

    fn word(op: FlowControlOp, lane: u8, fctbs: u16, fccl: u16) -> [u8; FlowControlPacket::LEN] {
        let virtual_lane = VirtualLane::truncate(lane);
        FlowControlPacket { op, fctbs, virtual_lane, fccl }.to_octets()
    }

    /// A packet of so many blocks on VL0, as far as a neighbour looks at it.
    fn packet(blocks: usize) -> Vec<u8> {
        vec![0; blocks * 64 - 2]
    }

    #[test]
    fn it_trains_until_it_has_heard_every_lane() {
        let mut neighbour = neighbour();
        let receive = |neighbour: &mut Credits, lane| {
            neighbour.receive(FrameKind::InfinibandLink, &word(FlowControlOp::Init, lane, 0, 100))
        };
        assert!(!receive(&mut neighbour, 0));
        assert_eq!(neighbour.packet(0).op, FlowControlOp::Init);
        assert!(receive(&mut neighbour, 1) && !receive(&mut neighbour, 1));
        assert_eq!(neighbour.packet(0).op, FlowControlOp::Normal);
    }

    #[test]
    fn it_keeps_to_the_credit_it_has_across_the_modulus() {
        let mut neighbour = neighbour();
        assert!(!neighbour.may_send(&packet(1)), "nothing was offered yet");
        neighbour.lanes[0].sent = 4_090;
        neighbour.receive(FrameKind::InfinibandLink, &word(FlowControlOp::Normal, 0, 0, 4));
        assert!(neighbour.may_send(&packet(10)) && !neighbour.may_send(&packet(11)));
        neighbour.on_send(&packet(10));
        assert_eq!(neighbour.lanes[0].sent, 4);
        assert!(!neighbour.may_send(&packet(1)));
    }

    #[test]
    fn what_exceeds_its_own_offer_is_an_overrun() {
        let mut neighbour = neighbour();
        neighbour.lanes[0].offer = 10;
        let sent = neighbour.packet(0);
        assert!(neighbour.announce(&sent));
        neighbour.receive(FrameKind::Infiniband, &packet(10));
        assert_eq!(neighbour.lanes[0].overruns, 0);
        neighbour.receive(FrameKind::Infiniband, &packet(1));
        assert_eq!(neighbour.lanes[0].overruns, 1);
    }

    #[test]
    fn every_third_word_is_lost_if_one_in_three_is() {
        let mut neighbour = neighbour();
        neighbour.loses = 3;
        let packet = neighbour.packet(0);
        let arrived: Vec<bool> = (0..6).map(|_| neighbour.announce(&packet)).collect();
        assert_eq!(arrived, [true, true, false, true, true, false]);
    }
}

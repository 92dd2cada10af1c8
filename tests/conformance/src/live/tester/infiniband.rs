//! The words of scripts about InfiniBand: credits, and who offers them.

use super::Tester;
use crate::live::neighbour::{Credits, Voice};
use proto::frame::FrameKind;
use proto::wire::infiniband::FlowControlPacket;

impl Tester {
    /// The credits of the neighbour at `port`, to change what it says.
    pub fn credits(&mut self, port: u8) -> &mut Credits {
        self.neighbour(port).credits()
    }

    /// The neighbour at `port` says about `lane` what there is to say, out of turn.
    pub fn say(&mut self, port: u8, lane: u8) {
        let packet = self.credits(port).packet(lane);
        if self.credits(port).tell(&packet) {
            self.say_packet(port, &packet);
        }
    }

    /// The neighbour at `port` sends this flow-control packet.
    pub fn say_packet(&mut self, port: u8, packet: &FlowControlPacket) {
        self.put(port, FrameKind::InfinibandLink, &packet.to_octets(), self.label());
    }

    /// The neighbour at `port` offers `blocks` on `lane` beyond what it has received, and says so.
    pub fn offer(&mut self, port: u8, lane: u8, blocks: u16) {
        self.credits(port).lanes[usize::from(lane)].offer = blocks;
        self.say(port, lane);
    }

    /// The neighbour at `port` speaks so from now on, at once.
    pub fn speak(&mut self, port: u8, voice: Voice) {
        let now = self.now;
        let credits = self.credits(port);
        credits.voice = voice;
        credits.due = now;
    }
}

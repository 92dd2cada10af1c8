//! Packets of the multicast groups that the port has joined: checked, counted, and never answered.
//!
//! The number of the sending queue pair tells class and sender, as in the plan. The sender itself gets no copy, since
//! switches send none back. Source: IBTA Vol 1, 10.5.2 (unreliable multicast), 9.8.3 (unreliable datagrams).

use crate::counters::Total;
use crate::transport::adapter::ChannelAdapter;
use crate::transport::message::Stamp;
use crate::transport::receive::{Disposition, Outcome, ReceivedFrame};
use crate::wire::packet::FrameContent;
use proto::counters::{DropReason, FlowId, ReceptionReading};
use proto::wire::infiniband::opcode::{Operation, Transport};

impl ChannelAdapter {
    /// Takes a multicast packet whose P_Key matches. One of a group that the port has not joined is for others.
    pub(super) fn on_multicast(&mut self, received: &ReceivedFrame<'_>) -> Outcome {
        let ReceivedFrame { frame, headers, arrived } = *received;
        let (group, membership) = self.wire.joined(&frame.octets).ok_or(DropReason::NotForUs)?;
        let FrameContent::Packet(packet) = self.wire.parse_frame(frame)? else {
            return Err(DropReason::Opcode);
        };
        let packet = packet.transport;
        let row = packet.bth.opcode.row().ok_or(DropReason::Opcode)?;
        let deth = packet.extended.deth.ok_or(DropReason::Opcode)?;
        if row.transport != Transport::Ud || row.operation != Operation::Send {
            return Err(DropReason::Opcode);
        }
        if deth.queue_key != membership.queue_key {
            return Err(DropReason::Key);
        }
        let (class, peer) = deth.source.plan().ok_or(DropReason::QueuePair)?;
        if !self.connections.admits(class, peer) {
            return Err(DropReason::QueuePair);
        }
        let (source, destination) = (peer.get().into(), group.get().into());
        let flow = FlowId { source, destination, class };
        let new = || ReceptionReading { flow, ..ReceptionReading::default() };
        let reading = self.multicast.entry(flow).or_insert_with(new);
        reading.delivered_bytes += headers.payload.get();
        reading.marked += u64::from(headers.fecn);
        reading.messages += 1;
        reading.last = Some(arrived);
        self.totals.count(Total::MulticastReceived);
        self.count_latency(Stamp::parse(packet.payload), arrived);
        Ok(Disposition::Delivered)
    }
}

//! One end of a socket cable: link flow control and shims of a NIC, without the NIC's model.

use bytes::BytesMut;
use emulation::cable::datagram::{BATCH, DatagramSocket, Peer};
use emulation::cable::shim::{SendingEnd, Shim};
use proto::frame::FrameKind;
use proto::link::credit::CreditFlow;
use proto::units::Instant;
use proto::wire::infiniband::FlowControlPacket;

/// One end of a cable with its own socket.
pub struct CableEnd {
    socket: DatagramSocket,
    worker: Peer,
    link: u32,
    end: SendingEnd,
    epoch: u32,
    sequence: u32,
    /// Flow control in both directions, on one lane.
    pub flow: CreditFlow,
    /// Datagrams to be sent; the first `filled` are in use.
    datagrams: Vec<BytesMut>,
    filled: usize,
}

impl CableEnd {
    /// The end `end` of link `link` in the run `epoch`, whose other end is at `worker`.
    pub fn new(
        socket: DatagramSocket,
        worker: Peer,
        (link, end): (u32, SendingEnd),
        epoch: u32,
        flow: CreditFlow,
    ) -> CableEnd {
        let datagrams = vec![BytesMut::new(); BATCH];
        CableEnd { socket, worker, link, end, epoch, sequence: 0, flow, datagrams, filled: 0 }
    }

    /// The socket, for polling.
    pub fn socket(&self) -> &DatagramSocket {
        &self.socket
    }

    /// Number of datagrams that may still be begun before [`CableEnd::flush`].
    pub fn room(&self) -> usize {
        BATCH - self.filled
    }

    /// Begins a new datagram.
    pub fn begin(&mut self) {
        self.datagrams[self.filled].clear();
        self.filled += 1;
    }

    /// Adds a frame to the datagram that was begun last.
    pub fn put(&mut self, kind: FrameKind, octets: &[u8], stamp: Instant) {
        let shim = Shim {
            kind,
            flags: 0,
            end: self.end,
            link: self.link,
            epoch: self.epoch,
            sequence: self.sequence,
            length: octets.len() as u32,
            stamp,
        };
        self.sequence = self.sequence.wrapping_add(1);
        let datagram = &mut self.datagrams[self.filled - 1];
        datagram.extend_from_slice(&shim.emit());
        datagram.extend_from_slice(octets);
    }

    /// Adds the flow-control packets that are due.
    pub fn put_flow_control(&mut self, now: Instant) {
        self.flow.handle_timeout(now);
        while let Some(packet) = self.flow.poll_control(now) {
            self.begin();
            self.put(FrameKind::InfinibandLink, &packet.to_octets(), now);
        }
    }

    /// Sends every datagram begun since the last call.
    pub fn flush(&mut self) {
        let mut sent = 0;
        while sent < self.filled {
            let rest = self.datagrams[sent..self.filled].iter();
            // Retry on a full socket.
            sent += self.socket.send(rest.map(|octets| (&self.worker, &octets[..]))).unwrap_or(0);
        }
        self.filled = 0;
    }

    /// Receives frames and returns the number of data frames. Credits are applied, and buffer is
    /// freed at once.
    pub fn receive(&mut self, now: Instant) -> u64 {
        let CableEnd { socket, flow, .. } = self;
        let mut frames = 0;
        socket.receive(|datagram| {
            let mut rest = datagram.octets;
            while let Ok(shim) = Shim::parse(rest) {
                let (octets, next) = rest[Shim::LENGTH..].split_at(shim.length as usize);
                rest = next;
                if shim.kind == FrameKind::InfinibandLink {
                    let packet =
                        FlowControlPacket::parse(octets).expect("the switch sends valid packets");
                    flow.on_control(&packet, now);
                } else {
                    let headers = proto::wire::classify::classify(shim.kind, octets);
                    let lane = headers.expect("the switch sends valid packets").lane;
                    let size = proto::units::Bytes::new(octets.len() as u64);
                    assert!(flow.admit(lane, size, now), "the switch keeps to its credits");
                    flow.release(lane, size, now);
                    frames += 1;
                }
            }
        });
        frames
    }
}

//! The cables of the virtual clock: the shim of each frame is written, and read back by the inbox of a
//! daemon, so that copies, latecomers and aborted frames meet the same code as in live runs.

use super::cable::Cable;
use emulation::cable::datagram::{Peer, Received};
use emulation::cable::inbox::{Inbox, LineCounts};
use emulation::cable::lines::Lines;
use emulation::cable::udp;
use proto::frame::{Frame, FrameKind, FramePool};
use proto::units::Instant;
use std::cell::RefCell;
use std::rc::Rc;
use testbed::Label;

/// The run's mark in every shim.
const EPOCH: u32 = 1;

/// All cables of one device on the virtual clock.
struct All {
    /// By port.
    cables: Vec<Cable>,
    /// The device's ends of the cables.
    lines: Lines,
    /// The neighbours' address.
    far: Peer,
    inbox: Inbox,
}

/// A handle on them: one is the bench's, one stays with the stage.
#[derive(Clone)]
pub struct Wires(Rc<RefCell<All>>);

impl Wires {
    /// Cables by port, and the device's ends of them.
    ///
    /// # Errors
    /// Never: the addresses are good ones.
    pub fn new(cables: Vec<Cable>, lines: Lines) -> Result<Wires, String> {
        // No socket is opened under these addresses: the device's and its neighbours'.
        let [own, far] = ["127.0.0.1:1", "127.0.0.1:2"].map(udp::peer);
        let (own, far) = (own.map_err(|e| e.to_string())?, far.map_err(|e| e.to_string())?);
        let inbox = Inbox::new(EPOCH, &[own, far.clone()], lines.count());
        Ok(Wires(Rc::new(RefCell::new(All { cables, lines, far, inbox }))))
    }

    /// What the device's end of each cable has counted, by port.
    pub fn counts(&self) -> Vec<LineCounts> {
        let all = self.0.borrow();
        let received: Vec<_> = all.inbox.received(&all.lines).collect();
        let of = |cable: &Cable| received.iter().find(|line| line.link == cable.link);
        let counts = |cable| of(cable).map(|line| line.counts).unwrap_or_default();
        all.cables.iter().map(counts).collect()
    }
}

impl testbed::Cable for Wires {
    fn carry(
        &mut self,
        port: u8,
        kind: FrameKind,
        octets: &[u8],
        label: Label,
        leaves: Instant,
    ) -> Vec<(Instant, Frame)> {
        let All { cables, lines, far, inbox } = &mut *self.0.borrow_mut();
        let shim = cables[usize::from(port) - 1].shim(kind, octets, label, leaves, EPOCH);
        let record = [&shim.emit()[..], octets].concat();
        let mut arrived = Vec::new();
        let datagram = Received { source: far.key(), octets: &record, cut: false };
        inbox.accept(datagram, lines, &mut FramePool::default(), |accepted| {
            arrived.push((accepted.arrived, accepted.frame));
        });
        arrived
    }

    fn sequence(&self, port: u8) -> u32 {
        self.0.borrow().cables[usize::from(port) - 1].sequence
    }

    fn hold_back(&mut self, port: u8, kind: FrameKind, octets: &[u8]) -> u32 {
        self.0.borrow_mut().cables[usize::from(port) - 1].next_number(kind, octets)
    }
}

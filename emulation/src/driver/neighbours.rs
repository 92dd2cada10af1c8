//! A neighbour process that ends, and the one that takes its place.
//!
//! Frames of a process that has ended are lost with it. Its neighbours have what is needed to account for them: what they
//! have sent to it and what they have received from it ([`Ended`](crate::cable::exchange::Ended)).

use super::{Assignment, Worker};
use crate::cable::FrameTally;
use crate::cable::datagram::Peer;
use crate::cable::lines::Destination;
use proto::device::Step;
use proto::ids::{Lid, PortNumber};
use std::collections::BTreeMap;

impl Worker {
    /// The process with this number has ended: what is still on cables from it is lost, and links to it are down.
    pub(super) fn part_from(&mut self, process: usize) {
        // What it has sent counts as received.
        self.receive();
        let Worker { run: Assignment { exchange, lines, .. }, arrivals, .. } = self;
        let mut waiting: BTreeMap<usize, FrameTally> = BTreeMap::new();
        let from = |device, port: PortNumber| {
            lines.outgoing(device, port).filter(|line| line.to == Destination::Process(process))
        };
        arrivals.remove(
            |flight| from(flight.device, flight.port).is_some(),
            |flight| {
                if let Some(line) = from(flight.device, flight.port) {
                    waiting.entry(line.opposite()).or_default().count(&flight.frame);
                }
                exchange.recycle(flight.frame);
            },
        );
        exchange.part_from(process, lines, &waiting);
        self.set_links(process, false);
    }

    /// Another process, with these adapters, has taken the place of one that has ended.
    pub(super) fn meet(&mut self, process: usize, peer: Option<Peer>, adapters: &[Lid]) {
        self.run.exchange.meet(process, peer);
        self.set_links(process, true);
        let now = self.present();
        for device in 0..self.run.devices.len() {
            for adapter in adapters {
                self.run.devices[device].reset_peer(*adapter, now);
            }
            self.collect_outputs(device, Step::at(now));
        }
    }

    fn set_links(&mut self, process: usize, is_up: bool) {
        let now = self.present();
        for device in 0..self.run.devices.len() {
            let ports = (0..self.run.devices[device].ports()).map(PortNumber::from_index);
            let is_there = |port: &PortNumber| {
                let line = self.run.lines.outgoing(device, *port);
                line.is_some_and(|line| line.to == Destination::Process(process))
            };
            let ports: Vec<PortNumber> = ports.filter(is_there).collect();
            for port in ports {
                self.run.devices[device].set_link(port, is_up, now);
                self.laws[device][port.index()].reset(now);
                self.collect_outputs(device, Step::at(now));
            }
        }
        self.peers_changed += 1;
    }
}

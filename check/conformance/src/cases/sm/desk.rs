//! A managed device on the virtual clock, asked one datagram after another: for sweeps over all values.

use super::dialogue::{Ask, Heard, Node, heard};
use super::text;
use crate::prelude::*;
use management::Datagram;
use management::attribute::subnet::{linear_forwarding, port_info, switch_info};
use management::datagram::TRANSACTION;

/// The time of a datagram, and of its answer, at 8 Gb/s.
const EXCHANGE: Duration = us(1);
/// By then every peer has been seen.
const TRAINED: Duration = us(60);

/// The device.
pub struct Desk {
    /// Among its neighbours.
    pub bench: Bench,
    /// Which one.
    pub node: Node,
    transactions: u64,
}

impl Desk {
    /// The device, its links in Initialize.
    ///
    /// # Errors
    /// If it refuses its configuration.
    pub fn new(node: Node) -> Result<Desk> {
        let text = text(&Star { nics: 4, link: "vls = 4", ..Star::FAST });
        let mut bench = Stage::new(Level::Engine, &text, node.name())?.bench()?;
        bench.run_for(TRAINED);
        Ok(Desk { bench, node, transactions: 0x1000 })
    }

    /// The device with its LID, routes to the LIDs of its ports, and Active links.
    ///
    /// # Errors
    /// If it refuses one of them.
    pub fn active(node: Node) -> Result<Desk> {
        let mut desk = Desk::new(node)?;
        desk.granted(&Ask::port_info(node, node.home(), &[]))?;
        for port in 1..=if node == Node::Switch { 4 } else { 1 } {
            for state in [3, 4] {
                let values = [(port_info::PORT_STATE, 0, state)];
                desk.granted(&Ask::port_info(node, port, &values))?;
            }
        }
        if node == Node::Switch {
            let top = [(switch_info::LINEAR_FDB_TOP, 0, 63)];
            desk.granted(&Ask::set(switch_info::ATTRIBUTE.id, 0, &top))?;
            desk.granted(&Ask::set(linear_forwarding::ATTRIBUTE.id, 0, &super::tables::routes()))?;
        }
        desk.bench.run_for(TRAINED);
        Ok(desk)
    }

    /// What leaves the device because of this datagram.
    pub fn ask(&mut self, ask: &Ask) -> Vec<Heard> {
        self.transactions += 1;
        let id = self.transactions;
        let octets = ask.clone().with(TRANSACTION, id).octets(self.node);
        self.bench.clear();
        let start = self.bench.now();
        self.bench.inject(ask.port, Frame::unchecked(FrameKind::Infiniband, octets));
        self.bench.run_for(EXCHANGE);
        let mut all = heard(&self.bench, (start, Instant::NEVER));
        all.retain(|one| one.datagram.get(&TRANSACTION) == id);
        all
    }

    /// The one answer to this request, which it must grant.
    ///
    /// # Errors
    /// If there is none or several, or its status.
    pub fn granted(&mut self, ask: &Ask) -> Result<Datagram> {
        self.answered(ask, 0)
    }

    /// The one answer to this request, with this status.
    ///
    /// # Errors
    /// If there is none or several, or another status.
    pub fn answered(&mut self, ask: &Ask, status: u16) -> Result<Datagram> {
        let all = self.ask(ask);
        let [answer] = &all[..] else { bail!("{} answers to {:?}", all.len(), ask.datagram) };
        same(format!("status of {:?}", ask.datagram), answer.datagram.status(), status)?;
        Ok(answer.datagram.clone())
    }
}

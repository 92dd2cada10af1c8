//! The subnet management agent: Get and Set of every attribute. Source: IBTA Vol 1, 14.2.5 and 14.3.

use super::port_rules::{self as rules, Role};
use super::{Agents, Change, NodeKind, Outcome, key, trap};
use crate::attribute::subnet::*;
use crate::datagram::{CLASS_VERSION, Datagram, method, status};
use crate::partitions;
use proto::counters::DropReason;
use proto::ids::PortNumber;
use proto::units::Instant;

/// The vendor that the node names: an unassigned number.
const VENDOR: u64 = 0x00_5eb0;
/// The bits of PortInfo's modifier that are not a port number: the manager knows extended speeds.
const EXTENDED_SPEEDS: u32 = 1 << 31;

/// The status of a refusal.
type Status = u16;

impl Agents {
    /// Handles a datagram of subnet management.
    pub(super) fn subnet(
        &mut self,
        datagram: &mut Datagram,
        arrival: u8,
        is_local: bool,
        now: Instant,
    ) -> Outcome {
        if datagram.is_response() {
            return Outcome::Client;
        }
        if datagram.get(&CLASS_VERSION) != 1 {
            return answered(datagram, status::VERSION);
        }
        match datagram.method() {
            method::GET | method::SET if self.is_for_manager(datagram) => return Outcome::Client,
            method::TRAP => return Outcome::Client,
            method::GET | method::SET | method::TRAP_REPRESS => {}
            _ => return answered(datagram, status::METHOD),
        }
        let home = self.home();
        if !key::permits(&mut self.ports[home], datagram, is_local, now) {
            let notice = trap::bad_key(self.lid(), self.kind, datagram);
            self.traps.raise(notice, now);
            return Outcome::Refused(DropReason::Key);
        }
        if datagram.method() == method::TRAP_REPRESS {
            self.traps.repress(datagram);
            return Outcome::Taken;
        }
        let mut outcome = Ok(());
        if datagram.method() == method::SET {
            outcome = self.set(datagram);
        }
        let shown = self.get(datagram, arrival, is_local);
        answered(datagram, outcome.and(shown).err().unwrap_or(0))
    }

    /// SMInfo belongs to the manager beside this node, if there is one.
    fn is_for_manager(&self, datagram: &Datagram) -> bool {
        datagram.attribute() == sm_info::ATTRIBUTE.id && self.has_manager()
    }

    /// Writes the attribute, as it stands, to the datagram.
    fn get(&self, datagram: &mut Datagram, arrival: u8, is_local: bool) -> Result<(), Status> {
        let modifier = datagram.modifier();
        let mut data = [0; 64];
        match datagram.attribute() {
            0x0010 => data = self.description,
            0x0011 => self.node_info(&mut data, arrival),
            0x0012 => data[..20].copy_from_slice(&self.tables()?.info),
            0x0014 => data = self.ports[self.one_block(modifier)?].guids,
            0x0015 => {
                let port = &self.ports[self.port(modifier & !EXTENDED_SPEEDS)?];
                data = port.info;
                port_info::LOCAL_PORT.set(&mut data, arrival.into());
                if key::is_hidden(&self.ports[self.home()], datagram, is_local) {
                    port_info::M_KEY.set(&mut data, 0);
                }
            }
            0x0016 => data = self.ports[self.p_key_port(modifier)?].p_keys,
            0x0017 => data[..8].copy_from_slice(self.lanes_entry(modifier)?),
            0x0018 => {
                let (port, table) = self.arbitration_place(modifier)?;
                data = self.ports[port].arbitration[table];
            }
            0x0019 => data = self.tables()?.routes(modifier)?,
            0x001b => data = self.tables()?.multicast(modifier)?,
            _ => return Err(status::ATTRIBUTE),
        }
        datagram.data_mut().copy_from_slice(&data);
        Ok(())
    }

    fn node_info(&self, data: &mut [u8; 64], arrival: u8) {
        let port_guid = match self.kind {
            NodeKind::Adapter => self.guid + u64::from(arrival.max(1)),
            NodeKind::Switch => self.guid,
        };
        let values = [
            (node_info::BASE_VERSION, 1),
            (node_info::CLASS_VERSION, 1),
            (node_info::NODE_TYPE, self.kind as u64),
            (node_info::NUM_PORTS, self.links().into()),
            (node_info::SYSTEM_GUID, self.guid),
            (node_info::NODE_GUID, self.guid),
            (node_info::PORT_GUID, port_guid),
            (node_info::PARTITION_CAP, partitions::ENTRIES as u64),
            (node_info::LOCAL_PORT, arrival.into()),
            (node_info::VENDOR_ID, VENDOR),
        ];
        values.iter().for_each(|(field, value)| field.set(data, *value));
    }

    /// Changes an attribute.
    fn set(&mut self, datagram: &Datagram) -> Result<(), Status> {
        let (modifier, data) = (datagram.modifier(), datagram.data());
        match datagram.attribute() {
            0x0012 => {
                let outcome = self.tables_mut()?.set_info(data);
                // LIDs above the top have no route.
                let blocks = self.tables()?.route_blocks();
                self.changes.extend((0..blocks).map(|block| Change::Routes { block }));
                outcome
            }
            0x0014 => {
                let port = self.one_block(modifier)?;
                let guids = &mut self.ports[port].guids;
                // Entry 0 is the port's own.
                (1..8).for_each(|index| {
                    guid_info::GUID.set_at(index, guids, guid_info::GUID.at(index, data));
                });
                Ok(())
            }
            0x0015 => self.set_port_info(modifier & !EXTENDED_SPEEDS, data),
            0x0016 => {
                let port = self.p_key_port(modifier)?;
                let keys = &mut self.ports[port].p_keys;
                let before = *keys;
                p_key_table::ATTRIBUTE.take(data, keys);
                if *keys != before {
                    self.changes.push_back(Change::Partitions(port as u8));
                }
                Ok(())
            }
            0x0017 => self.set_lanes(modifier, data),
            0x0018 => {
                let (port, table) = self.arbitration_place(modifier)?;
                vl_arbitration::ATTRIBUTE.take(data, &mut self.ports[port].arbitration[table]);
                self.note_arbitration(port);
                Ok(())
            }
            0x0019 => {
                let block = self.tables_mut()?.set_routes(modifier, data)?;
                self.changes.push_back(Change::Routes { block });
                Ok(())
            }
            0x001b => {
                let block = self.tables_mut()?.set_multicast(modifier, data)?;
                self.changes.push_back(Change::Multicast { block });
                Ok(())
            }
            _ => Err(status::ATTRIBUTE),
        }
    }

    fn set_port_info(&mut self, modifier: u32, data: &[u8]) -> Result<(), Status> {
        let index = self.port(modifier)?;
        let role = match (self.kind, index) {
            (NodeKind::Adapter, _) => Role::Adapter,
            (NodeKind::Switch, 0) => Role::Inner,
            (NodeKind::Switch, _) => Role::Outer,
        };
        let limit = port_info::VL_HIGH_LIMIT.get(&self.ports[index].info);
        let enforced = |agents: &Agents| {
            let info = &agents.ports[index].info;
            [port_info::ENFORCE_PARTITIONS_IN, port_info::ENFORCE_PARTITIONS_OUT]
                .map(|field| field.get(info))
        };
        let before_enforced = enforced(self);
        let address = |agents: &Agents| (agents.lid(), agents.lid_mask_bits());
        let (before, manager) = (address(self), self.manager());
        let applied = rules::set(&mut self.ports[index], data, role);
        if address(self) != before {
            self.changes.push_back(Change::Address(self.lid()));
        }
        let is_asked = role != Role::Outer && port_info::CLIENT_REREGISTER.get(data) == 1;
        if is_asked || address(self) != before || self.manager() != manager {
            self.changes.push_back(Change::Reregister);
        }
        if port_info::VL_HIGH_LIMIT.get(&self.ports[index].info) != limit {
            self.note_arbitration(index);
        }
        if enforced(self) != before_enforced {
            self.changes.push_back(Change::Partitions(index as u8));
        }
        if index > 0 {
            let number = PortNumber::from_index(index - 1);
            let links = applied.link.into_iter().map(|state| Change::Link(number, state));
            self.changes.extend(links);
        }
        if applied.refused { Err(status::VALUE) } else { Ok(()) }
    }

    fn note_arbitration(&mut self, index: usize) {
        if index > 0 {
            self.changes.push_back(Change::Arbitration(PortNumber::from_index(index - 1)));
        }
    }

    /// The index of the port that a modifier names. At an adapter 0 is the port of arrival.
    pub(super) fn port(&self, modifier: u32) -> Result<usize, Status> {
        let index = modifier as usize;
        match (self.kind, index) {
            (NodeKind::Adapter, 0) => Ok(1),
            _ if index < self.ports.len() => Ok(index),
            _ => Err(status::VALUE),
        }
    }

    /// The port of a GUID table, which has one block.
    fn one_block(&self, modifier: u32) -> Result<usize, Status> {
        if modifier == 0 { Ok(self.home()) } else { Err(status::VALUE) }
    }

    /// The port of a P_Key table, which has one block. The upper half of the modifier names a port of a switch.
    fn p_key_port(&self, modifier: u32) -> Result<usize, Status> {
        let (port, block) = (modifier >> 16, modifier & 0xffff);
        match self.kind {
            _ if block != 0 => Err(status::VALUE),
            NodeKind::Adapter => Ok(self.home()),
            NodeKind::Switch => self.port(port),
        }
    }

    /// Port and table of an arbitration block: 1 is low, 3 is high. The second half of either table is not there.
    fn arbitration_place(&self, modifier: u32) -> Result<(usize, usize), Status> {
        let port = self.port(modifier & 0xffff)?;
        match modifier >> 16 {
            1 => Ok((port, 0)),
            3 => Ok((port, 1)),
            _ => Err(status::VALUE),
        }
    }
}

fn answered(datagram: &mut Datagram, status: Status) -> Outcome {
    datagram.answer(status);
    Outcome::Answer
}

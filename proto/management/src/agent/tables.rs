//! The tables of a switch: forwarding, lanes of service levels, and SwitchInfo.
//!
//! Source: IBTA Vol 1, 14.2.5.4 (SwitchInfo), 14.2.5.8 to 14.2.5.12 (tables), 18.2.4.3.

use super::{Agents, Change, NodeKind};
use crate::attribute::subnet::port_info as fields;
use crate::attribute::subnet::{
    linear_forwarding, multicast_forwarding, sl_to_vl, switch_info, vl_arbitration,
};
use crate::datagram::status;
use crate::partitions;
use proto::ids::{Lid, PortNumber, ServiceLevel, VirtualLane};
use proto::link::ArbitrationConfig;

/// LIDs that the linear table can hold: all unicast LIDs.
const LINEAR_CAP: usize = 0xc000;
/// LIDs that the multicast table can hold.
const MULTICAST_CAP: usize = 1024;
/// LIDs of a block of the linear table.
pub(super) const LINEAR_BLOCK: usize = 64;
/// LIDs of a block of the multicast table.
const MULTICAST_BLOCK: usize = 32;
/// Ports of one mask of the multicast table.
const MASK: usize = 16;
/// What ports can check: P_Keys in and out, not whether packets are raw.
const ENFORCEMENT: usize = 0b1100;
/// An output that does not exist.
const NOWHERE: u8 = 255;
/// The first multicast LID.
const MULTICAST_FIRST: u16 = 0xc000;

/// The tables of one switch.
#[derive(Debug)]
pub(super) struct SwitchTables {
    pub(super) info: [u8; 20],
    ports: usize,
    /// By LID, as far as it was set.
    linear: Vec<u8>,
    /// By multicast LID, as far as it was set, and position: the masks of sixteen ports.
    multicast: Vec<[u16; 16]>,
    /// By input and output, port 0 included.
    lanes: Vec<[u8; 8]>,
}

impl SwitchTables {
    /// The empty tables of a switch with `ports` ports.
    pub(super) fn new(ports: usize) -> SwitchTables {
        let mut info = [0; 20];
        let caps = [
            (switch_info::LINEAR_FDB_CAP, LINEAR_CAP),
            (switch_info::MULTICAST_FDB_CAP, MULTICAST_CAP),
            (switch_info::PARTITION_ENFORCEMENT_CAP, partitions::ENTRIES),
            (switch_info::ENFORCEMENT, ENFORCEMENT),
            (switch_info::DEFAULT_PORT, usize::from(NOWHERE)),
            (switch_info::DEFAULT_MULTICAST_PRIMARY, usize::from(NOWHERE)),
            (switch_info::DEFAULT_MULTICAST_NOT_PRIMARY, usize::from(NOWHERE)),
        ];
        caps.iter().for_each(|(field, value)| field.set(&mut info, *value as u64));
        let lanes = vec![[0; 8]; (ports + 1) * (ports + 1)];
        SwitchTables { info, ports, linear: Vec::new(), multicast: Vec::new(), lanes }
    }

    /// SwitchInfo reports that a port changed its state.
    pub(super) fn note_port_change(&mut self) {
        switch_info::PORT_STATE_CHANGE.set(&mut self.info, 1);
    }

    /// Sets SwitchInfo; PortStateChange is cleared by writing 1.
    pub(super) fn set_info(&mut self, data: &[u8]) -> Result<(), u16> {
        let top = switch_info::LINEAR_FDB_TOP.get(data) as usize;
        let before = switch_info::LINEAR_FDB_TOP.get(&self.info);
        switch_info::ATTRIBUTE.take(data, &mut self.info);
        if switch_info::PORT_STATE_CHANGE.get(data) == 1 {
            switch_info::PORT_STATE_CHANGE.set(&mut self.info, 0);
        }
        if top >= LINEAR_CAP {
            switch_info::LINEAR_FDB_TOP.set(&mut self.info, before);
            return Err(status::VALUE);
        }
        Ok(())
    }

    /// Blocks of the linear table that were set, up to the last.
    pub(super) fn route_blocks(&self) -> u16 {
        (self.linear.len() / LINEAR_BLOCK) as u16
    }

    /// A block of the linear table.
    pub(super) fn routes(&self, block: u32) -> Result<[u8; 64], u16> {
        let first = block as usize * LINEAR_BLOCK;
        if first >= LINEAR_CAP {
            return Err(status::VALUE);
        }
        let entry = |index: usize| self.linear.get(first + index).copied().unwrap_or(NOWHERE);
        Ok(std::array::from_fn(entry))
    }

    /// Sets a block of the linear table. Returns its number.
    pub(super) fn set_routes(&mut self, block: u32, data: &[u8]) -> Result<u16, u16> {
        let first = block as usize * LINEAR_BLOCK;
        if first >= LINEAR_CAP {
            return Err(status::VALUE);
        }
        if self.linear.len() < first + LINEAR_BLOCK {
            self.linear.resize(first + LINEAR_BLOCK, NOWHERE);
        }
        for index in 0..LINEAR_BLOCK {
            self.linear[first + index] = linear_forwarding::PORT.at(index, data) as u8;
        }
        Ok(block as u16)
    }

    /// Block and position that a modifier of the multicast table names.
    fn multicast_place(&self, modifier: u32) -> Result<(usize, usize), u16> {
        let (position, block) = ((modifier >> 28) as usize, (modifier & 0x1ff) as usize);
        let fits = block * MULTICAST_BLOCK < MULTICAST_CAP && position * MASK <= self.ports;
        let is_plain = modifier & !0xf000_01ff == 0;
        if fits && is_plain { Ok((block, position)) } else { Err(status::VALUE) }
    }

    /// A block of the multicast table.
    pub(super) fn multicast(&self, modifier: u32) -> Result<[u8; 64], u16> {
        let (block, position) = self.multicast_place(modifier)?;
        let mut data = [0; 64];
        for index in 0..MULTICAST_BLOCK {
            let masks = self.multicast.get(block * MULTICAST_BLOCK + index);
            let mask = masks.map_or(0, |masks| masks[position]);
            multicast_forwarding::PORTS.set_at(index, &mut data, mask.into());
        }
        Ok(data)
    }

    /// Sets a block of the multicast table. Returns its number.
    pub(super) fn set_multicast(&mut self, modifier: u32, data: &[u8]) -> Result<u16, u16> {
        let (block, position) = self.multicast_place(modifier)?;
        let first = block * MULTICAST_BLOCK;
        if self.multicast.len() < first + MULTICAST_BLOCK {
            self.multicast.resize(first + MULTICAST_BLOCK, [0; 16]);
        }
        for index in 0..MULTICAST_BLOCK {
            let mask = multicast_forwarding::PORTS.at(index, data) as u16;
            self.multicast[first + index][position] = mask;
        }
        Ok(block as u16)
    }
}

impl Agents {
    /// The tables of a switch; an adapter has none.
    pub(super) fn tables(&self) -> Result<&SwitchTables, u16> {
        self.switch.as_deref().ok_or(status::ATTRIBUTE)
    }

    /// The tables of a switch, to change.
    pub(super) fn tables_mut(&mut self) -> Result<&mut SwitchTables, u16> {
        self.switch.as_deref_mut().ok_or(status::ATTRIBUTE)
    }

    /// The output of a unicast LID; `None` if it has none, is above the top, or is the switch itself.
    pub fn output(&self, lid: Lid) -> Option<PortNumber> {
        let tables = self.switch.as_deref()?;
        let top = switch_info::LINEAR_FDB_TOP.get(&tables.info);
        let port = *tables.linear.get(usize::from(lid.get()))?;
        let is_port = u64::from(lid.get()) <= top && usize::from(port) <= tables.ports;
        PortNumber::new(port).ok().filter(|_| is_port)
    }

    /// The LIDs of a block of the linear table.
    pub fn routed_lids(block: u16) -> impl Iterator<Item = Lid> {
        let first = usize::from(block) * LINEAR_BLOCK;
        (first..first + LINEAR_BLOCK).map(|lid| Lid::new(lid as u16))
    }

    /// The multicast LIDs of a block, each with its outputs.
    pub fn outputs(&self, block: u16) -> Vec<(Lid, Vec<PortNumber>)> {
        let Some(tables) = self.switch.as_deref() else { return Vec::new() };
        let first = usize::from(block) * MULTICAST_BLOCK;
        let ports = |masks: &[u16; 16]| {
            let is_set = |port: &usize| masks[port / MASK] >> (port % MASK) & 1 == 1;
            (1..=tables.ports).filter(is_set).map(|port| PortNumber::from_index(port - 1)).collect()
        };
        let rows = tables.multicast.iter().enumerate().skip(first).take(MULTICAST_BLOCK);
        rows.map(|(index, masks)| (Lid::new(MULTICAST_FIRST + index as u16), ports(masks)))
            .collect()
    }

    /// The place of a lane table: the pair of ports at a switch, the port at an adapter.
    fn lanes_place(&self, modifier: u32) -> Result<usize, u16> {
        let (input, output) = ((modifier >> 8) as usize, (modifier & 0xff) as usize);
        match self.kind {
            NodeKind::Adapter if modifier == 0 => Ok(0),
            NodeKind::Adapter => Err(status::VALUE),
            NodeKind::Switch if input.max(output) < self.ports.len() => {
                Ok(input * self.ports.len() + output)
            }
            NodeKind::Switch => Err(status::VALUE),
        }
    }

    pub(super) fn lanes_entry(&self, modifier: u32) -> Result<&[u8; 8], u16> {
        let place = self.lanes_place(modifier)?;
        Ok(self.switch.as_deref().map_or(&self.lanes, |tables| &tables.lanes[place]))
    }

    pub(super) fn set_lanes(&mut self, modifier: u32, data: &[u8]) -> Result<(), u16> {
        let place = self.lanes_place(modifier)?;
        let own = &mut self.lanes;
        let entry = self.switch.as_deref_mut().map_or(own, |tables| &mut tables.lanes[place]);
        sl_to_vl::ATTRIBUTE.take(data, entry);
        let (input, output) = ((modifier >> 8) as u8, modifier as u8);
        self.changes.push_back(Change::Lanes { input, output });
        Ok(())
    }

    /// Presets the lanes of all levels, for every input and output alike.
    pub fn preset_lanes(&mut self, lane: impl Fn(u8, u8, ServiceLevel) -> VirtualLane) {
        let count = self.ports.len();
        let fill = |entry: &mut [u8; 8], input: usize, output: usize| {
            for level in 0..16 {
                let lane = lane(input as u8, output as u8, ServiceLevel::truncate(level as u8));
                sl_to_vl::VL.set_at(level, entry, lane.get().into());
            }
        };
        match self.switch.as_deref_mut() {
            None => fill(&mut self.lanes, 0, 0),
            Some(tables) => {
                for (place, entry) in tables.lanes.iter_mut().enumerate() {
                    fill(entry, place / count, place % count);
                }
            }
        }
    }

    /// The lanes of the sixteen service levels from an input to an output; both 0 at an adapter.
    pub fn lanes(&self, input: u8, output: u8) -> [VirtualLane; 16] {
        let modifier = u32::from(input) << 8 | u32::from(output);
        let entry = self.lanes_entry(modifier).copied().unwrap_or_default();
        std::array::from_fn(|level| VirtualLane::truncate(sl_to_vl::VL.at(level, &entry) as u8))
    }

    /// The arbitration of a port, without entries of weight zero.
    pub fn arbitration(&self, number: PortNumber) -> ArbitrationConfig {
        let port = &self.ports[usize::from(number.get())];
        let entries = |block: &[u8; 64]| {
            let entry = |index| {
                let lane = vl_arbitration::VL.at(index, block) as u8;
                (lane, vl_arbitration::WEIGHT.at(index, block) as u8)
            };
            (0..32).map(entry).filter(|(_, weight)| *weight > 0).collect()
        };
        ArbitrationConfig {
            low: entries(&port.arbitration[0]),
            high: entries(&port.arbitration[1]),
            high_limit: fields::VL_HIGH_LIMIT.get(&port.info) as u8,
        }
    }
}

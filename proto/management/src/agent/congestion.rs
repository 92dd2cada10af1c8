//! The agent of congestion control: thresholds and marking at a switch, table and reaction at an adapter.
//!
//! Source: IBTA Vol 1, annex A10.4.3 (attributes), A10.4.1 (CC_Key).

use super::{NodeKind, Outcome};
use crate::attribute::congestion::*;
use crate::attribute::{Attribute, Field};
use crate::datagram::{CC_KEY, CLASS_VERSION, Datagram, method, status};
use proto::counters::DropReason;
use proto::ids::PortNumber;
use proto::units::Instant;

/// Blocks of 64 entries of the control table.
const TABLE_BLOCKS: usize = 2;
/// Entries of a block.
const BLOCK: usize = 64;
/// Blocks of 32 ports of the port settings: all ports of a switch.
const PORT_BLOCKS: usize = 8;
const RESPONSE_TIME: u64 = 18;
/// The clock of the log counts in units of 1.024 us.
const TICK_NS: u64 = 1_024;
/// The log of an adapter.
const ADAPTER_LOG: u64 = 2;
const SWITCH_LOG: u64 = 1;

/// The reaction of an adapter on one service level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reaction {
    /// Time between two decrements, units of 1.024 us.
    pub timer: u16,
    /// Increase with each BECN.
    pub increase: u16,
    /// A CCTI that reaches this value is logged.
    pub trigger_threshold: u16,
    /// Smallest CCTI.
    pub min: u16,
    /// The table up to its limit: shift and multiplier as on the wire.
    pub table: Vec<u16>,
}

/// The marking of one port of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marking {
    /// 0 marks nothing, 15 marks soonest.
    pub threshold: u8,
    /// Packets that are smaller are not marked, units of 64 octets.
    pub packet_size: u8,
    /// Packets between two marks at least.
    pub rate: u16,
    /// Marks also where the port waits for credits.
    pub victims: bool,
}

/// The agent with what was set.
#[derive(Debug)]
pub struct CongestionAgent {
    key: [u8; 14],
    switch: [u8; 76],
    ports: [[u8; 128]; PORT_BLOCKS],
    adapter: [u8; 132],
    /// Blocks as set; the table in force changes when the block with the limit has come.
    staged: [[u8; 132]; TABLE_BLOCKS],
    table: Vec<u16>,
    has_news: bool,
}

impl Default for CongestionAgent {
    fn default() -> CongestionAgent {
        CongestionAgent {
            key: [0; 14],
            switch: [0; 76],
            ports: [[0; 128]; PORT_BLOCKS],
            adapter: [0; 132],
            staged: [[0; 132]; TABLE_BLOCKS],
            table: Vec::new(),
            has_news: false,
        }
    }
}

impl CongestionAgent {
    /// Whether a Set has changed parameters since the last call.
    pub(super) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// The reaction of an adapter on service level `level`; `None` before a table was set.
    pub fn reaction(&self, level: usize) -> Option<Reaction> {
        let value = |field: Field| field.at(level, &self.adapter) as u16;
        (!self.table.is_empty()).then(|| Reaction {
            timer: value(ca_congestion_setting::CCTI_TIMER),
            increase: value(ca_congestion_setting::CCTI_INCREASE),
            trigger_threshold: value(ca_congestion_setting::TRIGGER_THRESHOLD),
            min: value(ca_congestion_setting::CCTI_MIN),
            table: self.table.clone(),
        })
    }

    /// The marking of a port of a switch.
    pub fn marking(&self, port: PortNumber) -> Marking {
        use switch_congestion_setting as whole;
        use switch_port_congestion_setting as own;
        let number = usize::from(port.get());
        let (block, index) = (&self.ports[number / 32], number % 32);
        // Port n is bit n of a number of 256 bits, whose last octet comes last.
        let word = whole::VICTIM_MASK.at(3 - number / 64, &self.switch);
        let victims = word >> (number % 64) & 1 == 1;
        if own::VALID.at(index, block) == 1 {
            return Marking {
                threshold: own::THRESHOLD.at(index, block) as u8,
                packet_size: own::PACKET_SIZE.at(index, block) as u8,
                rate: own::MARKING_RATE.at(index, block) as u16,
                victims,
            };
        }
        Marking {
            threshold: whole::THRESHOLD.get(&self.switch) as u8,
            packet_size: whole::PACKET_SIZE.get(&self.switch) as u8,
            rate: whole::MARKING_RATE.get(&self.switch) as u16,
            victims,
        }
    }

    /// Answers a datagram.
    pub(super) fn receive(
        &mut self,
        datagram: &mut Datagram,
        kind: NodeKind,
        now: Instant,
    ) -> Outcome {
        if datagram.get(&CLASS_VERSION) != 2 {
            datagram.answer(status::VERSION);
            return Outcome::Answer;
        }
        let is_set = match datagram.method() {
            method::GET => false,
            method::SET => true,
            _ => {
                datagram.answer(status::METHOD);
                return Outcome::Answer;
            }
        };
        if !self.permits(datagram, is_set) {
            return Outcome::Refused(DropReason::Key);
        }
        let mut outcome = Ok(());
        if is_set {
            outcome = self.set(datagram, kind);
        }
        let shown = self.get(datagram, kind, now);
        datagram.answer(outcome.and(shown).err().unwrap_or(0));
        Outcome::Answer
    }

    /// Whether the key of `datagram` permits it; a refusal counts.
    fn permits(&mut self, datagram: &Datagram, is_set: bool) -> bool {
        let stored = congestion_key_info::KEY.get(&self.key);
        let protects_reads = congestion_key_info::PROTECT.get(&self.key) == 1;
        if stored == 0 || datagram.get(&CC_KEY) == stored || !is_set && !protects_reads {
            return true;
        }
        let violations = congestion_key_info::VIOLATIONS.get(&self.key);
        congestion_key_info::VIOLATIONS.set(&mut self.key, (violations + 1).min(0xffff));
        false
    }

    fn get(&self, datagram: &mut Datagram, kind: NodeKind, now: Instant) -> Result<(), u16> {
        let (modifier, is_switch) = (datagram.modifier() as usize, kind == NodeKind::Switch);
        let attribute = datagram.attribute();
        let data = datagram.data_mut();
        data.fill(0);
        match attribute {
            0x0001 => {
                class_port_info::BASE_VERSION.set(data, 1);
                class_port_info::CLASS_VERSION.set(data, 2);
                class_port_info::RESP_TIME.set(data, RESPONSE_TIME);
            }
            0x0011 => congestion_info::CONTROL_TABLE_CAP.set(data, TABLE_BLOCKS as u64),
            0x0012 => data[..14].copy_from_slice(&self.key),
            0x0013 => {
                let kind = if is_switch { SWITCH_LOG } else { ADAPTER_LOG };
                congestion_log::LOG_TYPE.set(data, kind);
            }
            0x0014 if is_switch => data[..76].copy_from_slice(&self.switch),
            0x0015 if is_switch => {
                data[..128].copy_from_slice(self.ports.get(modifier).ok_or(status::VALUE)?);
            }
            0x0016 if !is_switch => data[..132].copy_from_slice(&self.adapter),
            0x0017 if !is_switch => {
                data[..132].copy_from_slice(self.staged.get(modifier).ok_or(status::VALUE)?);
            }
            0x0018 => time_stamp::TIME_STAMP.set(data, now.as_ps() / (TICK_NS * 1_000)),
            _ => return Err(status::ATTRIBUTE),
        }
        Ok(())
    }

    fn set(&mut self, datagram: &Datagram, kind: NodeKind) -> Result<(), u16> {
        let (modifier, data) = (datagram.modifier() as usize, datagram.data());
        let is_switch = kind == NodeKind::Switch;
        match datagram.attribute() {
            0x0012 => congestion_key_info::ATTRIBUTE.take(data, &mut self.key),
            0x0014 if is_switch => self.set_switch(data),
            0x0015 if is_switch => {
                let block = self.ports.get_mut(modifier).ok_or(status::VALUE)?;
                switch_port_congestion_setting::ATTRIBUTE.take(data, block);
                self.has_news = true;
            }
            0x0016 if !is_switch => self.set_adapter(data),
            0x0017 if !is_switch => self.set_table(modifier, data)?,
            _ => return Err(status::ATTRIBUTE),
        }
        Ok(())
    }

    /// Takes the fields whose bits of the control map are set.
    fn set_switch(&mut self, data: &[u8]) {
        use switch_congestion_setting::*;
        let map = CONTROL_MAP.get(data);
        let parts: [&[Field]; 5] = [
            &[VICTIM_MASK],
            &[CREDIT_MASK],
            &[THRESHOLD, PACKET_SIZE],
            &[CS_THRESHOLD, CS_RETURN_DELAY],
            &[MARKING_RATE],
        ];
        for (bit, fields) in parts.iter().enumerate() {
            if map >> bit & 1 == 1 {
                fields.iter().for_each(|field| field.copy(data, &mut self.switch));
            }
        }
        CONTROL_MAP.copy(data, &mut self.switch);
        self.has_news = true;
    }

    /// Takes the settings of the service levels in the control map.
    fn set_adapter(&mut self, data: &[u8]) {
        use ca_congestion_setting::*;
        let map = CONTROL_MAP.get(data);
        for level in (0..16).filter(|level| map >> level & 1 == 1) {
            for field in [CCTI_TIMER, CCTI_INCREASE, TRIGGER_THRESHOLD, CCTI_MIN] {
                field.set_at(level, &mut self.adapter, field.at(level, data));
            }
        }
        PORT_CONTROL.copy(data, &mut self.adapter);
        CONTROL_MAP.copy(data, &mut self.adapter);
        self.has_news = true;
    }

    /// Stages a block. The table is in force from the block on that contains its limit.
    fn set_table(&mut self, block: usize, data: &[u8]) -> Result<(), u16> {
        const TABLE: Attribute = congestion_control_table::ATTRIBUTE;
        let limit = congestion_control_table::CCTI_LIMIT.get(data) as usize;
        if limit >= TABLE_BLOCKS * BLOCK {
            return Err(status::VALUE);
        }
        let staged = self.staged.get_mut(block).ok_or(status::VALUE)?;
        TABLE.take(data, staged);
        if block == limit / BLOCK {
            self.table = (0..=limit).map(|index| self.entry(index)).collect();
            self.has_news = true;
        }
        Ok(())
    }

    fn entry(&self, index: usize) -> u16 {
        use congestion_control_table::{MULTIPLIER, SHIFT};
        let (block, index) = (&self.staged[index / BLOCK], index % BLOCK);
        (SHIFT.at(index, block) << 14 | MULTIPLIER.at(index, block)) as u16
    }
}

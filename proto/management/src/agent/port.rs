//! One port as its agent knows it: PortInfo and the tables beside it.
//!
//! ```text
//!  Down ──peer──▶ Initialize ──Set 3──▶ Armed ──Set 4, or first data packet──▶ Active
//!    ▲                ▲                                                          │
//!    └──no peer───────┴──────────── Set 1, or the peer starts again ─────────────┘
//! ```
//!
//! Source: IBTA Vol 1, 7.2.7 (states), 14.2.5.6 (PortInfo).

use super::NodeKind;
use crate::attribute::Field;
use crate::attribute::subnet::port_info as fields;
use crate::attribute::subnet::{guid_info, p_key_table, vl_arbitration};
use proto::link::{CreditConfig, FlowControlConfig, LinkConfig};
use proto::units::Instant;
use proto::wire::infiniband::Bth;

/// State of a port. Source: IBTA Vol 1, 14.2.5.6 (PortState).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PortState {
    /// No peer, or disabled.
    Down = 1,
    /// Only subnet management and link packets pass.
    Initialize = 2,
    /// Data may be received and not sent.
    Armed = 3,
    /// Data passes.
    Active = 4,
}

impl PortState {
    /// The state with this code.
    pub const fn from_code(code: u64) -> PortState {
        match code {
            2 => PortState::Initialize,
            3 => PortState::Armed,
            4 => PortState::Active,
            _ => PortState::Down,
        }
    }
}

/// Physical states. Source: IBTA Vol 1, 14.2.5.6 (PortPhysicalState).
pub(super) mod physical {
    pub const POLLING: u64 = 2;
    pub const DISABLED: u64 = 3;
    pub const LINK_UP: u64 = 5;
}

/// CapabilityMask: a subnet manager sits here.
pub(super) const IS_SM: u64 = 1 << 1;
/// CapabilityMask: traps, SL mapping, notices about the mask, client reregistration.
const CAPABILITIES: u64 = 1 << 3 | 1 << 6 | 1 << 22 | 1 << 25;
/// Blocks of 32 entries in each of the two arbitration tables.
const ARBITRATION_ENTRIES: u64 = 32;
/// GUIDs of a port.
const GUIDS: u64 = 8;
/// RespTimeValue: answers come within 4.096 us · 2^16.
const RESPONSE_TIME: u64 = 16;
/// Packets that a port of a switch dropped because of their P_Key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ConstraintErrors {
    pub sent: u64,
    pub received: u64,
}

/// One port.
#[derive(Clone, Debug)]
pub struct Port {
    /// PortInfo as it stands.
    pub(super) info: [u8; 64],
    pub(super) p_keys: [u8; 64],
    pub(super) guids: [u8; 64],
    /// The low and the high arbitration table.
    pub(super) arbitration: [[u8; 64]; 2],
    /// How often the peer has made the link start again, as last observed.
    pub(super) restarts: u64,
    /// How often the port has left Active without a Set.
    pub(super) downed: u64,
    pub(super) constraint_errors: ConstraintErrors,
    /// When the lease of the M_Key ends, if it is running.
    pub(super) lease_ends: Instant,
}

impl Port {
    fn empty(guid: u64) -> Port {
        let mut port = Port {
            info: [0; 64],
            p_keys: [0; 64],
            guids: [0; 64],
            arbitration: [[0; 64]; 2],
            restarts: 0,
            downed: 0,
            constraint_errors: ConstraintErrors::default(),
            lease_ends: Instant::NEVER,
        };
        p_key_table::P_KEY.set(&mut port.p_keys, Bth::DEFAULT_PARTITION.into());
        guid_info::GUID.set(&mut port.guids, guid);
        port
    }

    /// Port 0 of a switch: it has no cable and is always active.
    pub(super) fn management(guid: u64) -> Port {
        let mut port = Port::empty(guid);
        port.write(&[
            (fields::CAPABILITY_MASK, CAPABILITIES),
            (fields::PORT_STATE, PortState::Active as u64),
            (fields::PHYS_STATE, physical::LINK_UP),
            (fields::LINK_WIDTH_SUPPORTED, 1),
            (fields::LINK_WIDTH_ENABLED, 1),
            (fields::LINK_WIDTH_ACTIVE, 1),
            (fields::LINK_SPEED_SUPPORTED, 1),
            (fields::LINK_SPEED_ENABLED, 1),
            (fields::LINK_SPEED_ACTIVE, 1),
            (fields::NEIGHBOR_MTU, 5),
            (fields::MTU_CAP, 5),
            (fields::VL_CAP, 1),
            (fields::OPERATIONAL_VLS, 1),
            (fields::GUID_CAP, GUIDS),
            (fields::RESP_TIME, RESPONSE_TIME),
            (fields::LINK_DOWN_DEFAULT, physical::POLLING),
        ]);
        port
    }

    /// A port with a cable, before its peer is there.
    pub(super) fn new(kind: NodeKind, guid: u64, link: &LinkConfig) -> Port {
        let mut port = Port::empty(guid);
        let Link { width, speed, extended, mtu, lanes } = Link::of(link);
        let is_adapter = kind == NodeKind::Adapter;
        port.write(&[
            (fields::CAPABILITY_MASK, if is_adapter { CAPABILITIES } else { 0 }),
            (fields::PORT_STATE, PortState::Down as u64),
            (fields::PHYS_STATE, physical::POLLING),
            (fields::LINK_DOWN_DEFAULT, physical::POLLING),
            (fields::LINK_WIDTH_SUPPORTED, width),
            (fields::LINK_WIDTH_ENABLED, width),
            (fields::LINK_WIDTH_ACTIVE, width),
            (fields::LINK_SPEED_SUPPORTED, speed),
            (fields::LINK_SPEED_ENABLED, speed),
            (fields::LINK_SPEED_ACTIVE, speed),
            (fields::LINK_SPEED_EXT_SUPPORTED, extended),
            (fields::LINK_SPEED_EXT_ENABLED, extended),
            (fields::LINK_SPEED_EXT_ACTIVE, extended),
            (fields::NEIGHBOR_MTU, mtu),
            (fields::MTU_CAP, mtu),
            (fields::VL_CAP, lanes),
            (fields::OPERATIONAL_VLS, lanes),
            (fields::VL_ARB_HIGH_CAP, ARBITRATION_ENTRIES),
            (fields::VL_ARB_LOW_CAP, ARBITRATION_ENTRIES),
            (fields::GUID_CAP, if is_adapter { GUIDS } else { 0 }),
            (fields::RESP_TIME, RESPONSE_TIME),
        ]);
        if let FlowControlConfig::Credit(CreditConfig { arbitration, .. }) = &link.control {
            fields::VL_HIGH_LIMIT.set(&mut port.info, arbitration.high_limit.into());
            for (table, entries) in [&arbitration.low, &arbitration.high].into_iter().enumerate() {
                let places = entries.iter().take(ARBITRATION_ENTRIES as usize).enumerate();
                for (index, (lane, weight)) in places {
                    let block = &mut port.arbitration[table];
                    vl_arbitration::VL.set_at(index, block, (*lane).into());
                    vl_arbitration::WEIGHT.set_at(index, block, (*weight).into());
                }
            }
        }
        port
    }

    fn write(&mut self, values: &[(Field, u64)]) {
        values.iter().for_each(|(field, value)| field.set(&mut self.info, *value));
    }

    /// The state of the port.
    pub fn state(&self) -> PortState {
        PortState::from_code(fields::PORT_STATE.get(&self.info))
    }

    pub(super) fn is_disabled(&self) -> bool {
        fields::PHYS_STATE.get(&self.info) == physical::DISABLED
    }

    /// Enters `state`; the physical state follows.
    pub(super) fn enter(&mut self, state: PortState, is_up: bool) {
        let physical = if is_up { physical::LINK_UP } else { physical::POLLING };
        self.write(&[(fields::PORT_STATE, state as u64), (fields::PHYS_STATE, physical)]);
    }
}

/// A link in the codes of PortInfo.
struct Link {
    width: u64,
    speed: u64,
    extended: u64,
    mtu: u64,
    lanes: u64,
}

impl Link {
    fn of(link: &LinkConfig) -> Link {
        let (physical_lanes, data_lanes) = match &link.control {
            FlowControlConfig::Credit(credit) => (credit.lanes, credit.data_lanes),
            FlowControlConfig::Pause(_) => (1, 1),
        };
        let width = match physical_lanes {
            ..=1 => 1,
            2 => 16,
            3..=4 => 2,
            5..=8 => 4,
            9.. => 8,
        };
        let per_lane = link.rate.get() / u64::from(physical_lanes.max(1));
        // Data rates per lane of SDR to NDR; a rate between two has the code of the slower one.
        let (speed, extended) = match per_lane / 1_000_000 {
            ..4_000 => (1, 0),
            4_000..8_000 => (2, 0),
            8_000..13_000 => (4, 0),
            13_000..25_000 => (4, 1),
            25_000..50_000 => (4, 2),
            50_000..100_000 => (4, 4),
            100_000.. => (4, 8),
        };
        let mtu = match link.mtu.get() {
            ..512 => 1,
            512..1024 => 2,
            1024..2048 => 3,
            2048..4096 => 4,
            4096.. => 5,
        };
        let lanes = match data_lanes {
            ..=1 => 1,
            2..=3 => 2,
            4..=7 => 3,
            8..=14 => 4,
            15.. => 5,
        };
        Link { width, speed, extended, mtu, lanes }
    }
}

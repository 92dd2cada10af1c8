//! Set of PortInfo: each field with its rule, the state last.
//!
//! A value that is refused leaves its field as it was, and the others are still taken.
//! Source: IBTA Vol 1, 14.2.5.6; Linux qib (what zero and "all supported" mean).

use super::port::{Port, PortState, physical};
use crate::attribute::subnet::port_info as fields;
use crate::attribute::{Attribute, Field};
use proto::ids::Lid;
use proto::link::credit::LinkState;

const PORT_INFO: Attribute = fields::ATTRIBUTE;

/// What a port is to its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Port 0 of a switch.
    Inner,
    /// A port of an adapter.
    Adapter,
    /// A port of a switch with a cable.
    Outer,
}

/// The outcome of a Set.
#[derive(Debug, Default)]
pub(super) struct Applied {
    /// A value was refused.
    pub refused: bool,
    /// What the link must do, in order.
    pub link: Vec<LinkState>,
}

/// Takes the fields of `request`.
pub(super) fn set(port: &mut Port, request: &[u8], role: Role) -> Applied {
    let mut applied = Applied::default();
    let info = &mut port.info;
    PORT_INFO.take(request, info);
    let (mtu_cap, vl_cap) = (fields::MTU_CAP.get(info), fields::VL_CAP.get(info));
    let mut refused = false;
    if role != Role::Outer {
        refused |= set_address(info, request, role);
    }
    refused |=
        set_subset(info, request, fields::LINK_WIDTH_ENABLED, fields::LINK_WIDTH_SUPPORTED, 255);
    refused |=
        set_subset(info, request, fields::LINK_SPEED_ENABLED, fields::LINK_SPEED_SUPPORTED, 15);
    refused |= set_up_to(info, request, fields::NEIGHBOR_MTU, mtu_cap);
    refused |= set_up_to(info, request, fields::OPERATIONAL_VLS, vl_cap);
    refused |= set_up_to(info, request, fields::LINK_DOWN_DEFAULT, physical::POLLING);
    for violations in [fields::M_KEY_VIOLATIONS, fields::P_KEY_VIOLATIONS, fields::Q_KEY_VIOLATIONS]
    {
        if violations.get(request) == 0 {
            violations.set(info, 0);
        }
    }
    let change = match role {
        Role::Inner => set_inner_state(request),
        Role::Adapter | Role::Outer => set_state(port, request),
    };
    match change {
        Some(link) => applied.link = link,
        None => refused = true,
    }
    applied.refused = refused;
    applied
}

/// Fields that only the port with the LID has. Returns whether a value was refused.
fn set_address(info: &mut [u8; 64], request: &[u8], role: Role) -> bool {
    let mut refused = false;
    for field in [fields::LID, fields::MASTER_SM_LID] {
        let is_good = Lid::new(field.get(request) as u16).is_unicast();
        refused |= !is_good;
        if is_good {
            field.copy(request, info);
        }
    }
    if role == Role::Inner && fields::LMC.get(request) != 0 {
        refused = true;
    } else {
        fields::LMC.copy(request, info);
    }
    let plain = [
        fields::M_KEY,
        fields::GID_PREFIX,
        fields::M_KEY_LEASE,
        fields::M_KEY_PROTECT,
        fields::SUBNET_TIMEOUT,
    ];
    plain.iter().for_each(|field| field.copy(request, info));
    refused
}

/// A set of bits that must be supported: 0 keeps it, `all` is all that is supported.
fn set_subset(
    info: &mut [u8; 64],
    request: &[u8],
    field: Field,
    supported: Field,
    all: u64,
) -> bool {
    let (value, supported) = (field.get(request), supported.get(info));
    let taken = match value {
        0 => return false,
        _ if value == all => supported,
        _ if value & !supported == 0 => value,
        _ => return true,
    };
    field.set(info, taken);
    false
}

/// A code up to `max`; 0 keeps it.
fn set_up_to(info: &mut [u8; 64], request: &[u8], field: Field, max: u64) -> bool {
    let value = field.get(request);
    if (1..=max).contains(&value) {
        field.set(info, value);
    }
    value > max
}

/// Port 0 is always active.
fn set_inner_state(request: &[u8]) -> Option<Vec<LinkState>> {
    let (state, physical) = (fields::PORT_STATE.get(request), fields::PHYS_STATE.get(request));
    (matches!(state, 0 | 4) && physical == 0).then(Vec::new)
}

/// The transition that a Set asks for; `None` if there is no such transition.
fn set_state(port: &mut Port, request: &[u8]) -> Option<Vec<LinkState>> {
    let asked = (fields::PORT_STATE.get(request), fields::PHYS_STATE.get(request));
    let state = port.state();
    let retrain = vec![LinkState::Down, LinkState::Initialize];
    match asked {
        (0, 0) => Some(Vec::new()),
        (3, 0) if matches!(state, PortState::Initialize | PortState::Armed) => {
            port.enter(PortState::Armed, true);
            Some(vec![LinkState::Arm])
        }
        (4, 0) if matches!(state, PortState::Armed | PortState::Active) => {
            port.enter(PortState::Active, true);
            Some(vec![LinkState::Active])
        }
        (1, 0) if port.is_disabled() => Some(Vec::new()),
        (1, 0) | (0 | 1, physical::POLLING) => {
            port.enter(PortState::Down, false);
            Some(retrain)
        }
        (0 | 1, physical::DISABLED) => {
            port.enter(PortState::Down, false);
            fields::PHYS_STATE.set(&mut port.info, physical::DISABLED);
            Some(vec![LinkState::Down])
        }
        _ => None,
    }
}

//! Codes of libibverbs for the words of the protocol.

use crate::layouts;
use nix::errno::Errno;
use std::ffi::{c_int, c_uint};
use verbs::answer::Refusal;
use verbs::attributes::{Access, AddressVector, QpAttributes, Service, State};
use verbs::work::{Completed, Operation, Status};

/// The only port that the agent uses.
pub const PORT: u8 = 1;
/// `IBV_SEND_FENCE`, `IBV_SEND_SIGNALED`, `IBV_SEND_SOLICITED`.
pub const FENCE: c_uint = 1;
/// See [`FENCE`].
pub const SIGNALED: c_uint = 2;
/// See [`FENCE`].
pub const SOLICITED: c_uint = 4;
/// `IBV_WC_WITH_IMM`.
pub const WITH_IMMEDIATE: c_uint = 2;

/// The refusal for an error number of the system.
pub fn refusal(what: &str, number: c_int) -> Refusal {
    let error = Errno::from_raw(number);
    Refusal::new(&format!("{error:?}"), format!("{what}: {}", error.desc()))
}

/// The result of a function that returns 0 or an error number, or −1 and sets one.
///
/// # Errors
/// If it is not 0.
pub fn result(what: &str, returned: c_int) -> Result<(), Refusal> {
    match returned {
        0 => Ok(()),
        error if error > 0 => Err(refusal(what, error)),
        _ => Err(refusal(what, Errno::last_raw())),
    }
}

/// `enum ibv_access_flags`; local writing is always permitted.
pub fn access(access: Access) -> c_int {
    1 | c_int::from(access.write) << 1
        | c_int::from(access.read) << 2
        | c_int::from(access.atomic) << 3
}

/// `enum ibv_qp_type`.
pub fn service(service: Service) -> c_uint {
    match service {
        Service::Rc => 2,
        Service::Uc => 3,
        Service::Ud => 4,
    }
}

const STATES: [State; 7] =
    [State::Reset, State::Init, State::Rtr, State::Rts, State::Sqd, State::Sqe, State::Error];

/// `struct ibv_ah_attr`.
pub fn address(vector: &AddressVector) -> layouts::Address {
    layouts::Address {
        gid: vector.gid.octets(),
        flow_label: vector.flow_label,
        gid_index: vector.gid_index,
        hop_limit: vector.hop_limit,
        traffic_class: vector.traffic_class,
        service_level: vector.service_level,
        is_global: 1,
        port: PORT,
        ..layouts::Address::default()
    }
}

/// `struct ibv_qp_attr` and its mask of `enum ibv_qp_attr_mask`.
pub fn attributes(wanted: &QpAttributes) -> (layouts::QpAttributes, c_int) {
    let mut set = layouts::QpAttributes::default();
    let mut mask = 0;
    // Each line: bit of the mask, member of libibverbs, attribute of the protocol.
    macro_rules! take {
        ($($bit:literal $member:ident = $value:expr;)*) => {
            $(if let Some(value) = $value {
                set.$member = value;
                mask |= 1 << $bit;
            })*
        };
    }
    let state = |state| STATES.iter().position(|known| *known == state).unwrap_or(0) as c_uint;
    take! {
        0 state = wanted.state.map(state);
        3 access = wanted.access.map(|wanted| access(wanted) as c_uint);
        4 pkey_index = wanted.pkey_index;
        5 port = wanted.port;
        6 qkey = wanted.qkey;
        7 address = wanted.address.as_ref().map(address);
        8 path_mtu = wanted.path_mtu.map(c_uint::from);
        9 timeout = wanted.timeout;
        10 retry_count = wanted.retry_count;
        11 rnr_retry = wanted.rnr_retry;
        12 receive_psn = wanted.receive_psn;
        13 initiator_depth = wanted.initiator_depth;
        15 min_rnr_timer = wanted.min_rnr_timer;
        16 send_psn = wanted.send_psn;
        17 responder_resources = wanted.responder_resources;
        20 destination = wanted.destination;
    }
    (set, mask)
}

/// The mask of all attributes that the protocol has.
pub const ALL: c_int = 0x13_bff9;

/// What a query has found.
pub fn found(attributes: &layouts::QpAttributes) -> QpAttributes {
    let flag = |bit: u32| attributes.access >> bit & 1 == 1;
    let from = &attributes.address;
    QpAttributes {
        state: STATES.get(attributes.state as usize).copied(),
        pkey_index: Some(attributes.pkey_index),
        port: Some(attributes.port),
        access: Some(Access { write: flag(1), read: flag(2), atomic: flag(3) }),
        qkey: Some(attributes.qkey),
        path_mtu: Some(attributes.path_mtu as u8),
        destination: Some(attributes.destination),
        receive_psn: Some(attributes.receive_psn),
        send_psn: Some(attributes.send_psn),
        address: Some(AddressVector {
            gid: from.gid.into(),
            gid_index: from.gid_index,
            hop_limit: from.hop_limit,
            traffic_class: from.traffic_class,
            flow_label: from.flow_label,
            service_level: from.service_level,
        }),
        responder_resources: Some(attributes.responder_resources),
        initiator_depth: Some(attributes.initiator_depth),
        min_rnr_timer: Some(attributes.min_rnr_timer),
        timeout: Some(attributes.timeout),
        retry_count: Some(attributes.retry_count),
        rnr_retry: Some(attributes.rnr_retry),
    }
}

/// `enum ibv_wr_opcode`.
pub fn opcode(operation: Operation, has_immediate: bool) -> c_uint {
    match (operation, has_immediate) {
        (Operation::Write, false) => 0,
        (Operation::Write, true) => 1,
        (Operation::Send, false) => 2,
        (Operation::Send, true) => 3,
        (Operation::Read, _) => 4,
        (Operation::CompareSwap, _) => 5,
        (Operation::FetchAdd, _) => 6,
    }
}

/// `enum ibv_wc_opcode`.
pub fn completed(opcode: c_uint) -> Completed {
    match opcode {
        0 => Completed::Send,
        1 => Completed::Write,
        2 => Completed::Read,
        3 => Completed::CompareSwap,
        4 => Completed::FetchAdd,
        128 => Completed::Receive,
        129 => Completed::ReceiveWrite,
        _ => Completed::Unknown,
    }
}

/// `enum ibv_wc_status`.
pub fn status(status: c_uint) -> Status {
    match status {
        0 => Status::Success,
        1 => Status::LocalLength,
        2 => Status::LocalOperation,
        4 => Status::LocalProtection,
        5 => Status::Flushed,
        7 => Status::BadResponse,
        9 => Status::RemoteInvalidRequest,
        10 => Status::RemoteAccess,
        11 => Status::RemoteOperation,
        12 => Status::RetriesExceeded,
        13 => Status::RnrRetriesExceeded,
        _ => Status::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_have_the_bits_of_the_header() {
        assert_eq!(attributes(&QpAttributes::default()).1, 0);
        let (set, mask) = attributes(&QpAttributes::init(Access::ALL));
        // IBV_QP_STATE, ACCESS_FLAGS, PKEY_INDEX, PORT.
        assert_eq!((mask, set.state, set.access, set.port), (0x39, 1, 15, 1));
        let all = found(&layouts::QpAttributes { state: 3, access: 9, ..Default::default() });
        assert_eq!(
            (all.state, all.access),
            (Some(State::Rts), Some(Access { atomic: true, ..Access::default() }))
        );
        assert_eq!(attributes(&all).1, ALL);
    }
}

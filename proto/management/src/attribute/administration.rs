//! The header of subnet administration, and the names of its attributes. The records are opaque here: the
//! subnet manager makes and reads them. Source: IBTA Vol 1, 15.2.1 and 13.6.2 (RMPP).

use super::{Access, Field};

/// A field, by its first octet and its first bit in it.
pub(crate) const fn field(name: &'static str, octet: usize, bit: usize, bits: usize) -> Field {
    Field { name, first: octet * 8 + bit, bits, access: Access::Write, count: 1, stride: 0 }
}

/// Version of the segment header.
pub const RMPP_VERSION: Field = field("rmpp_version", 24, 0, 8);
/// Kind of segment: 1 data, 2 acknowledgement.
pub const RMPP_TYPE: Field = field("rmpp_type", 25, 0, 8);
/// Response time of the sender.
pub const RMPP_RESP_TIME: Field = field("rmpp_resp_time", 26, 0, 5);
/// Bit 0 Active, bit 1 First, bit 2 Last.
pub const RMPP_FLAGS: Field = field("rmpp_flags", 26, 5, 3);
/// Status of the transfer.
pub const RMPP_STATUS: Field = field("rmpp_status", 27, 0, 8);
/// Segment number.
pub const SEGMENT: Field = field("segment", 28, 0, 32);
/// Octets of the payload, or the new window.
pub const PAYLOAD_LENGTH: Field = field("payload_length", 32, 0, 32);
/// The key of a trusted requester.
pub const SM_KEY: Field = field("sm_key", 36, 0, 64);
/// Length of a record in units of eight octets.
pub const ATTRIBUTE_OFFSET: Field = field("attribute_offset", 44, 0, 16);
/// The components that a query compares.
pub const COMPONENT_MASK: Field = field("component_mask", 48, 0, 64);

/// The header behind the common one, to the first octet of the record.
pub const HEADER: &[Field] = &[
    RMPP_VERSION,
    RMPP_TYPE,
    RMPP_RESP_TIME,
    RMPP_FLAGS,
    RMPP_STATUS,
    SEGMENT,
    PAYLOAD_LENGTH,
    SM_KEY,
    ATTRIBUTE_OFFSET,
    COMPONENT_MASK,
];

/// The name of a record, if it has one here.
pub const fn name(attribute: u16) -> Option<&'static str> {
    Some(match attribute {
        0x0001 => "ClassPortInfo",
        0x0002 => "Notice",
        0x0003 => "InformInfo",
        0x0011 => "NodeRecord",
        0x0012 => "PortInfoRecord",
        0x0013 => "SLtoVLMappingTableRecord",
        0x0014 => "SwitchInfoRecord",
        0x0015 => "LinearForwardingTableRecord",
        0x0017 => "MulticastForwardingTableRecord",
        0x0018 => "SMInfoRecord",
        0x0020 => "LinkRecord",
        0x0030 => "GuidInfoRecord",
        0x0031 => "ServiceRecord",
        0x0033 => "P_KeyTableRecord",
        0x0035 => "PathRecord",
        0x0036 => "VLArbitrationTableRecord",
        0x0038 => "MCMemberRecord",
        0x00f3 => "InformInfoRecord",
        _ => return None,
    })
}

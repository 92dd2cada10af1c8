//! A management datagram as its 256 octets, with the fields of its headers.
//!
//! ```text
//! octets   0        24       32      64                128            192           255
//! common   | header | class-specific header and data …                              |
//! SMP      | header | M_Key  | paths | attribute, 64    | initial path | return path |
//! PM       | header | reserved       | attribute, 192                                |
//! CC       | header | CC_Key | log    | attribute, 192                               |
//! SA       | header | RMPP, SM_Key, … 56 | record, 200                              |
//! ```
//!
//! Source: IBTA Vol 1, 13.4.2 (common), 14.2.1 (SMP), 15.2.1 (SA), 16.1.1 (PM), A10.4.1 (CC).

use crate::attribute::{self, Access, Attribute, Field};
pub use crate::classes::{
    ADMINISTRATION, CONGESTION, PERFORMANCE, SUBNET_DIRECTED, SUBNET_LID_ROUTED,
};
use proto::ids::Lid;
use std::fmt;
use std::ops::Range;

/// Methods. Source: IBTA Vol 1, 13.4.5.
pub mod method {
    /// Asks for an attribute.
    pub const GET: u8 = 0x01;
    /// Changes an attribute.
    pub const SET: u8 = 0x02;
    /// Sends without an answer.
    pub const SEND: u8 = 0x03;
    /// Reports an event.
    pub const TRAP: u8 = 0x05;
    /// Ends the repetition of a trap.
    pub const TRAP_REPRESS: u8 = 0x07;
    /// Answers Get and Set.
    pub const GET_RESPONSE: u8 = 0x81;
}

/// The low octet of a status. Source: IBTA Vol 1, 13.4.7.
pub mod status {
    /// The version of the class is unknown.
    pub const VERSION: u16 = 0x0004;
    /// The method is unknown.
    pub const METHOD: u16 = 0x0008;
    /// The attribute is unknown, or does not have this method.
    pub const ATTRIBUTE: u16 = 0x000c;
    /// A field or the modifier is out of range.
    pub const VALUE: u16 = 0x001c;
}

/// A field of a header, by its first octet and its first bit in it.
const fn field(name: &'static str, octet: usize, bit: usize, bits: usize) -> Field {
    Field { name, first: octet * 8 + bit, bits, access: Access::Write, count: 1, stride: 0 }
}

const fn row(name: &'static str, octet: usize, count: usize) -> Field {
    Field { count, stride: 8, ..field(name, octet, 0, 8) }
}

/// Version of the common header: 1.
pub const BASE_VERSION: Field = field("base_version", 0, 0, 8);
/// Management class.
pub const CLASS: Field = field("mgmt_class", 1, 0, 8);
/// Version of the class.
pub const CLASS_VERSION: Field = field("class_version", 2, 0, 8);
/// Method with the R bit.
pub const METHOD: Field = field("method", 3, 0, 8);
/// Status; with a directed route only its low fifteen bits.
pub const STATUS: Field = field("status", 4, 1, 15);
/// Directed route: the datagram returns.
pub const DIRECTION: Field = field("direction_bit", 4, 0, 1);
/// Directed route: the place on the path.
pub const HOP_POINTER: Field = field("hop_pointer", 6, 0, 8);
/// Directed route: the length of the path.
pub const HOP_COUNT: Field = field("hop_count", 7, 0, 8);
/// Transaction.
pub const TRANSACTION: Field = field("tid", 8, 0, 64);
/// Attribute.
pub const ATTRIBUTE: Field = field("attribute", 16, 0, 16);
/// Attribute modifier.
pub const MODIFIER: Field = field("modifier", 20, 0, 32);
/// SMP: the management key.
pub const M_KEY: Field = field("m_key", 24, 0, 64);
/// CC: the congestion key.
pub const CC_KEY: Field = field("cc_key", 24, 0, 64);
/// Directed route: source LID of the part that is routed by LID, or permissive.
pub const DR_SLID: Field = field("dr_slid", 32, 0, 16);
/// Directed route: destination LID of that part, or permissive.
pub const DR_DLID: Field = field("dr_dlid", 34, 0, 16);
/// Directed route: the ports by which it goes, from index 1 on.
pub const INITIAL_PATH: Field = row("initial_path", 128, 64);
/// Directed route: the ports by which it returns, from index 1 on.
pub const RETURN_PATH: Field = row("return_path", 192, 64);

/// The longest directed route. Source: IBTA Vol 1, 14.2.2.
pub const HOPS_MAX: u8 = 63;

/// The fields that every datagram of the class has in front of its attribute.
pub fn header(class: u8) -> &'static [Field] {
    const COMMON: [Field; 8] =
        [BASE_VERSION, CLASS, CLASS_VERSION, METHOD, STATUS, TRANSACTION, ATTRIBUTE, MODIFIER];
    const fn and<const N: usize, const M: usize>(more: [Field; M]) -> [Field; N] {
        let mut fields = [COMMON[0]; N];
        let mut index = 0;
        while index < N {
            fields[index] = if index < 8 { COMMON[index] } else { more[index - 8] };
            index += 1;
        }
        fields
    }
    const ROUTED: [Field; 9] = and([M_KEY]);
    const DIRECTED: [Field; 14] = and([DIRECTION, HOP_POINTER, HOP_COUNT, M_KEY, DR_SLID, DR_DLID]);
    const KEYED: [Field; 9] = and([CC_KEY]);
    match class {
        SUBNET_LID_ROUTED => &ROUTED,
        SUBNET_DIRECTED => &DIRECTED,
        CONGESTION => &KEYED,
        _ => &COMMON,
    }
}

/// A management datagram.
#[derive(Clone, PartialEq, Eq)]
pub struct Datagram(pub [u8; Datagram::LEN]);

impl fmt::Debug for Datagram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = header(self.class()).iter().map(|field| (field.name, self.get(field)));
        f.debug_map().entries(fields).finish()
    }
}

impl Datagram {
    /// Octets of every datagram.
    pub const LEN: usize = 256;

    /// A request of `class`.
    pub fn request(class: u8, method: u8, attribute: u16, modifier: u32, transaction: u64) -> Self {
        let mut datagram = Datagram([0; Self::LEN]);
        let version = if matches!(class, CONGESTION | ADMINISTRATION) { 2 } else { 1 };
        let fields = [
            (BASE_VERSION, 1),
            (CLASS, class.into()),
            (CLASS_VERSION, version),
            (METHOD, method.into()),
            (ATTRIBUTE, attribute.into()),
            (MODIFIER, modifier.into()),
            (TRANSACTION, transaction),
        ];
        fields.iter().for_each(|(field, value)| field.set(&mut datagram.0, *value));
        datagram
    }

    /// The same datagram along a directed route that leaves each node by the next port of `path`.
    ///
    /// # Panics
    /// If the path has more than 63 hops.
    pub fn along(mut self, path: &[u8]) -> Self {
        assert!(path.len() <= usize::from(HOPS_MAX), "a directed route has at most 63 hops");
        CLASS.set(&mut self.0, SUBNET_DIRECTED.into());
        HOP_COUNT.set(&mut self.0, path.len() as u64);
        DR_SLID.set(&mut self.0, Lid::PERMISSIVE.get().into());
        DR_DLID.set(&mut self.0, Lid::PERMISSIVE.get().into());
        for (index, port) in path.iter().enumerate() {
            INITIAL_PATH.set_at(index + 1, &mut self.0, (*port).into());
        }
        self
    }

    /// The datagram in `octets`, if there are exactly as many as it has.
    pub fn of(octets: &[u8]) -> Option<Datagram> {
        octets.try_into().ok().map(Datagram)
    }

    /// A field of a header.
    pub fn get(&self, field: &Field) -> u64 {
        field.get(&self.0)
    }

    /// Writes a field of a header.
    pub fn set(&mut self, field: &Field, value: u64) {
        field.set(&mut self.0, value);
    }

    /// Management class.
    pub fn class(&self) -> u8 {
        self.0[1]
    }

    /// Method with the R bit.
    pub fn method(&self) -> u8 {
        self.0[3]
    }

    /// Whether this is an answer.
    pub fn is_response(&self) -> bool {
        self.method() & 0x80 != 0
    }

    /// Attribute.
    pub fn attribute(&self) -> u16 {
        self.get(&ATTRIBUTE) as u16
    }

    /// Attribute modifier.
    pub fn modifier(&self) -> u32 {
        self.get(&MODIFIER) as u32
    }

    /// Status, without the direction.
    pub fn status(&self) -> u16 {
        self.get(&STATUS) as u16
    }

    /// Whether it travels along a directed route.
    pub fn is_directed(&self) -> bool {
        self.class() == SUBNET_DIRECTED
    }

    /// Whether it belongs to subnet management, which travels on VL15.
    pub fn is_subnet_management(&self) -> bool {
        matches!(self.class(), SUBNET_LID_ROUTED | SUBNET_DIRECTED)
    }

    /// The table of its attribute, if the agents know it.
    pub fn table(&self) -> Option<&'static Attribute> {
        attribute::find(self.class(), self.attribute())
    }

    /// The octets of the attribute.
    pub fn data(&self) -> &[u8] {
        &self.0[data_range(self.class(), self.attribute())]
    }

    /// The octets of the attribute, to write.
    pub fn data_mut(&mut self) -> &mut [u8] {
        let range = data_range(self.class(), self.attribute());
        &mut self.0[range]
    }

    /// Turns a request into its answer.
    pub fn answer(&mut self, status: u16) {
        self.set(&METHOD, method::GET_RESPONSE.into());
        self.set(&STATUS, status.into());
        if self.is_directed() {
            self.set(&DIRECTION, 1);
        }
    }
}

/// Where the attribute of a datagram lies.
pub fn data_range(class: u8, attribute: u16) -> Range<usize> {
    match (class, attribute) {
        (SUBNET_LID_ROUTED | SUBNET_DIRECTED, _) => 64..128,
        (CONGESTION, 0x0013) => 32..256,
        (CONGESTION | PERFORMANCE, _) => 64..256,
        (ADMINISTRATION, _) => 56..256,
        _ => 24..256,
    }
}

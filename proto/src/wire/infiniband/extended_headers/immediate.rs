//! ImmDt and IETH: four octets that go with a message to the receiving program.

use crate::wire::big_endian::u32_at;
use crate::wire::header::header_pair;

/// Immediate data: four octets whose meaning the two programs know.
///
/// Source: IBTA Vol 1, 9.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImmDt {
    /// The octets, as sent.
    pub data: [u8; 4],
}

/// Invalidate Extended Transport Header.
///
/// Source: IBTA Vol 1, 9.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ieth {
    /// R_Key that the receiver makes invalid.
    pub remote_key: u32,
}

header_pair!(ImmDtView views ImmDt, "ImmDt", 4);
header_pair!(IethView views Ieth, "IETH", 4);

impl ImmDt {
    /// The header's octets.
    pub fn to_octets(&self) -> [u8; ImmDt::LEN] {
        self.data
    }
}

impl<T: AsRef<[u8]>> ImmDtView<T> {
    /// The octets, as sent.
    pub fn data(&self) -> [u8; 4] {
        *self.octets()
    }

    /// All fields.
    pub fn to_owned_header(&self) -> ImmDt {
        ImmDt { data: self.data() }
    }
}

impl Ieth {
    /// The header's octets.
    pub fn to_octets(&self) -> [u8; Ieth::LEN] {
        self.remote_key.to_be_bytes()
    }
}

impl<T: AsRef<[u8]>> IethView<T> {
    /// R_Key.
    pub fn remote_key(&self) -> u32 {
        u32_at(self.octets(), 0..Ieth::LEN)
    }

    /// All fields.
    pub fn to_owned_header(&self) -> Ieth {
        Ieth { remote_key: self.remote_key() }
    }
}

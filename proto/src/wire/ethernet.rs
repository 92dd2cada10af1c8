//! Ethernet on the wire: EtherTypes and CRCs, of RoCE too.

pub mod crc;
pub mod ethertype;

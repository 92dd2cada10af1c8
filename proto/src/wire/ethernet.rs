//! Ethernet on the wire: addresses, tags, MAC control, congestion notification, EtherTypes and CRCs.
//!
//! ```text
//! | destination | source | [tags] | EtherType | payload           | zeros up to 60 octets | FCS |
//! ```
//!
//! A frame of [`crate::frame`] has no FCS, because the cable is not Ethernet; [`crate::frame::Integrity`]
//! replaces it. Captures can have an FCS, which [`crc`] splits off. Payload formats are in [`super::internet`]
//! and [`super::roce`].

pub mod cn_tag;
pub mod cnm;
pub mod congestion_tag;
pub mod crc;
pub mod envelope;
pub mod header;
pub mod mac_control;
pub mod pause;
pub mod pfc;
pub mod plan;
pub mod preface;
pub mod vlan_tag;

pub use super::ethertype;
pub use crate::ids::MacAddress;
pub use cn_tag::CnTag;
pub use cnm::Cnm;
pub use congestion_tag::CongestionTag;
pub use envelope::Envelope;
pub use header::EthernetHeader;
pub use mac_control::MacControl;
pub use pause::Pause;
pub use pfc::Pfc;
pub use preface::Preface;
pub use vlan_tag::VlanTag;

//! EtherTypes of lossless Ethernet, and the protocol and port numbers of RoCEv2.

/// IPv4.
pub const IPV4: u16 = 0x0800;
/// ARP. Source: RFC 826.
pub const ARP: u16 = 0x0806;
/// IPv6.
pub const IPV6: u16 = 0x86dd;
/// Customer VLAN tag (C-TAG). Source: IEEE 802.1Q, 9.6.
pub const VLAN: u16 = 0x8100;
/// Service VLAN tag (S-TAG). Source: IEEE 802.1Q, 9.6.
pub const SERVICE_VLAN: u16 = 0x88a8;
/// MAC control: PAUSE and PFC. Source: IEEE 802.3, 31.
pub const MAC_CONTROL: u16 = 0x8808;
/// Congestion notification message. Source: IEEE 802.1Q, 33.4.
pub const CNM: u16 = 0x22e7;
/// Congestion notification tag. Source: IEEE 802.1Q, 33.2.
pub const CN_TAG: u16 = 0x22e9;
/// RoCEv1: a GRH follows. Source: IBTA Vol 1, annex A16.
pub const ROCE_V1: u16 = 0x8915;
/// This project's cable shim, under an EtherType for local experiments. Source: IEEE 802, 9.2.4.
pub const CABLE_SHIM: u16 = 0x88b5;
/// The default EtherType of this project's frames: IEEE local experimental EtherType 2.
pub const PROJECT: u16 = 0x88b6;

/// The protocol number of UDP in IPv4 and IPv6.
pub const UDP: u8 = 17;
/// UDP's destination port of RoCEv2. Source: IBTA Vol 1, annex A17.
pub const ROCE_V2_PORT: u16 = 4791;

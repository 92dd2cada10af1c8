//! Management classes. Source: IBTA Vol 1, 13.4.4.

/// Subnet management, routed by LID.
pub const SUBNET_LID_ROUTED: u8 = 0x01;
/// Subnet administration.
pub const ADMINISTRATION: u8 = 0x03;
/// Performance management.
pub const PERFORMANCE: u8 = 0x04;
/// Congestion control.
pub const CONGESTION: u8 = 0x21;
/// Subnet management along a directed route.
pub const SUBNET_DIRECTED: u8 = 0x81;

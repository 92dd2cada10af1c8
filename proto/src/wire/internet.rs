//! IP and UDP for RoCEv2: headers, checksums, and ECN marking.

pub mod checksum;
pub mod ecn;
pub mod ipv4;
pub mod ipv6;
pub mod udp;

pub use ecn::mark_congestion;
pub use ipv4::{Ipv4, Ipv4View};
pub use ipv6::{Ipv6, Ipv6View};
pub use udp::{Udp, UdpView};

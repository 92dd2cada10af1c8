//! IP and UDP for RoCEv2: headers, checksums, and ECN marking; ARP and ICMP, by which hosts find each other.

pub mod arp;
pub mod checksum;
pub mod ecn;
pub mod icmp;
pub mod ipv4;
pub mod ipv6;
pub mod udp;

pub use arp::{Arp, ArpOperation};
pub use ecn::mark_congestion;
pub use ipv4::{Ipv4, Ipv4View};
pub use ipv6::{Ipv6, Ipv6View};
pub use udp::{Udp, UdpView};

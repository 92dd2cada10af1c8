//! Management datagrams: attributes as data, and the agents of a node as values. No socket, no clock, no frame
//! queue.
//!
//! ```text
//!   frame ──▶ packet ──▶ endpoint ──▶ directed_route ──▶ agent::Agents ──▶ Change ──▶ the device applies it
//!   frame ◀── packet ◀── endpoint ◀── directed_route ◀──    answer
//! ```
//!
//! A device owns one [`endpoint::Management`]. It hands in packets and what its links do, sends what comes back, and
//! applies each [`agent::Change`] to its ports and tables. Reading order: [`attribute`], [`datagram`],
//! [`directed_route`], [`agent`], [`endpoint`]. Source: IBTA Vol 1, chapters 13, 14 and 16, annex A10.

pub mod agent;
pub mod attribute;
pub mod classes;
pub mod datagram;
pub mod directed_route;
pub mod endpoint;
pub mod packet;
pub mod partitions;
pub mod records;
pub mod resolver;
pub mod segment;

pub use agent::{Agents, Change, ManagementConfig, NodeKind, Outcome};
pub use datagram::Datagram;
pub use endpoint::{Management, Verdict, Way};

//! Replay of recorded frames: they are read from a capture, paced, injected at one port, and traced.
//!
//! The frames arrive at the port as if over its cable, without credits. If the peer at the cable sends frames too,
//! this has limits:
//!
//! * An injected frame occupies and releases buffer like any other; without room it is dropped and counted
//!   (`buffer_overrun`). [`feed`] keeps frames at least their line time apart, so that only slower or busy
//!   outputs can fill the buffer.
//! * An injected frame raises the port's ABR, and so the limit (FCCL) sent to the peer, by blocks that the peer
//!   did not send. The peer's next flow-control packet overwrites ABR with its own FCTBS, and the next one of
//!   the port withdraws the surplus: two refresh intervals later nothing is left. Until then the peer may send
//!   too much, or, beyond half the modulus, assume that it has no credit. A peer that only sends
//!   acknowledgements stays far from both; a peer at full rate may fill the buffer, which is counted.
//!   [`Feed::warning`] warns of this.
//!
//! Source: IBTA Vol 1, 7.9.4 (ABR, FCTBS, FCCL).

pub mod account;
pub mod feed;

pub use account::Account;
pub use feed::{Feed, Pace, technology_of};

//! Recorded frames in a fabric: read from a capture, paced, fed to one port, and traced.
//!
//! The frames arrive at the port as if its cable had brought them, from a peer who never asked for
//! credits. That is sound for a peer who is silent, and has these limits otherwise:
//!
//! * Buffer is taken and given back for a fed frame as for any other, so none leaks; one that finds
//!   no room is dropped and counted (`buffer_overrun`). [`feed`] keeps frames at least their own
//!   line time apart, so that only outputs which are slower or busy can fill the buffer.
//! * A fed frame raises the port's ABR, and with it the limit (FCCL) told to the real peer, by
//!   blocks that the peer never sent. The peer's next flow-control packet overwrites ABR with its
//!   own FCTBS, and our next one takes the surplus back: nothing is left after two refresh
//!   intervals. In that time a peer may send that much more than there is room for, or, past half
//!   the modulus, believe it has no credit. One who only answers, with acknowledgements, comes near
//!   neither; one who sends at full rate on the same line may meet a full buffer, which is counted.
//!   [`Feed::warning`] says so beforehand.
//!
//! Source: IBTA Vol 1, 7.9.4 (ABR, FCTBS, FCCL).

pub mod account;
pub mod feed;

pub use account::Account;
pub use feed::{Feed, FeedError, Pace, technology_of};

//! QOS live: which queue a frame joins ([`maps`]), how queues share a line ([`shares`]), how much may
//! wait ([`room`]), and a whole fabric of it ([`mesh`]).

pub mod maps;
pub mod mesh;
pub mod room;
pub mod shares;

/// The last port of the switches here: the way out.
const OUT: u8 = 4;

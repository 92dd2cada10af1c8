//! A switch among toy neighbours, of InfiniBand and of Ethernet.

mod bench;
mod ethernet;
mod headroom;
mod infiniband;
mod lossless;
mod managed;
mod notifications;
mod refused;
mod settings;
mod storms;

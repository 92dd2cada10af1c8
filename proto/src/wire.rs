//! Octets and their meaning; policy lives elsewhere.
//!
//! Every header is a pair. The *view* (`BthView<T>`) borrows octets and reads one field when asked;
//! the *owned* form (`Bth`) is a plain `Copy` value that `parse` fills and `emit` writes. Both speak
//! the bounded numbers of [`crate::ids`], so what a field cannot hold cannot be handed on. Reserved
//! bits and unknown code points are kept: whatever `parse` accepts, `emit` writes back octet for
//! octet. Only a length or a version that leaves the meaning of the rest open is refused.
//!
//! CRCs are never checked in passing. Which check a receiver owes depends on who it is (a switch the
//! VCRC, an adapter the ICRC too) and on the cable, so [`infiniband::crc`] has a function for each.
//! Setters exist for what a switch may change and for nothing else; they are the whole of
//! [`infiniband::relabel`] and [`internet::ecn`].
//!
//! What may panic: no function here panics on the *octets* it is given to read, whatever they are.
//! `emit` panics when the *buffer* it is given to write is shorter than the header's `LEN`, which is
//! a mistake of the caller and not of the network.
//!
//! ```
//! use proto::frame::{FrameClass, FrameKind};
//! use proto::ids::{Lid, Psn, QueuePairNumber};
//! use proto::wire::classify::classify;
//! use proto::wire::infiniband::packet::{Packet, PacketBuilder};
//! use proto::wire::infiniband::{Bth, Opcode, crc, relabel};
//!
//! let qpn = QueuePairNumber::planned(0, Lid::new(4));
//! let bth = Bth::new(Opcode::UC_SEND_ONLY, qpn, Psn::truncate(7));
//! let builder = PacketBuilder { slid: Lid::new(4), dlid: Lid::new(9), ..PacketBuilder::new(bth) };
//! let mut octets = bytes::BytesMut::new();
//! builder.emit(&mut octets, 5, |payload| payload.copy_from_slice(b"hello"))?;
//!
//! // A switch marks it; the end-to-end CRC does not notice.
//! relabel::set_fecn(&mut octets);
//! crc::refresh_vcrc(&mut octets);
//! crc::verify_vcrc(&octets)?;
//! crc::verify_icrc(&octets)?;
//!
//! let headers = classify(FrameKind::Infiniband, &octets)?;
//! assert_eq!((headers.class, headers.destination.number(), headers.fecn), (FrameClass::Data, 9, true));
//! assert_eq!(Packet::parse(&octets)?.payload, b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The map: [`error`] says why octets were refused; [`classify`] is the one look at the headers that
//! every hop takes; [`infiniband`] holds headers, CRCs, whole packets and link packets; [`ethernet`]
//! holds addresses, tags, PAUSE, PFC and CNM; [`internet`] IP, UDP and the mark of congestion; [`roce`]
//! whole packets over either; [`project`] what no standard has a format for.

pub mod classify;
pub mod error;
pub mod ethernet;
pub(crate) mod header;
pub mod infiniband;
pub mod internet;
pub mod project;
pub mod roce;

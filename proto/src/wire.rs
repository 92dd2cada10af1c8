//! Wire formats: how octets encode headers, packets and checks. This module contains no policy.
//!
//! Every header is a pair. The *view* (`BthView<T>`) borrows octets and reads single fields;
//! the *owned* form (`Bth`) is a plain `Copy` value that `parse` fills and `emit` writes. Both use
//! the bounded numbers of [`crate::ids`], so a value always fits its field. Reserved bits and unknown code
//! points are kept: `emit` reproduces octet for octet what `parse` accepts. `parse` refuses only lengths and
//! versions that make the rest ambiguous.
//!
//! Parsing does not check CRCs. The required checks depend on the receiver (a switch checks the VCRC, an adapter
//! also the ICRC) and on the cable, so [`infiniband::crc`] has a function for each. Setters exist only for the
//! fields that a switch may change, in [`infiniband::relabel`] and [`internet::ecn`].
//!
//! Panics: no function panics on the octets that it reads. `emit` panics if the buffer is shorter than the
//! header's `LEN`, which is an error of the caller and not of the network.
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
//! // A switch sets FECN; the ICRC stays valid.
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
//! Modules: [`error`] has the parse errors; [`classify`] extracts the headers that every hop needs;
//! [`infiniband`] has headers, CRCs, packets and link packets; [`ethernet`] has addresses, tags, PAUSE, PFC and
//! CNM; [`internet`] has IP, UDP and ECN marking; [`roce`] has RoCE packets; [`project`] has formats that no
//! standard defines; [`implied`] makes the octets of a frame that are not in memory.

pub mod classify;
pub mod error;
pub mod ethernet;
pub mod ethertype;
pub(crate) mod header;
pub mod implied;
pub mod infiniband;
pub mod internet;
pub mod project;
pub mod roce;

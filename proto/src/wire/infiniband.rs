//! InfiniBand on the wire: headers, CRCs, data packets and link packets.
//!
//! A data packet, with what each check covers:
//!
//! ```text
//! | LRH | GRH | BTH | extended headers | payload | pad | ICRC | VCRC |
//!       only if LNH = 3  as the opcode states       only with a BTH
//! |------------------- PktLen, in words ---------------------|
//!       |---------- GRH PayLen, from BTH on -----------------|
//! |---- ICRC, variant fields as ones ------------------|
//! |--------------------------- VCRC -------------------------|
//! ```
//!
//! [`packet`] has whole packets and [`transport`] the parts shared with RoCE. The table in [`opcode`] lists the
//! headers of each opcode. [`envelope`] has the checks that every port makes first, and [`relabel`] the changes
//! that a switch may make. Source: IBTA Vol 1, chapters 5, 7, 8 and 9.

pub mod bth;
pub mod connection;
pub mod crc;
pub mod envelope;
pub mod extended_headers;
pub mod flow_control_packet;
pub mod grh;
pub mod lrh;
pub mod mad;
pub mod opcode;
pub mod packet;
pub mod relabel;
pub mod transport;

pub use bth::{Bth, BthView};
pub use crc::refresh_vcrc;
pub use extended_headers::{
    Aeth, AtomicAckEth, AtomicEth, Deth, ExtendedHeaders, Ieth, ImmDt, NakCode, Rdeth, Reth,
    Syndrome, XrcEth,
};
pub use flow_control_packet::{FlowControlOp, FlowControlPacket};
pub use grh::{Grh, GrhView};
pub use lrh::{LinkNextHeader, Lrh, LrhView};
pub use opcode::Opcode;
pub use packet::{Packet, PacketBuilder};
pub use relabel::{set_fecn, set_virtual_lane};
pub use transport::Transport;

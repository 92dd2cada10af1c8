//! AETH: what a responder says about the requests it has seen.

use crate::wire::header::{fields, header};

/// What an acknowledgement says.
///
/// ```text
/// | 0 | 0 0 |  credit count  |  ACK
/// | 0 | 0 1 |     timer      |  RNR NAK
/// | 0 | 1 1 |    NAK code    |  NAK
/// ```
///
/// Source: IBTA Vol 1, 9.7.5.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Syndrome {
    /// All up to this PSN arrived.
    Ack {
        /// Encoded count of receive buffers, five bits; 31 says nothing about them.
        credits: u8,
    },
    /// No receive buffer was posted: try again after a time.
    Rnr {
        /// Encoded waiting time, five bits.
        timer: u8,
    },
    /// A request was refused.
    Nak(NakCode),
    /// A reserved value, kept.
    Unknown(u8),
}

/// Why a request was refused.
///
/// Source: IBTA Vol 1, 9.7.5.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NakCode {
    /// A packet is missing before this one.
    PsnSequence,
    /// The request makes no sense here.
    InvalidRequest,
    /// The key does not open that memory.
    RemoteAccess,
    /// The responder failed.
    RemoteOperational,
    /// The reliable datagram request makes no sense here.
    InvalidRdRequest,
    /// A reserved code, five bits, kept.
    Unknown(u8),
}

impl NakCode {
    /// The code in the low five bits of `code`.
    pub const fn from_bits(code: u8) -> NakCode {
        match code & 0x1f {
            0 => NakCode::PsnSequence,
            1 => NakCode::InvalidRequest,
            2 => NakCode::RemoteAccess,
            3 => NakCode::RemoteOperational,
            4 => NakCode::InvalidRdRequest,
            other => NakCode::Unknown(other),
        }
    }

    /// The five bits.
    pub const fn bits(self) -> u8 {
        match self {
            NakCode::PsnSequence => 0,
            NakCode::InvalidRequest => 1,
            NakCode::RemoteAccess => 2,
            NakCode::RemoteOperational => 3,
            NakCode::InvalidRdRequest => 4,
            NakCode::Unknown(code) => code & 0x1f,
        }
    }
}

fields! { Syndrome: |bits: u8| Syndrome::from_octet(bits), |value| value.octet(); }

impl Syndrome {
    /// An ACK that says nothing about receive buffers, as hardware sends it.
    pub const ACK: Syndrome = Syndrome::Ack { credits: 31 };

    /// What the octet means.
    pub const fn from_octet(octet: u8) -> Syndrome {
        let low = octet & 0x1f;
        match octet >> 5 {
            0b000 => Syndrome::Ack { credits: low },
            0b001 => Syndrome::Rnr { timer: low },
            0b011 => Syndrome::Nak(NakCode::from_bits(low)),
            _ => Syndrome::Unknown(octet),
        }
    }

    /// The octet; bits that do not fit their field are left out.
    pub const fn octet(self) -> u8 {
        match self {
            Syndrome::Ack { credits } => credits & 0x1f,
            Syndrome::Rnr { timer } => 0x20 | timer & 0x1f,
            Syndrome::Nak(code) => 0x60 | code.bits(),
            Syndrome::Unknown(octet) => octet,
        }
    }
}

header! {
    /// ACK Extended Transport Header.
    ///
    /// ```text
    /// |   syndrome    |                      MSN                      |
    /// ```
    ///
    /// Source: IBTA Vol 1, 9.3.
    pub struct Aeth[4] "AETH" {
        /// What the responder says.
        pub syndrome: Syndrome = 0..8,
        /// MSN: requests completed so far, 24 bits, wrapping.
        pub message_sequence_number: u32 = 8..32,
    }
}

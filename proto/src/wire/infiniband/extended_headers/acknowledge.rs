//! AETH: a responder's acknowledgement of requests.

use crate::wire::header::{codes, fields, header};

/// The syndrome of an acknowledgement.
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
    /// ACK: all packets up to this PSN arrived.
    Ack {
        /// Encoded count of receive buffers, five bits; 31 is invalid and carries no count.
        credits: u8,
    },
    /// RNR NAK: no receive buffer was posted; retry after the timer.
    Rnr {
        /// Encoded RNR timer, five bits.
        timer: u8,
    },
    /// NAK: a request was refused.
    Nak(NakCode),
    /// A reserved value, kept.
    Unknown(u8),
}

codes! {
    /// Why a request was refused. A code has five bits.
    ///
    /// Source: IBTA Vol 1, 9.7.5.2.
    pub enum NakCode[5] {
        /// PSN sequence error: a packet before this one is missing.
        PsnSequence = 0,
        /// Invalid request.
        InvalidRequest = 1,
        /// Remote access error: the key does not permit the access.
        RemoteAccess = 2,
        /// Remote operational error at the responder.
        RemoteOperational = 3,
        /// Invalid reliable datagram request.
        InvalidRdRequest = 4,
    }
}

fields! { Syndrome: |bits: u8| Syndrome::from_octet(bits), |value| value.octet(); }

impl Syndrome {
    /// An ACK without a count of receive buffers, as hardware sends it.
    pub const ACK: Syndrome = Syndrome::Ack { credits: 31 };

    /// Decodes the syndrome octet.
    pub const fn from_octet(octet: u8) -> Syndrome {
        let low = octet & 0x1f;
        match octet >> 5 {
            0b000 => Syndrome::Ack { credits: low },
            0b001 => Syndrome::Rnr { timer: low },
            0b011 => Syndrome::Nak(NakCode::from_bits(low)),
            _ => Syndrome::Unknown(octet),
        }
    }

    /// Encodes the syndrome octet. Bits beyond a field are dropped.
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
        /// The syndrome.
        pub syndrome: Syndrome = 0..8,
        /// MSN: number of completed requests, modulo 2^24.
        pub message_sequence_number: u32 = 8..32,
    }
}

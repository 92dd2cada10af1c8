//! The messages that set up and end connections: REQ, MRA, REJ, REP, RTU, DREQ, DREP.
//!
//! Each is a management datagram of 256 octets: a [`Mad`] header, a fixed part that [`messages`] lays out, and
//! private data up to the end. Source: IBTA Vol 1, 12.6; annex A11 (IP addresses in the private data).

pub mod messages;

pub use messages::{
    Disconnect, DisconnectReply, IpAddressing, Path, Ready, Reject, Reply, Request, Wait,
};

use crate::wire::error::{ParseError, Reason};
use crate::wire::infiniband::mad::Mad;

/// Octets behind the MAD header.
const BODY: usize = Mad::DATAGRAM - Mad::LEN;

/// The fixed part of a connection message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// REQ: asks for a connection.
    Request(Request),
    /// MRA: the answer takes longer.
    Wait(Wait),
    /// REJ: refuses, or gives up.
    Reject(Reject),
    /// REP: accepts a request.
    Reply(Reply),
    /// RTU: the connection is ready to use.
    Ready(Ready),
    /// DREQ: asks to end the connection.
    Disconnect(Disconnect),
    /// DREP: confirms the end.
    DisconnectReply(DisconnectReply),
}

/// Calls `$call` with the fixed part, whatever its type.
macro_rules! each {
    ($message:expr, $part:ident => $call:expr) => {
        match $message {
            Message::Request($part) => $call,
            Message::Wait($part) => $call,
            Message::Reject($part) => $call,
            Message::Reply($part) => $call,
            Message::Ready($part) => $call,
            Message::Disconnect($part) => $call,
            Message::DisconnectReply($part) => $call,
        }
    };
}

impl Message {
    /// The attribute ID. Source: IBTA Vol 1, 16.7.2.
    pub const fn attribute(&self) -> u16 {
        match self {
            Message::Request(_) => 0x10,
            Message::Wait(_) => 0x11,
            Message::Reject(_) => 0x12,
            Message::Reply(_) => 0x13,
            Message::Ready(_) => 0x14,
            Message::Disconnect(_) => 0x15,
            Message::DisconnectReply(_) => 0x16,
        }
    }

    /// Octets of private data behind the fixed part.
    pub const fn private_room(&self) -> usize {
        BODY - match self {
            Message::Request(_) => Request::LEN,
            Message::Wait(_) => Wait::LEN,
            Message::Reject(_) => Reject::LEN,
            Message::Reply(_) => Reply::LEN,
            Message::Ready(_) => Ready::LEN,
            Message::Disconnect(_) => Disconnect::LEN,
            Message::DisconnectReply(_) => DisconnectReply::LEN,
        }
    }

    /// Reads a connection message and its private data from a management datagram.
    ///
    /// # Errors
    /// If the octets are fewer than 256, or if class, version, method or attribute are not those of a message
    /// listed here.
    pub fn parse(octets: &[u8]) -> Result<(Mad, Message, &[u8]), ParseError> {
        let mad = Mad::parse(octets)?;
        let Some(body) = octets.get(Mad::LEN..Mad::DATAGRAM) else {
            return Err(ParseError::short(Mad::LAYER, 0, Mad::DATAGRAM, octets.len()));
        };
        let kind = (mad.base_version, mad.class, mad.class_version, mad.response, mad.method);
        if kind != (1, Mad::COMMUNICATION_MANAGEMENT, 2, false, Mad::SEND) {
            return Err(ParseError::new(
                Mad::LAYER,
                0,
                Reason::Illegal("not a connection message"),
            ));
        }
        let within = |error: ParseError| error.within(Mad::LEN);
        let message = match mad.attribute {
            0x10 => Message::Request(Request::parse(body).map_err(within)?),
            0x11 => Message::Wait(Wait::parse(body).map_err(within)?),
            0x12 => Message::Reject(Reject::parse(body).map_err(within)?),
            0x13 => Message::Reply(Reply::parse(body).map_err(within)?),
            0x14 => Message::Ready(Ready::parse(body).map_err(within)?),
            0x15 => Message::Disconnect(Disconnect::parse(body).map_err(within)?),
            0x16 => Message::DisconnectReply(DisconnectReply::parse(body).map_err(within)?),
            _ => {
                let reason = Reason::Illegal("an unknown connection message");
                return Err(ParseError::new(Mad::LAYER, 16, reason));
            }
        };
        Ok((mad, message, &body[BODY - message.private_room()..]))
    }

    /// The datagram with this message. Private data beyond the room are cut off; missing ones are zero.
    pub fn to_octets(&self, transaction: u64, private: &[u8]) -> [u8; Mad::DATAGRAM] {
        self.under(&Mad::connection(self.attribute(), transaction), private)
    }

    /// The datagram with this message under the header `mad`.
    pub fn under(&self, mad: &Mad, private: &[u8]) -> [u8; Mad::DATAGRAM] {
        let mut octets = [0; Mad::DATAGRAM];
        mad.emit(&mut octets);
        each!(self, part => part.emit(&mut octets[Mad::LEN..]));
        let room = self.private_room();
        let private = &private[..private.len().min(room)];
        let at = Mad::DATAGRAM - room;
        octets[at..at + private.len()].copy_from_slice(private);
        octets
    }
}

/// Reasons of a REJ. Source: IBTA Vol 1, 12.6.7.2.
pub mod reason {
    /// No queue pair is available.
    pub const NO_QUEUE_PAIR: u16 = 1;
    /// No resources are available.
    pub const NO_RESOURCES: u16 = 3;
    /// The sender of the REJ has waited too long.
    pub const TIMEOUT: u16 = 4;
    /// The identifier of the message is unknown.
    pub const INVALID_ID: u16 = 6;
    /// Nobody listens at the service ID.
    pub const INVALID_SERVICE: u16 = 8;
    /// The transport service type is not offered.
    pub const INVALID_TRANSPORT: u16 = 9;
    /// The queue pair of the request already has a connection.
    pub const STALE_CONNECTION: u16 = 10;
    /// A GID is not one of the receiver's.
    pub const INVALID_GID: u16 = 12;
    /// The path MTU is not offered.
    pub const INVALID_MTU: u16 = 26;
    /// The program behind the service refuses; its reason is in the private data.
    pub const CONSUMER: u16 = 28;
}

#[cfg(test)]
mod tests;

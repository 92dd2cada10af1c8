//! The messages of libumad2sim: 80 octets on the control sockets, 288 on the data sockets.
//!
//! ```text
//! control, host byte order:   magic 4 | client 4 | type 4 | length 4 | data 64
//! data, network byte order:   DLID 2, 0 2 | SLID 2, 0 2 | DQP 4 | SQP 4 | status 4 | 0 4 | length 8 | datagram 256
//! ```
//!
//! Source: linux-rdma/ibsim, include/ibsim.h and umad2sim/sim_client.c.

use management::Datagram;

/// The mark of a control message.
const MAGIC: u32 = 0xdead_beef;
/// Octets of data in a control message.
pub const CONTROL_DATA: usize = 64;
/// Octets of a data message in front of the datagram.
const HEAD: usize = 32;

/// Types of control messages.
pub mod kind {
    /// In an answer: refused.
    pub const REFUSED: u32 = 0;
    pub const CONNECT: u32 = 1;
    pub const DISCONNECT: u32 = 2;
    pub const PORT: u32 = 3;
    pub const VENDOR: u32 = 4;
    pub const GID: u32 = 5;
    pub const GUID: u32 = 6;
    pub const NODE_INFO: u32 = 7;
    pub const PORT_INFO: u32 = 8;
    pub const SET_MANAGER: u32 = 9;
    pub const P_KEYS: u32 = 10;
}

/// A request on the control socket, or its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// The number of the client.
    pub client: u32,
    /// One of [`kind`].
    pub kind: u32,
    /// Octets of data in use.
    pub length: u32,
    /// Data.
    pub data: [u8; CONTROL_DATA],
}

impl Control {
    /// Octets of a control message.
    pub const LEN: usize = 16 + CONTROL_DATA;

    /// The message in `octets`; `None` if they are none.
    pub fn parse(octets: &[u8]) -> Option<Control> {
        let (head, data) = octets.split_first_chunk::<16>()?;
        let word =
            |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let data = data.try_into().ok()?;
        (word(0) == MAGIC).then(|| Control {
            client: word(4),
            kind: word(8),
            length: word(12),
            data,
        })
    }

    /// Its octets.
    pub fn emit(&self) -> Vec<u8> {
        let words = [MAGIC, self.client, self.kind, self.length].map(u32::to_ne_bytes);
        [words.as_flattened(), &self.data].concat()
    }

    /// The same message with these data.
    pub fn with(mut self, data: &[u8]) -> Control {
        self.data[..data.len()].copy_from_slice(data);
        self
    }

    /// The answer that the request is refused.
    pub fn refused(self) -> Control {
        Control { kind: kind::REFUSED, ..self }
    }

    /// The host-order number in the data at this octet.
    pub fn number(&self, at: usize) -> u32 {
        u32::from_ne_bytes([self.data[at], self.data[at + 1], self.data[at + 2], self.data[at + 3]])
    }

    /// CONNECT: the name of the node in the data, at most 31 octets.
    pub fn node(&self) -> String {
        let name = &self.data[12..43];
        let end = name.iter().position(|octet| *octet == 0).unwrap_or(name.len());
        String::from_utf8_lossy(&name[..end]).into_owned()
    }
}

/// A datagram with its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data {
    /// LID of the receiver.
    pub destination: u16,
    /// LID of the sender; 0 stands for the client's own.
    pub source: u16,
    /// Queue pair of the receiver.
    pub pair: u32,
    /// Queue pair of the sender.
    pub source_pair: u32,
    /// Why a request comes back, as errno; 0 otherwise.
    pub status: u32,
    /// Octets of the datagram in use.
    pub length: u64,
    /// The datagram.
    pub datagram: Datagram,
}

impl Data {
    /// Octets of a data message.
    pub const LEN: usize = HEAD + Datagram::LEN;

    /// The message in `octets`; `None` if they are none.
    pub fn parse(octets: &[u8]) -> Option<Data> {
        let (head, datagram) = octets.split_first_chunk::<HEAD>()?;
        let word =
            |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let lid = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        let length = u64::from(word(24)) << 32 | u64::from(word(28));
        let is_valid = (24..=Datagram::LEN as u64).contains(&length);
        let datagram = Datagram::of(datagram).filter(|_| is_valid)?;
        Some(Data {
            destination: lid(0),
            source: lid(4),
            pair: word(8),
            source_pair: word(12),
            status: word(16),
            length,
            datagram,
        })
    }

    /// Its octets.
    pub fn emit(&self) -> Vec<u8> {
        let mut octets = Vec::with_capacity(Data::LEN);
        for lid in [self.destination, self.source] {
            octets.extend(lid.to_be_bytes());
            octets.extend([0; 2]);
        }
        for word in [self.pair, self.source_pair, self.status, 0] {
            octets.extend(word.to_be_bytes());
        }
        octets.extend(self.length.to_be_bytes());
        octets.extend(self.datagram.0);
        octets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_messages_round_trip_and_others_are_none() {
        let mut data = [0; CONTROL_DATA];
        data[..4].copy_from_slice(&77u32.to_ne_bytes());
        data[12..15].copy_from_slice(b"h01");
        let message = Control { client: 0, kind: kind::CONNECT, length: 44, data };
        let octets = message.emit();
        assert_eq!(octets.len(), Control::LEN);
        let parsed = Control::parse(&octets).expect("a control message");
        assert_eq!((parsed.node().as_str(), parsed.number(0)), ("h01", 77));
        assert_eq!(parsed, message);
        assert_eq!(Control::parse(&octets[1..]), None);
        assert_eq!(Control::parse(&[&octets[..], &[0]].concat()), None);
        assert_eq!(Control::parse(&[0; Control::LEN]), None);
    }

    #[test]
    fn data_messages_round_trip_and_impossible_lengths_are_none() {
        let datagram = Datagram::request(1, 1, 0x11, 0, 5);
        let message = Data {
            destination: 0xffff,
            source: 3,
            pair: 1,
            source_pair: 2,
            status: 110,
            length: 256,
            datagram,
        };
        let octets = message.emit();
        assert_eq!((octets.len(), &octets[..6]), (288, &[0xff, 0xff, 0, 0, 0, 3][..]));
        assert_eq!(Data::parse(&octets), Some(message.clone()));
        assert_eq!(Data::parse(&octets[..284]), None);
        for length in [0, 23, 257, u64::MAX] {
            assert_eq!(Data::parse(&Data { length, ..message.clone() }.emit()), None);
        }
    }
}

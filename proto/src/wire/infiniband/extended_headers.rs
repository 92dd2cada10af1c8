//! The extended headers between BTH and payload: their order, and sets of them.
//!
//! The opcode determines a packet's extended headers ([`super::opcode`]). Their order is always that of the list
//! below. Source: IBTA Vol 1, chapter 5 and 9.3.

pub mod acknowledge;
pub mod layouts;

pub use acknowledge::{Aeth, NakCode, Syndrome};
pub use layouts::{AtomicAckEth, AtomicEth, Deth, Ieth, ImmDt, Rdeth, Reth, XrcEth};

use crate::wire::error::ParseError;

/// A set of extended headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HeaderSet {
    members: u16,
    octets: u8,
}

impl HeaderSet {
    /// No extended headers.
    pub const EMPTY: HeaderSet = HeaderSet { members: 0, octets: 0 };

    /// This set and `header`.
    pub const fn with(self, header: ExtendedHeader) -> HeaderSet {
        if self.contains(header) {
            return self;
        }
        let octets = self.octets + header.octets() as u8;
        HeaderSet { members: self.members | 1 << header as u16, octets }
    }

    /// True if `header` is among them.
    pub const fn contains(self, header: ExtendedHeader) -> bool {
        self.members & 1 << header as u16 != 0
    }

    /// Total length, in octets.
    pub const fn octets(self) -> usize {
        self.octets as usize
    }
}

macro_rules! extended_headers {
    ($($(#[$doc:meta])* $field:ident: $header:ident;)*) => {
        /// The extended headers by name, in wire order.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum ExtendedHeader { $($(#[$doc])* $header,)* }

        impl ExtendedHeader {
            /// All extended headers, in wire order.
            pub const ALL: &'static [ExtendedHeader] = &[$(ExtendedHeader::$header,)*];

            /// Length on the wire, in octets.
            pub const fn octets(self) -> usize {
                match self { $(ExtendedHeader::$header => $header::LEN,)* }
            }
        }

        /// The extended headers of one packet.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct ExtendedHeaders { $($(#[$doc])* pub $field: Option<$header>,)* }

        impl ExtendedHeaders {
            /// No extended headers.
            pub const NONE: ExtendedHeaders = ExtendedHeaders { $($field: None,)* };

            /// Reads the headers of `set` from the front of `octets`, which begin at `offset` in
            /// the frame.
            ///
            /// # Errors
            /// If the octets end within a header; the error names it.
            pub fn parse(
                set: HeaderSet,
                octets: &[u8],
                offset: usize,
            ) -> Result<ExtendedHeaders, ParseError> {
                let mut headers = ExtendedHeaders::NONE;
                let mut at = 0;
                $(
                    if set.contains(ExtendedHeader::$header) {
                        let header = $header::parse(&octets[at..])
                            .map_err(|error| error.within(offset + at))?;
                        headers.$field = Some(header);
                        at += $header::LEN;
                    }
                )*
                debug_assert_eq!(at, set.octets());
                Ok(headers)
            }

            /// Writes the present headers to the front of `octets`; returns their length in octets.
            ///
            /// # Panics
            /// If `octets` are too few.
            pub fn emit(&self, octets: &mut [u8]) -> usize {
                let mut at = 0;
                $(
                    if let Some(header) = &self.$field {
                        header.emit(&mut octets[at..]);
                        at += $header::LEN;
                    }
                )*
                at
            }

            /// The set of present headers.
            pub fn set(&self) -> HeaderSet {
                let mut set = HeaderSet::EMPTY;
                $(
                    if self.$field.is_some() {
                        set = set.with(ExtendedHeader::$header);
                    }
                )*
                set
            }
        }
    };
}

extended_headers! {
    /// Reliable datagram.
    rdeth: Rdeth;
    /// Extended reliable connection.
    xrceth: XrcEth;
    /// Datagram.
    deth: Deth;
    /// Remote memory access.
    reth: Reth;
    /// Atomic operation.
    atomic_eth: AtomicEth;
    /// Acknowledgement.
    aeth: Aeth;
    /// Result of an atomic operation.
    atomic_ack_eth: AtomicAckEth;
    /// Immediate data.
    immdt: ImmDt;
    /// A memory key to invalidate.
    ieth: Ieth;
}

#[cfg(test)]
mod tests;

//! Opcodes: a table with service, operation, position and headers of each opcode.

use crate::wire::header::fields;
use crate::wire::infiniband::extended_headers::{ExtendedHeader, HeaderSet};
use std::fmt;

/// The first octet of a BTH. Unknown values are kept; [`Opcode::row`] is `None` for them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Opcode(pub u8);

fields! { Opcode: |bits: u8| Opcode(bits), |value| value.0; }

/// The service an opcode belongs to, its upper three bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Reliable connection.
    Rc,
    /// Unreliable connection.
    Uc,
    /// Reliable datagram.
    Rd,
    /// Unreliable datagram.
    Ud,
    /// Congestion notification, a separate class.
    Cnp,
    /// Extended reliable connection.
    Xrc,
}

/// The operation of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// SEND: part of a message to a posted receive buffer.
    Send,
    /// RDMA WRITE: part of a message to remote memory.
    Write,
    /// RDMA READ request.
    ReadRequest,
    /// Part of an RDMA READ response.
    ReadResponse,
    /// Positive or negative acknowledgement.
    Acknowledge,
    /// Acknowledgement of an atomic operation, with the original value.
    AtomicAcknowledge,
    /// Atomic compare and swap.
    CompareSwap,
    /// Atomic fetch and add.
    FetchAdd,
    /// Resynchronises a reliable datagram channel.
    Resync,
    /// Congestion notification to a sender.
    Congestion,
}

/// The position of a packet in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Position {
    /// The first of several packets.
    First,
    /// Neither first nor last.
    Middle,
    /// The last of several packets.
    Last,
    /// The only packet of its message.
    Only,
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpcodeRow {
    /// The standard's name ("RC RDMA WRITE Only").
    pub name: &'static str,
    /// The transport service.
    pub transport: Transport,
    /// The operation.
    pub operation: Operation,
    /// The position in the message.
    pub position: Position,
    /// The extended headers between BTH and payload.
    pub extended_headers: HeaderSet,
}

impl OpcodeRow {
    /// True if a payload may follow the headers.
    pub const fn carries_payload(&self) -> bool {
        matches!(
            self.operation,
            Operation::Send | Operation::Write | Operation::ReadResponse | Operation::Congestion
        )
    }

    /// True for acknowledgements, which a responder sends without payload.
    pub const fn is_acknowledgement(&self) -> bool {
        matches!(self.operation, Operation::Acknowledge | Operation::AtomicAcknowledge)
    }

    /// True if a message begins with this packet.
    pub const fn begins_message(&self) -> bool {
        matches!(self.position, Position::First | Position::Only)
    }

    /// True if a message ends with this packet.
    pub const fn ends_message(&self) -> bool {
        matches!(self.position, Position::Last | Position::Only)
    }
}

macro_rules! opcodes {
    ($($constant:ident = $code:literal $name:literal
        $transport:ident $operation:ident $position:ident [$($header:ident)*];)*) => {
        impl Opcode {
            $(
                #[doc = concat!($name, ".")]
                pub const $constant: Opcode = Opcode($code);
            )*

            /// Every opcode of the table, in table order.
            pub const ALL: &'static [Opcode] = &[$(Opcode::$constant,)*];
        }

        static TABLE: [Option<OpcodeRow>; 256] = {
            let mut table = [None; 256];
            $(
                table[$code] = Some(OpcodeRow {
                    name: $name,
                    transport: Transport::$transport,
                    operation: Operation::$operation,
                    position: Position::$position,
                    extended_headers: HeaderSet::EMPTY$(.with(ExtendedHeader::$header))*,
                });
            )*
            table
        };
    };
}

// Source: IBTA Vol 1, table of opcodes in 9.2.1; 0x80 from annex A10, 0x81 from annex A17.9.3, XRC
// from annex A14. The two congestion opcodes differ on purpose: 0x80 is native, 0x81 is RoCEv2.
opcodes! {
    RC_SEND_FIRST                 = 0x00 "RC SEND First"                           Rc Send First [];
    RC_SEND_MIDDLE                = 0x01 "RC SEND Middle"                          Rc Send Middle [];
    RC_SEND_LAST                  = 0x02 "RC SEND Last"                            Rc Send Last [];
    RC_SEND_LAST_IMMEDIATE        = 0x03 "RC SEND Last with Immediate"             Rc Send Last [ImmDt];
    RC_SEND_ONLY                  = 0x04 "RC SEND Only"                            Rc Send Only [];
    RC_SEND_ONLY_IMMEDIATE        = 0x05 "RC SEND Only with Immediate"             Rc Send Only [ImmDt];
    RC_WRITE_FIRST                = 0x06 "RC RDMA WRITE First"                     Rc Write First [Reth];
    RC_WRITE_MIDDLE               = 0x07 "RC RDMA WRITE Middle"                    Rc Write Middle [];
    RC_WRITE_LAST                 = 0x08 "RC RDMA WRITE Last"                      Rc Write Last [];
    RC_WRITE_LAST_IMMEDIATE       = 0x09 "RC RDMA WRITE Last with Immediate"       Rc Write Last [ImmDt];
    RC_WRITE_ONLY                 = 0x0a "RC RDMA WRITE Only"                      Rc Write Only [Reth];
    RC_WRITE_ONLY_IMMEDIATE       = 0x0b "RC RDMA WRITE Only with Immediate"       Rc Write Only [Reth ImmDt];
    RC_READ_REQUEST               = 0x0c "RC RDMA READ Request"                    Rc ReadRequest Only [Reth];
    RC_READ_RESPONSE_FIRST        = 0x0d "RC RDMA READ response First"             Rc ReadResponse First [Aeth];
    RC_READ_RESPONSE_MIDDLE       = 0x0e "RC RDMA READ response Middle"            Rc ReadResponse Middle [];
    RC_READ_RESPONSE_LAST         = 0x0f "RC RDMA READ response Last"              Rc ReadResponse Last [Aeth];
    RC_READ_RESPONSE_ONLY         = 0x10 "RC RDMA READ response Only"              Rc ReadResponse Only [Aeth];
    RC_ACKNOWLEDGE                = 0x11 "RC Acknowledge"                          Rc Acknowledge Only [Aeth];
    RC_ATOMIC_ACKNOWLEDGE         = 0x12 "RC ATOMIC Acknowledge"                   Rc AtomicAcknowledge Only [Aeth AtomicAckEth];
    RC_COMPARE_SWAP               = 0x13 "RC CmpSwap"                              Rc CompareSwap Only [AtomicEth];
    RC_FETCH_ADD                  = 0x14 "RC FetchAdd"                             Rc FetchAdd Only [AtomicEth];
    RC_SEND_LAST_INVALIDATE       = 0x16 "RC SEND Last with Invalidate"            Rc Send Last [Ieth];
    RC_SEND_ONLY_INVALIDATE       = 0x17 "RC SEND Only with Invalidate"            Rc Send Only [Ieth];

    UC_SEND_FIRST                 = 0x20 "UC SEND First"                           Uc Send First [];
    UC_SEND_MIDDLE                = 0x21 "UC SEND Middle"                          Uc Send Middle [];
    UC_SEND_LAST                  = 0x22 "UC SEND Last"                            Uc Send Last [];
    UC_SEND_LAST_IMMEDIATE        = 0x23 "UC SEND Last with Immediate"             Uc Send Last [ImmDt];
    UC_SEND_ONLY                  = 0x24 "UC SEND Only"                            Uc Send Only [];
    UC_SEND_ONLY_IMMEDIATE        = 0x25 "UC SEND Only with Immediate"             Uc Send Only [ImmDt];
    UC_WRITE_FIRST                = 0x26 "UC RDMA WRITE First"                     Uc Write First [Reth];
    UC_WRITE_MIDDLE               = 0x27 "UC RDMA WRITE Middle"                    Uc Write Middle [];
    UC_WRITE_LAST                 = 0x28 "UC RDMA WRITE Last"                      Uc Write Last [];
    UC_WRITE_LAST_IMMEDIATE       = 0x29 "UC RDMA WRITE Last with Immediate"       Uc Write Last [ImmDt];
    UC_WRITE_ONLY                 = 0x2a "UC RDMA WRITE Only"                      Uc Write Only [Reth];
    UC_WRITE_ONLY_IMMEDIATE       = 0x2b "UC RDMA WRITE Only with Immediate"       Uc Write Only [Reth ImmDt];

    RD_SEND_FIRST                 = 0x40 "RD SEND First"                           Rd Send First [Rdeth Deth];
    RD_SEND_MIDDLE                = 0x41 "RD SEND Middle"                          Rd Send Middle [Rdeth Deth];
    RD_SEND_LAST                  = 0x42 "RD SEND Last"                            Rd Send Last [Rdeth Deth];
    RD_SEND_LAST_IMMEDIATE        = 0x43 "RD SEND Last with Immediate"             Rd Send Last [Rdeth Deth ImmDt];
    RD_SEND_ONLY                  = 0x44 "RD SEND Only"                            Rd Send Only [Rdeth Deth];
    RD_SEND_ONLY_IMMEDIATE        = 0x45 "RD SEND Only with Immediate"             Rd Send Only [Rdeth Deth ImmDt];
    RD_WRITE_FIRST                = 0x46 "RD RDMA WRITE First"                     Rd Write First [Rdeth Deth Reth];
    RD_WRITE_MIDDLE               = 0x47 "RD RDMA WRITE Middle"                    Rd Write Middle [Rdeth Deth];
    RD_WRITE_LAST                 = 0x48 "RD RDMA WRITE Last"                      Rd Write Last [Rdeth Deth];
    RD_WRITE_LAST_IMMEDIATE       = 0x49 "RD RDMA WRITE Last with Immediate"       Rd Write Last [Rdeth Deth ImmDt];
    RD_WRITE_ONLY                 = 0x4a "RD RDMA WRITE Only"                      Rd Write Only [Rdeth Deth Reth];
    RD_WRITE_ONLY_IMMEDIATE       = 0x4b "RD RDMA WRITE Only with Immediate"       Rd Write Only [Rdeth Deth Reth ImmDt];
    RD_READ_REQUEST               = 0x4c "RD RDMA READ Request"                    Rd ReadRequest Only [Rdeth Deth Reth];
    RD_READ_RESPONSE_FIRST        = 0x4d "RD RDMA READ response First"             Rd ReadResponse First [Rdeth Aeth];
    RD_READ_RESPONSE_MIDDLE       = 0x4e "RD RDMA READ response Middle"            Rd ReadResponse Middle [Rdeth];
    RD_READ_RESPONSE_LAST         = 0x4f "RD RDMA READ response Last"              Rd ReadResponse Last [Rdeth Aeth];
    RD_READ_RESPONSE_ONLY         = 0x50 "RD RDMA READ response Only"              Rd ReadResponse Only [Rdeth Aeth];
    RD_ACKNOWLEDGE                = 0x51 "RD Acknowledge"                          Rd Acknowledge Only [Rdeth Aeth];
    RD_ATOMIC_ACKNOWLEDGE         = 0x52 "RD ATOMIC Acknowledge"                   Rd AtomicAcknowledge Only [Rdeth Aeth AtomicAckEth];
    RD_COMPARE_SWAP               = 0x53 "RD CmpSwap"                              Rd CompareSwap Only [Rdeth Deth AtomicEth];
    RD_FETCH_ADD                  = 0x54 "RD FetchAdd"                             Rd FetchAdd Only [Rdeth Deth AtomicEth];
    RD_RESYNC                     = 0x55 "RD RESYNC"                               Rd Resync Only [Rdeth Deth];

    UD_SEND_ONLY                  = 0x64 "UD SEND Only"                            Ud Send Only [Deth];
    UD_SEND_ONLY_IMMEDIATE        = 0x65 "UD SEND Only with Immediate"             Ud Send Only [Deth ImmDt];

    CNP                           = 0x80 "CNP"                                     Cnp Congestion Only [];
    ROCEV2_CNP                    = 0x81 "RoCEv2 CNP"                              Cnp Congestion Only [];

    XRC_SEND_FIRST                = 0xa0 "XRC SEND First"                          Xrc Send First [XrcEth];
    XRC_SEND_MIDDLE               = 0xa1 "XRC SEND Middle"                         Xrc Send Middle [XrcEth];
    XRC_SEND_LAST                 = 0xa2 "XRC SEND Last"                           Xrc Send Last [XrcEth];
    XRC_SEND_LAST_IMMEDIATE       = 0xa3 "XRC SEND Last with Immediate"            Xrc Send Last [XrcEth ImmDt];
    XRC_SEND_ONLY                 = 0xa4 "XRC SEND Only"                           Xrc Send Only [XrcEth];
    XRC_SEND_ONLY_IMMEDIATE       = 0xa5 "XRC SEND Only with Immediate"            Xrc Send Only [XrcEth ImmDt];
    XRC_WRITE_FIRST               = 0xa6 "XRC RDMA WRITE First"                    Xrc Write First [XrcEth Reth];
    XRC_WRITE_MIDDLE              = 0xa7 "XRC RDMA WRITE Middle"                   Xrc Write Middle [XrcEth];
    XRC_WRITE_LAST                = 0xa8 "XRC RDMA WRITE Last"                     Xrc Write Last [XrcEth];
    XRC_WRITE_LAST_IMMEDIATE      = 0xa9 "XRC RDMA WRITE Last with Immediate"      Xrc Write Last [XrcEth ImmDt];
    XRC_WRITE_ONLY                = 0xaa "XRC RDMA WRITE Only"                     Xrc Write Only [XrcEth Reth];
    XRC_WRITE_ONLY_IMMEDIATE      = 0xab "XRC RDMA WRITE Only with Immediate"      Xrc Write Only [XrcEth Reth ImmDt];
    XRC_READ_REQUEST              = 0xac "XRC RDMA READ Request"                   Xrc ReadRequest Only [XrcEth Reth];
    XRC_READ_RESPONSE_FIRST       = 0xad "XRC RDMA READ response First"            Xrc ReadResponse First [Aeth];
    XRC_READ_RESPONSE_MIDDLE      = 0xae "XRC RDMA READ response Middle"           Xrc ReadResponse Middle [];
    XRC_READ_RESPONSE_LAST        = 0xaf "XRC RDMA READ response Last"             Xrc ReadResponse Last [Aeth];
    XRC_READ_RESPONSE_ONLY        = 0xb0 "XRC RDMA READ response Only"             Xrc ReadResponse Only [Aeth];
    XRC_ACKNOWLEDGE               = 0xb1 "XRC Acknowledge"                         Xrc Acknowledge Only [Aeth];
    XRC_ATOMIC_ACKNOWLEDGE        = 0xb2 "XRC ATOMIC Acknowledge"                  Xrc AtomicAcknowledge Only [Aeth AtomicAckEth];
    XRC_COMPARE_SWAP              = 0xb3 "XRC CmpSwap"                             Xrc CompareSwap Only [XrcEth AtomicEth];
    XRC_FETCH_ADD                 = 0xb4 "XRC FetchAdd"                            Xrc FetchAdd Only [XrcEth AtomicEth];
    XRC_SEND_LAST_INVALIDATE      = 0xb6 "XRC SEND Last with Invalidate"           Xrc Send Last [XrcEth Ieth];
    XRC_SEND_ONLY_INVALIDATE      = 0xb7 "XRC SEND Only with Invalidate"           Xrc Send Only [XrcEth Ieth];
}

impl Opcode {
    /// The row of the table; `None` for undefined opcodes.
    pub fn row(self) -> Option<&'static OpcodeRow> {
        TABLE[self.0 as usize].as_ref()
    }

    /// The standard's name, or "unknown".
    pub fn name(self) -> &'static str {
        self.row().map_or("unknown", |row| row.name)
    }

    /// The extended headers between BTH and payload; none for an unknown opcode.
    pub fn extended_headers(self) -> HeaderSet {
        self.row().map_or(HeaderSet::EMPTY, |row| row.extended_headers)
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.row() {
            Some(row) => f.pad(row.name),
            None => write!(f, "unknown ({:#04x})", self.0),
        }
    }
}

impl fmt::Debug for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Opcode({:#04x} {})", self.0, self.name())
    }
}

#[cfg(test)]
mod tests;

//! ImmDt and IETH: four octets that go with a message to the receiving program.

use crate::wire::header::header;

header! {
    /// Immediate data: four octets whose meaning the two programs know.
    ///
    /// Source: IBTA Vol 1, 9.3.
    pub struct ImmDt[4] "ImmDt" {
        /// The octets, as sent.
        pub data: [u8; 4] = 0..32,
    }
}

header! {
    /// Invalidate Extended Transport Header.
    ///
    /// Source: IBTA Vol 1, 9.3.
    pub struct Ieth[4] "IETH" {
        /// R_Key that the receiver makes invalid.
        pub remote_key: u32 = 0..32,
    }
}

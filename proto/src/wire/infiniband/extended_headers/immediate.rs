//! ImmDt and IETH: four octets of a message that reach the receiving verbs consumer.

use crate::wire::header::header;

header! {
    /// Immediate data: four octets that the verbs consumer defines.
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

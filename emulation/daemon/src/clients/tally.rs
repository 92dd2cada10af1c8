//! What the server for clients counts.

use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! tally {
    ($($(#[$doc:meta])* $name:ident)*) => {
        /// Counts of the server, which another thread reads.
        #[derive(Debug, Default)]
        pub(crate) struct Tally { $(pub $name: Count,)* }

        /// The counts of programs that manage the fabric from beside devices of a daemon.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct ClientCounts { $($(#[$doc])* pub $name: u64,)* }

        impl Tally {
            /// The counts of this moment.
            pub fn read(&self) -> ClientCounts {
                ClientCounts { $($name: self.$name.0.load(Ordering::Relaxed),)* }
            }
        }

        impl ClientCounts {
            /// Each count with its name.
            pub fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

tally! {
    /// Clients that have connected.
    connected
    /// Clients that have disconnected, died or come again.
    left
    /// Messages of other users, and requests that cannot be granted.
    refused
    /// Messages that break the protocol, or come from a socket that is not that of a client.
    malformed
    /// Datagrams that clients have sent.
    sent
    /// Datagrams that were delivered to clients.
    delivered
    /// Requests that were sent again because no answer came.
    repeated
    /// Requests that were returned because no answer came.
    expired
    /// Datagrams of the fabric that no client waits for.
    unasked
    /// Datagrams that found a full queue.
    overrun
}

/// A count.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// Adds one.
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

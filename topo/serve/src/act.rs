//! What somebody may do to a lab from its page: cut a cable, lose frames, mend, stop and start traffic.

use daemon::admin::{LinkChange, TrafficChange};
use launch::lab::Record;
use launch::lab::client::{self, ClientError};
use serde::Deserialize;

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "act", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Act {
    /// Nothing gets through the cable at this port, either way.
    Cut {
        /// As in `leaf1:4`.
        port: String,
    },
    /// Frames that this port sends are lost at random.
    Lose {
        /// Which.
        port: String,
        /// This share of them.
        share: f64,
    },
    /// Everything that was done at both ends of the cable ends.
    Mend {
        /// One of the ends.
        port: String,
    },
    /// Traffic items post nothing more.
    Stop {
        /// Which; all if left out.
        item: Option<String>,
    },
    /// They post again.
    Start {
        /// Which; all if left out.
        item: Option<String>,
    },
}

impl Act {
    /// Does it, and says what was done.
    ///
    /// # Errors
    /// If a daemon refuses or does not answer.
    pub fn perform(&self, record: &Record) -> Result<String, ClientError> {
        match self {
            Act::Cut { port } => {
                client::cut(record, port, true)?;
                Ok(format!("the cable at {port} is cut"))
            }
            Act::Lose { port, share } => {
                let change = LinkChange { loss: Some(*share), ..LinkChange::default() };
                client::at_port(record, "POST", "links", port, Some(&change))?;
                Ok(format!("{port} loses {:.0} % of what it sends", share * 100.0))
            }
            Act::Mend { port } => {
                client::mend(record, port)?;
                Ok(format!("the cable at {port} is mended"))
            }
            Act::Stop { item } => traffic(record, item.as_ref(), false),
            Act::Start { item } => traffic(record, item.as_ref(), true),
        }
    }
}

fn traffic(record: &Record, item: Option<&String>, on: bool) -> Result<String, ClientError> {
    let adapters = client::traffic(record, &TrafficChange { item: item.cloned(), on })?;
    let word = if on { "started" } else { "stopped" };
    Ok(format!("traffic {word} on {adapters} adapters"))
}

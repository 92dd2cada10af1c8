//! Actions on a lab from its page: cut a cable, lose frames, repair, stop and start traffic.

use daemon::admin::{LinkChange, TrafficChange};
use launch::lab::LabRecord;
use launch::lab::client::{self, ClientError};
use serde::Deserialize;

/// One action.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "act", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum LabAction {
    /// Stop all frames on the cable at this port, in both directions.
    Cut {
        /// As in `leaf1:4`.
        port: String,
    },
    /// Lose frames that this port sends, at random.
    Lose {
        /// The port.
        port: String,
        /// The share of lost frames, 0 to 1.
        share: f64,
    },
    /// Remove all changes and faults at both ends of the cable.
    Mend {
        /// A port at the cable.
        port: String,
    },
    /// Stop traffic items.
    Stop {
        /// The item; all if left out.
        item: Option<String>,
    },
    /// Start traffic items.
    Start {
        /// The item; all if left out.
        item: Option<String>,
    },
}

impl LabAction {
    /// Performs the action and returns a description of it.
    ///
    /// # Errors
    /// If a daemon refuses or does not answer.
    pub fn perform(&self, record: &LabRecord) -> Result<String, ClientError> {
        match self {
            LabAction::Cut { port } => {
                client::cut(record, port, true)?;
                Ok(format!("the cable at {port} is cut"))
            }
            LabAction::Lose { port, share } => {
                let change = LinkChange { loss: Some(*share), ..LinkChange::default() };
                client::change_link(record, port, &change)?;
                Ok(format!("{port} loses {:.0} % of what it sends", share * 100.0))
            }
            LabAction::Mend { port } => {
                client::repair(record, port)?;
                Ok(format!("the cable at {port} is repaired"))
            }
            LabAction::Stop { item } => traffic(record, item.as_ref(), false),
            LabAction::Start { item } => traffic(record, item.as_ref(), true),
        }
    }
}

fn traffic(record: &LabRecord, item: Option<&String>, on: bool) -> Result<String, ClientError> {
    let adapters = client::traffic(record, &TrafficChange { item: item.cloned(), on })?;
    let word = if on { "started" } else { "stopped" };
    Ok(format!("traffic {word} on {adapters} adapters"))
}

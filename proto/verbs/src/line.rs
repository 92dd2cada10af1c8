//! Calls and answers as lines: one JSON document each, with the number of the call.

use crate::answer::{Answer, Refusal};
use crate::call::Call;
use crate::{ANSWER_LIMIT, CALL_LIMIT};
use serde::{Deserialize, Serialize};

/// A call on the line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NumberedCall {
    /// Chosen by the client; the answer repeats it.
    pub id: u64,
    /// The call.
    pub call: Call,
}

/// An answer on the line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NumberedAnswer {
    /// The number of the call; 0 for a line that is not a call.
    pub id: u64,
    /// What the call gave.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What a call gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was executed.
    Answer(Answer),
    /// It was not.
    Refused(Refusal),
}

/// What executes calls.
pub trait Agent {
    /// Executes a call.
    ///
    /// # Errors
    /// If the call is refused.
    fn execute(&mut self, call: &Call) -> Result<Answer, Refusal>;
}

/// A message as a line, with its end.
pub fn line<M: Serialize>(message: &M) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("messages have string keys only");
    line.push(b'\n');
    line
}

/// Executes the call in `text`, a line without its end, and returns the line of the answer. Empty lines have none.
pub fn answer(agent: &mut dyn Agent, text: &[u8]) -> Option<Vec<u8>> {
    if text.trim_ascii().is_empty() {
        return None;
    }
    let parsed = match serde_json::from_slice::<NumberedCall>(text) {
        _ if text.len() >= CALL_LIMIT => Err("the line is too long".to_owned()),
        parsed => parsed.map_err(|error| error.to_string()),
    };
    let (id, result) = match parsed {
        Ok(NumberedCall { id, call }) => (id, agent.execute(&call)),
        Err(why) => (0, Err(Refusal::invalid(why))),
    };
    let outcome = result.map_or_else(Outcome::Refused, Outcome::Answer);
    let whole = line(&NumberedAnswer { id, outcome });
    if whole.len() <= ANSWER_LIMIT {
        return Some(whole);
    }
    let refusal = Refusal::limit("the answer is too long for a line");
    Some(line(&NumberedAnswer { id, outcome: Outcome::Refused(refusal) }))
}

/// Cuts a stream of octets into lines of at most `limit` octets, their ends included.
#[derive(Debug)]
pub struct Lines {
    limit: usize,
    pending: Vec<u8>,
    scanned: usize,
    is_skipping: bool,
}

impl Lines {
    /// Lines of at most `limit` octets.
    pub fn new(limit: usize) -> Lines {
        Lines { limit, pending: Vec::new(), scanned: 0, is_skipping: false }
    }

    /// Takes octets that have arrived.
    pub fn push(&mut self, octets: &[u8]) {
        self.pending.extend_from_slice(octets);
    }

    /// The next complete line without its end. A line above the limit is dropped whole.
    pub fn next_line(&mut self) -> Option<Vec<u8>> {
        loop {
            let fresh = self.pending[self.scanned..].iter().position(|octet| *octet == b'\n');
            let Some(end) = fresh.map(|at| self.scanned + at) else {
                self.scanned = self.pending.len();
                if self.pending.len() >= self.limit {
                    self.forget();
                    self.is_skipping = true;
                }
                return None;
            };
            let line: Vec<u8> = self.pending.drain(..=end).take(end).collect();
            self.scanned = 0;
            if !std::mem::take(&mut self.is_skipping) && line.len() < self.limit {
                return Some(line);
            }
        }
    }

    /// The next message; lines that hold none are dropped.
    pub fn next_message<M: for<'de> Deserialize<'de>>(&mut self) -> Option<M> {
        loop {
            let line = self.next_line()?;
            if let Ok(message) = serde_json::from_slice(&line) {
                return Some(message);
            }
        }
    }

    /// Drops what has arrived.
    pub fn forget(&mut self) {
        self.pending.clear();
        self.scanned = 0;
    }
}

#[cfg(test)]
mod tests;

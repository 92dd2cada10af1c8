//! JSON of the API: bodies of requests to daemons, what commands read from them, and calls of agents. What is accepted
//! means the same after it is written and read again.

use daemon::admin::view::{Counters, Outputs, Status};
use daemon::admin::{CaptureRequest, Fault, LinkChange, Problem, TrafficChange, TrafficChanged};
use serde::Serialize;
use serde::de::DeserializeOwned;
use verbs::answer::{Answer, Refusal};
use verbs::call::Call;
use verbs::line::{Agent, Lines, NumberedAnswer, NumberedCall, answer};

/// The first octet chooses the type; the others are the text.
pub fn check(octets: &[u8]) {
    const KINDS: [fn(&[u8]); 11] = [
        again::<LinkChange>,
        again::<Fault>,
        again::<TrafficChange>,
        again::<CaptureRequest>,
        again::<toml::Table>,
        again::<Problem>,
        again::<TrafficChanged>,
        again::<Status>,
        again::<Counters>,
        again::<Outputs>,
        calls,
    ];
    let Some((kind, text)) = octets.split_first() else { return };
    KINDS[usize::from(*kind) % KINDS.len()](text);
}

/// Text that is a value is written as text that is the same value.
pub(crate) fn again<T: DeserializeOwned + Serialize>(text: &[u8]) {
    let Ok(value) = serde_json::from_slice::<T>(text) else { return };
    // A table of TOML may hold what JSON cannot.
    let Ok(written) = serde_json::to_string(&value) else { return };
    let read: T = serde_json::from_str(&written).expect("what was written can be read");
    assert_eq!(serde_json::to_string(&read).expect("the same value"), written);
}

/// An agent that refuses every call.
struct Refusing(usize);

impl Agent for Refusing {
    fn execute(&mut self, _: &Call) -> Result<Answer, Refusal> {
        self.0 += 1;
        Err(Refusal::limit("none is executed"))
    }
}

/// A stream of calls: each line has one answer, with the number of its call.
fn calls(text: &[u8]) {
    const LIMIT: usize = 512;
    again::<NumberedCall>(text);
    let (mut agent, mut lines) = (Refusing(0), Lines::new(LIMIT));
    let (first, rest) = text.split_at(text.len() / 2);
    for part in [first, rest] {
        lines.push(part);
        while let Some(line) = lines.next_line() {
            assert!(line.len() < LIMIT);
            let executed = agent.0;
            let Some(whole) = answer(&mut agent, &line) else { continue };
            assert!(whole.ends_with(b"\n"));
            let read: NumberedAnswer = serde_json::from_slice(&whole).expect("an answer");
            let asked = serde_json::from_slice::<NumberedCall>(&line).ok();
            assert_eq!(agent.0 - executed, usize::from(asked.is_some()));
            assert_eq!(read.id, asked.map_or(0, |call| call.id));
        }
    }
}

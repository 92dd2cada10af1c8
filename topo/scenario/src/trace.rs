//! Traces of messages: source, destination, size and dependencies. [docs/reference/trace.md](../docs/reference/trace.md)
//! describes the text.
//!
//! [`patterns`] makes traces of applications; any other comes as text.

use crate::keyfile::problem::Complaint;
use proto::params::quantity::{self, Scale};
use proto::units::{BitRate, Bytes, Duration};
use std::collections::HashMap;

pub mod patterns;

/// A message of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The sender's rank.
    pub from: u32,
    /// The receiver's rank.
    pub to: u32,
    /// Octets.
    pub size: Bytes,
    /// Not earlier than this, from the trace's start.
    pub at: Duration,
    /// The messages that it waits for, by place in the trace: its sender has sent or received them whole.
    pub after: Vec<usize>,
}

/// Messages, each behind those that it waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The messages.
    pub messages: Vec<Message>,
}

impl Trace {
    /// Reads a trace.
    ///
    /// # Errors
    /// The first line that is none of a trace, and why.
    pub fn parse(text: &str, scale: &Scale) -> Result<Trace, Complaint> {
        let mut trace = Trace::default();
        let mut places = HashMap::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let in_line = |Complaint { message, hint }| {
                Complaint::new(format!("line {}: {message}", number + 1), hint)
            };
            let (name, message) = read(line, scale, &places, &trace).map_err(in_line)?;
            if places.insert(name.to_owned(), trace.messages.len()).is_some() {
                let message = format!("a second message {name:?}");
                return Err(in_line(Complaint::new(message, "each its own")));
            }
            trace.messages.push(message);
        }
        Ok(trace)
    }

    /// Number of ranks: one more than the highest.
    pub fn ranks(&self) -> u64 {
        let ends = self.messages.iter().flat_map(|message| [message.from, message.to]);
        ends.max().map_or(0, |highest| u64::from(highest) + 1)
    }

    /// By message: how many others in a row it waits for, one behind the other.
    pub fn levels(&self) -> Vec<u32> {
        let mut levels: Vec<u32> = Vec::with_capacity(self.messages.len());
        for message in &self.messages {
            let behind = message.after.iter().map(|place| levels[*place] + 1).max();
            levels.push(behind.unwrap_or(0));
        }
        levels
    }

    /// The least time that it can take where each rank sends and receives at `rate` and nothing else holds
    /// it up: the longest row of messages that wait for each other, or what one rank has to send or to
    /// receive, if that is longer.
    pub fn ideal(&self, rate: BitRate) -> Duration {
        let mut ends: Vec<Duration> = Vec::with_capacity(self.messages.len());
        let mut busy: HashMap<(u32, bool), Duration> = HashMap::new();
        for message in &self.messages {
            let time = message.size.time_at(rate);
            let start = message.after.iter().map(|place| ends[*place]).max().unwrap_or_default();
            ends.push(start.max(message.at) + time);
            for end in [(message.from, false), (message.to, true)] {
                let busy = busy.entry(end).or_default();
                *busy += time;
            }
        }
        ends.into_iter().chain(busy.into_values()).max().unwrap_or_default()
    }
}

/// Reads `name when source destination octets`.
fn read<'a>(
    line: &'a str,
    scale: &Scale,
    places: &HashMap<String, usize>,
    trace: &Trace,
) -> Result<(&'a str, Message), Complaint> {
    let form = "name when source destination octets, for example: m2 after=m1 3 0 750000";
    let words: Vec<&str> = line.split_whitespace().collect();
    let &[name, when, from, to, size] = &words[..] else {
        return Err(Complaint::new(format!("{} words", words.len()), form));
    };
    let rank = |word: &str| {
        word.parse::<u32>().map_err(|_| Complaint::new(format!("{word:?} is not a rank"), form))
    };
    let (from, to) = (rank(from)?, rank(to)?);
    let octets = size.parse().ok().filter(|octets| *octets > 0);
    let none = || Complaint::new(format!("{size:?} is not a number of octets"), form);
    let size = Bytes::new(octets.ok_or_else(none)?);
    if from == to {
        return Err(Complaint::new(format!("rank {from} sends to itself"), form));
    }
    let (mut at, mut after) = (Duration::ZERO, Vec::new());
    for part in when.split(';') {
        if let Some(time) = part.strip_prefix("at=") {
            at = quantity::time(time, scale)?;
        } else if let Some(names) = part.strip_prefix("after=") {
            for other in names.split(',') {
                let place = *places.get(other).ok_or_else(|| {
                    let message = format!("no message {other:?} stands before this one");
                    Complaint::new(message, "a message waits for earlier lines")
                })?;
                let waited = &trace.messages[place];
                if waited.from != from && waited.to != from {
                    let message = format!("rank {from} neither sends nor receives {other:?}");
                    let hint = "a rank waits for messages that it sends or receives";
                    return Err(Complaint::new(message, hint));
                }
                after.push(place);
            }
        } else {
            let message = format!("{part:?} is not a time to begin");
            return Err(Complaint::new(message, "at=0us, after=m1"));
        }
    }
    Ok((name, Message { from, to, size, at, after }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale() -> Scale {
        Scale { tau: Duration::from_us(1), frame: Bytes::new(1500) }
    }

    fn fault(text: &str) -> String {
        Trace::parse(text, &scale()).expect_err("it is wrong").message
    }

    #[test]
    fn lines_become_messages_in_their_order() {
        let text = "# two ranks\n\nping at=2us 0 1 1000 # first\npong after=ping;at=9us 1 0 500\n";
        let trace = Trace::parse(text, &scale()).expect("it is good");
        let expected = Message {
            from: 1,
            to: 0,
            size: Bytes::new(500),
            at: Duration::from_us(9),
            after: vec![0],
        };
        assert_eq!((trace.messages.len(), &trace.messages[1]), (2, &expected));
        assert_eq!((trace.ranks(), trace.levels()), (2, vec![0, 1]));
        let highest = Trace::parse("a at=0us 4294967295 1 5", &scale()).expect("it is good");
        assert_eq!(highest.ranks(), 1 << 32);
        // 2 us and 0.8 us, then 9 us and 0.4 us.
        assert_eq!(trace.ideal(BitRate::gbps(10)), Duration::from_ps(9_400_000));
    }

    #[test]
    fn what_cannot_be_replayed_is_refused_with_its_line() {
        assert_eq!(fault("a at=0us 0 1"), "line 1: 4 words");
        assert_eq!(fault("\na at=0us 0 0 5"), "line 2: rank 0 sends to itself");
        assert_eq!(fault("a at=0us 0 1 0"), "line 1: \"0\" is not a number of octets");
        assert_eq!(fault("a soon 0 1 5"), "line 1: \"soon\" is not a time to begin");
        assert_eq!(fault("a after=b 0 1 5"), "line 1: no message \"b\" stands before this one");
        assert_eq!(fault("a at=0us 0 1 5\na at=0us 0 1 5"), "line 2: a second message \"a\"");
        let stranger = fault("a at=0us 0 1 5\nb after=a 2 1 5");
        assert_eq!(stranger, "line 2: rank 2 neither sends nor receives \"a\"");
    }
}

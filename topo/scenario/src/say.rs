//! `say`: the sentence a report opens with, with measures in it.
//!
//! `{hot_port}` stands for the value of that measure, `{hot_port:%}` for it in per cent.

use crate::keyfile::fields::Fields;
use crate::keyfile::problem::did_you_mean;
use crate::measure::value::Value;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A sentence with places for measures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Say(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Measure { name: String, in_per_cent: bool },
}

/// The sentence as `run.json` has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// With numbers in it.
    pub sentence: String,
    /// The measures that it speaks of, in its order.
    pub measures: Vec<String>,
}

/// Reads `say`; each name in braces must be a measure's.
pub fn read(root: &Fields<'_>) -> Option<Say> {
    let Some(say) = Say::parse(root.text("say")?) else {
        let hint = "say = \"Cold ports kept {cold_ports_mean:%} of line rate.\"";
        return root.refuse("say", "a brace is not closed, or empty", hint);
    };
    let measures = root.tables("measure");
    let names = || measures.iter().filter_map(|measure| measure.text("name"));
    for name in say.measures().filter(|name| !names().any(|known| known == *name)) {
        let message = format!("no [[measure]] is called {name:?}");
        root.error("say", message, did_you_mean(name, names()));
    }
    Some(say)
}

impl Say {
    /// Takes a sentence apart; `None` if its braces do not pair.
    fn parse(text: &str) -> Option<Say> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (inside, behind) = after.split_once('}')?;
            let (name, in_per_cent) = match inside.split_once(':') {
                Some((name, "%")) => (name, true),
                Some(_) => return None,
                None => (inside, false),
            };
            if name.is_empty() || name.contains('{') {
                return None;
            }
            pieces.push(Piece::Text(before.to_owned()));
            pieces.push(Piece::Measure { name: name.to_owned(), in_per_cent });
            rest = behind;
        }
        if rest.contains('}') {
            return None;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        Some(Say(pieces))
    }

    fn measures(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Measure { name, .. } => Some(name.as_str()),
            Piece::Text(_) => None,
        })
    }

    /// The sentence with these values; a measure without one is "?".
    pub fn with(&self, values: &BTreeMap<String, Option<Value>>) -> Said {
        let write = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Measure { name, in_per_cent } => {
                match values.get(name).and_then(Option::as_ref) {
                    None => "?".to_owned(),
                    Some(Value::Number(number)) if *in_per_cent => {
                        format!("{:.0} %", number * 100.0)
                    }
                    // A count, not a ratio that happens to be whole to three digits.
                    Some(Value::Number(number)) if number.fract() == 0.0 => {
                        format!("{number:.0}")
                    }
                    Some(Value::Number(number)) => chart::number::measured(*number),
                    Some(names) => names.to_string(),
                }
            }
        };
        let mut known = BTreeSet::new();
        let measures = self.measures().filter(|name| known.insert(*name)).map(str::to_owned);
        Said { sentence: self.0.iter().map(write).collect(), measures: measures.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_stand_where_their_names_were() {
        let say = Say::parse("Cold kept {cold:%}, hot {hot}; {cold:%} again, {spikes} × {gone}.");
        let values = BTreeMap::from([
            ("cold".to_owned(), Some(Value::Number(0.3004))),
            ("hot".to_owned(), Some(Value::Number(0.98666))),
            ("spikes".to_owned(), Some(Value::Number(3.0))),
            ("gone".to_owned(), None),
        ]);
        let said = say.expect("its braces pair").with(&values);
        assert_eq!(said.sentence, "Cold kept 30 %, hot 0.987; 30 % again, 3 × ?.");
        assert_eq!(said.measures, ["cold", "hot", "spikes", "gone"]);
    }

    #[test]
    fn braces_that_do_not_pair_are_refused() {
        for bad in ["{", "}", "{}", "{a", "a}", "{a:x}", "{a{b}}"] {
            assert_eq!(Say::parse(bad), None, "{bad}");
        }
        assert!(Say::parse("no braces at all").is_some());
    }
}

//! The vocabulary in which a file's keys are declared.

use crate::keyfile::document::{Data, Datum};
use crate::keyfile::problem::{Complaint, did_you_mean};
use crate::keyfile::quantity::{self, Scale};

/// The keys of one table.
#[derive(Debug)]
pub struct KeyTable {
    /// What the table is about.
    pub about: &'static str,
    /// Keys it always has.
    pub keys: &'static [Key],
    /// Keys it has for one value of another key.
    pub variants: Option<Variants>,
    /// Further keys belong to somebody else, who checks them.
    pub open: bool,
}

/// Keys that depend on the value of a word.
#[derive(Debug)]
pub struct Variants {
    /// The key that decides.
    pub by: &'static str,
    /// Each word and the keys it brings.
    pub rows: fn() -> Vec<(&'static str, &'static [Key])>,
}

/// One key.
#[derive(Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What may stand there.
    pub kind: Kind,
    /// What if it does not.
    pub need: Need,
    /// What it means.
    pub about: &'static str,
}

/// What happens if a key is not there.
#[derive(Debug)]
pub enum Need {
    /// It is a fault.
    Required,
    /// Nothing.
    Optional,
    /// This stands there instead, written as in a file.
    Default(&'static str),
}

/// What may stand after an equals sign.
#[derive(Debug)]
pub enum Kind {
    /// Any string.
    Text,
    /// One of these strings.
    Word(fn() -> Vec<&'static str>),
    /// True or false.
    Flag,
    /// An integer within bounds.
    Whole(i64, i64),
    /// A number above the first bound and up to the second.
    Real(f64, f64),
    /// A time, zero included.
    Time,
    /// A time above zero.
    Span,
    /// A rate.
    Rate,
    /// A size, in octets or frames.
    Size,
    /// A size that cannot be told in frames.
    Octets,
    /// An array.
    List(&'static Kind),
    /// Any of these.
    Either(&'static [Kind]),
    /// A table.
    Table(&'static KeyTable),
    /// An array of tables.
    Tables(&'static KeyTable),
}

impl KeyTable {
    /// Every key of the table, those of all variants included, each name once.
    pub fn every_key(&self) -> Vec<&'static Key> {
        let variants = self.variants.iter().flat_map(|v| (v.rows)()).flat_map(|(_, keys)| keys);
        let mut all: Vec<&'static Key> = Vec::new();
        for key in self.keys.iter().chain(variants) {
            if all.iter().all(|known| known.name != key.name) {
                all.push(key);
            }
        }
        all
    }

    /// The keys of the table when the deciding key says `word`.
    pub fn keys_for(&self, word: Option<&str>) -> Vec<&'static Key> {
        let rows = self.variants.iter().flat_map(|v| (v.rows)());
        let chosen = rows.filter(|(name, _)| Some(*name) == word).flat_map(|(_, keys)| keys);
        self.keys.iter().chain(chosen).collect()
    }
}

impl Kind {
    /// What may stand there, in words.
    pub fn expected(&self) -> String {
        match self {
            Kind::Text => "a string".to_owned(),
            Kind::Word(words) => format!("one of {}", quoted(&words())),
            Kind::Flag => "true or false".to_owned(),
            Kind::Whole(min, max) => format!("an integer from {min} to {max}"),
            Kind::Real(above, _) if above.is_infinite() => "a number".to_owned(),
            Kind::Real(above, max) => format!("a number above {above}, at most {max}"),
            Kind::Time | Kind::Span => "a time such as \"2 us\" or \"36 mtu\"".to_owned(),
            Kind::Rate => "a rate such as \"8 Gbps\"".to_owned(),
            Kind::Size => "a size such as \"300 KB\" or \"36 mtu\"".to_owned(),
            Kind::Octets => "a size such as \"2048 B\"".to_owned(),
            Kind::List(of) => format!("an array, each {}", of.expected()),
            Kind::Either(kinds) => {
                kinds.iter().map(Kind::expected).collect::<Vec<_>>().join(", or ")
            }
            Kind::Table(_) => "a table".to_owned(),
            Kind::Tables(_) => "an array of tables".to_owned(),
        }
    }

    /// Whether TOML's type is right, so that a finer complaint makes sense.
    fn has_type(&self, data: &Data) -> bool {
        match self {
            Kind::Text | Kind::Word(_) => matches!(data, Data::Text(_)),
            Kind::Time | Kind::Span | Kind::Rate | Kind::Size | Kind::Octets => {
                matches!(data, Data::Text(_))
            }
            Kind::Flag => matches!(data, Data::Flag(_)),
            Kind::Whole(..) => matches!(data, Data::Whole(_)),
            Kind::Real(..) => matches!(data, Data::Whole(_) | Data::Real(_)),
            Kind::List(_) | Kind::Tables(_) => matches!(data, Data::List(_)),
            Kind::Either(kinds) => kinds.iter().any(|kind| kind.has_type(data)),
            Kind::Table(_) => matches!(data, Data::Table(_)),
        }
    }

    /// Checks a value that is no table.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self, datum: &Datum, scale: &Scale) -> Result<(), Complaint> {
        if !self.has_type(&datum.data) {
            return Err(self.wrong_type(&datum.data));
        }
        match (self, &datum.data) {
            (Kind::Word(words), Data::Text(text)) => check_word(text, &words()),
            (Kind::Whole(min, max), Data::Whole(number)) if number < min || number > max => {
                Err(Complaint::new(format!("{number} is out of range"), self.expected()))
            }
            (Kind::Real(above, max), data) => {
                let number = real(data).unwrap_or(f64::NAN);
                if number > *above && number <= *max {
                    Ok(())
                } else {
                    Err(Complaint::new(format!("{number} is out of range"), self.expected()))
                }
            }
            (Kind::Time, Data::Text(text)) => quantity::time(text, scale).map(drop),
            (Kind::Span, Data::Text(text)) => match quantity::time(text, scale)?.as_ps() {
                0 => Err(Complaint::new("a time of zero", "it must be above zero")),
                _ => Ok(()),
            },
            (Kind::Rate, Data::Text(text)) => quantity::rate(text).map(drop),
            (Kind::Size, Data::Text(text)) => quantity::size(text, scale).map(drop),
            (Kind::Octets, Data::Text(text)) => quantity::octets(text).map(drop),
            (Kind::List(of), Data::List(list)) => {
                list.iter().try_for_each(|item| of.check(item, scale))
            }
            (Kind::Either(kinds), data) => {
                let fitting = kinds.iter().filter(|kind| kind.has_type(data));
                let mut verdict = Ok(());
                for kind in fitting {
                    verdict = kind.check(datum, scale);
                    if verdict.is_ok() {
                        break;
                    }
                }
                verdict
            }
            _ => Ok(()),
        }
    }

    fn wrong_type(&self, data: &Data) -> Complaint {
        let mut hint = self.expected();
        let number = matches!(data, Data::Whole(_) | Data::Real(_));
        let wants_unit =
            matches!(self, Kind::Time | Kind::Span | Kind::Rate | Kind::Size | Kind::Octets);
        if number && wants_unit {
            hint = format!("a number needs its unit, in quotes: {hint}");
        }
        let expected = match self {
            Kind::Text | Kind::Word(_) => "a string",
            _ if wants_unit => "a string with a unit",
            Kind::Flag => "true or false",
            Kind::Whole(..) => "an integer",
            Kind::Real(..) => "a number",
            Kind::List(_) => "an array",
            Kind::Tables(_) => "an array of tables",
            Kind::Table(_) => "a table",
            _ => return Complaint::new(format!("{} does not fit here", data.type_name()), hint),
        };
        Complaint::new(format!("{} where {expected} belongs", data.type_name()), hint)
    }
}

/// The words of a table that gives each its meaning.
pub fn words<T>(table: &[(&'static str, T)]) -> Vec<&'static str> {
    table.iter().map(|(word, _)| *word).collect()
}

/// The number, integer or not.
pub fn real(data: &Data) -> Option<f64> {
    match data {
        Data::Whole(number) => Some(*number as f64),
        Data::Real(number) => Some(*number),
        _ => None,
    }
}

fn check_word(text: &str, words: &[&str]) -> Result<(), Complaint> {
    if words.contains(&text) {
        return Ok(());
    }
    let hint = match did_you_mean(text, words.iter().copied()) {
        guess if guess.starts_with("did") => format!("{guess} There is {}", quoted(words)),
        _ => format!("one of {}", quoted(words)),
    };
    Err(Complaint::new(format!("{text:?} is unknown"), hint))
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ")
}

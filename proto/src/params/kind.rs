//! What a key may hold, and the one parser from TOML to typed values.

use super::{Complaint, KeyTable, Ratio, Scale, Value, did_you_mean, quantity};
use crate::units::Duration;
use toml::Value as Toml;

/// What may stand after an equals sign.
#[derive(Debug)]
pub enum Kind {
    /// Any string.
    Text,
    /// One of these strings.
    Word(fn() -> Vec<&'static str>),
    /// True or false.
    Flag,
    /// An integer within bounds, both included.
    Whole(i64, i64),
    /// A number above the first bound and up to the second.
    Real(f64, f64),
    /// A gain in (0, 1], exact: a decimal, or two whole numbers as in `"1/600000"`.
    Gain,
    /// A time, zero included.
    Time,
    /// A time above zero.
    Span,
    /// A rate above zero.
    Rate,
    /// A size, in octets or frames.
    Size,
    /// A size in octets.
    Octets,
    /// An array.
    List(&'static Kind),
    /// An array of at least one element and at most so many.
    UpTo(usize, &'static Kind),
    /// Any of these.
    Either(&'static [Kind]),
    /// A table.
    Table(&'static KeyTable),
    /// An array of tables.
    Tables(&'static KeyTable),
}

impl Kind {
    /// What may stand there, in words.
    pub fn expected(&self) -> String {
        match self {
            Kind::Text => "a string".to_owned(),
            Kind::Word(words) => format!("one of {}", quoted(&words())),
            Kind::Flag => "true or false".to_owned(),
            Kind::Whole(min, i64::MAX) => format!("an integer from {min}"),
            Kind::Whole(min, max) => format!("an integer from {min} to {max}"),
            Kind::Real(above, _) if above.is_infinite() => "a number".to_owned(),
            Kind::Real(above, max) => format!("a number above {above}, at most {max}"),
            Kind::Gain => "a gain above 0, at most 1, such as 0.0025 or \"1/600000\"".to_owned(),
            Kind::Time => "a time such as \"2 us\" or \"36 mtu\"".to_owned(),
            Kind::Span => "a time above zero such as \"2 us\" or \"36 mtu\"".to_owned(),
            Kind::Rate => "a rate such as \"8 Gbps\"".to_owned(),
            Kind::Size => "a size such as \"300 KB\" or \"36 mtu\"".to_owned(),
            Kind::Octets => "a size such as \"2048 B\"".to_owned(),
            Kind::List(of) => format!("an array, each {}", of.expected()),
            Kind::UpTo(most, of) => format!("an array of 1 to {most}, each {}", of.expected()),
            Kind::Either(kinds) => {
                kinds.iter().map(Kind::expected).collect::<Vec<_>>().join(", or ")
            }
            Kind::Table(_) => "a table".to_owned(),
            Kind::Tables(_) => "an array of tables".to_owned(),
        }
    }

    /// Whether a unit belongs to the value.
    pub fn has_unit(&self) -> bool {
        matches!(self, Kind::Time | Kind::Span | Kind::Rate | Kind::Size | Kind::Octets)
    }

    /// Whether TOML's type is right, so that a finer complaint makes sense.
    fn has_type(&self, value: &Toml) -> bool {
        match self {
            Kind::Gain => value.is_integer() || value.is_float() || value.is_str(),
            Kind::Flag => value.is_bool(),
            Kind::Whole(..) => value.is_integer(),
            Kind::Real(..) => value.is_integer() || value.is_float(),
            Kind::List(_) | Kind::UpTo(..) | Kind::Tables(_) => value.is_array(),
            Kind::Either(kinds) => kinds.iter().any(|kind| kind.has_type(value)),
            Kind::Table(_) => value.is_table(),
            _ => value.is_str(),
        }
    }

    /// Parses a value that is neither a table nor an array of tables.
    ///
    /// # Errors
    /// If its type, range or unit is wrong.
    pub fn parse(&self, value: &Toml, scale: &Scale) -> Result<Value, Complaint> {
        if !self.has_type(value) {
            return Err(self.wrong_type(value));
        }
        let outside = || Complaint::new(format!("{value} is out of range"), self.expected());
        let text = value.as_str().unwrap_or_default();
        Ok(match self {
            Kind::Text => Value::Text(text.to_owned()),
            Kind::Word(words) => word(text, &words())?,
            Kind::Flag => Value::Flag(value.as_bool().unwrap_or_default()),
            Kind::Whole(min, max) => {
                let number = value.as_integer().filter(|number| (min..=max).contains(&number));
                Value::Whole(number.ok_or_else(outside)?)
            }
            Kind::Real(above, max) => {
                let number = value.as_float().or(value.as_integer().map(|whole| whole as f64));
                match number.unwrap_or(f64::NAN) {
                    number if number > *above && number <= *max => Value::Real(number),
                    number => {
                        let message = format!("{number} is out of range");
                        return Err(Complaint::new(message, self.expected()));
                    }
                }
            }
            Kind::Gain => Value::Gain(Ratio::parse(value).ok_or_else(outside)?),
            Kind::Time => Value::Time(quantity::time(text, scale)?),
            Kind::Span => match quantity::time(text, scale)? {
                Duration::ZERO => {
                    return Err(Complaint::new("a time of zero", "it must be above zero"));
                }
                time => Value::Time(time),
            },
            Kind::Rate => Value::Rate(quantity::rate(text)?),
            Kind::Size => Value::Size(quantity::size(text, scale)?),
            Kind::Octets => Value::Size(quantity::octets(text)?),
            Kind::List(of) => list(value, of, scale)?,
            Kind::UpTo(most, of) => {
                let elements = value.as_array().map_or(0, Vec::len);
                if !(1..=*most).contains(&elements) {
                    return Err(Complaint::new(format!("{elements} elements"), self.expected()));
                }
                list(value, of, scale)?
            }
            Kind::Either(kinds) => {
                let fitting = kinds.iter().filter(|kind| kind.has_type(value));
                let parsed = fitting.map(|kind| kind.parse(value, scale)).reduce(Result::or);
                parsed.unwrap_or_else(|| Err(self.wrong_type(value)))?
            }
            Kind::Table(_) | Kind::Tables(_) => return Err(self.wrong_type(value)),
        })
    }

    fn wrong_type(&self, value: &Toml) -> Complaint {
        let mut hint = self.expected();
        if self.has_unit() && (value.is_integer() || value.is_float()) {
            hint = format!("a number needs its unit, in quotes: {hint}");
        }
        let expected = match self {
            Kind::Text | Kind::Word(_) => "a string",
            _ if self.has_unit() => "a string with a unit",
            Kind::Flag => "true or false",
            Kind::Whole(..) => "an integer",
            Kind::Real(..) => "a number",
            Kind::List(_) | Kind::UpTo(..) => "an array",
            Kind::Tables(_) => "an array of tables",
            Kind::Table(_) => "a table",
            _ => return Complaint::new(format!("{} does not fit here", type_name(value)), hint),
        };
        Complaint::new(format!("{} where {expected} belongs", type_name(value)), hint)
    }
}

/// The name of a value's type, for messages.
pub fn type_name(value: &Toml) -> &'static str {
    match value {
        Toml::String(_) => "a string",
        Toml::Integer(_) => "an integer",
        Toml::Float(_) => "a number",
        Toml::Boolean(_) => "true or false",
        Toml::Datetime(_) => "a date",
        Toml::Array(_) => "an array",
        Toml::Table(_) => "a table",
    }
}

fn list(value: &Toml, of: &Kind, scale: &Scale) -> Result<Value, Complaint> {
    let items = value.as_array().into_iter().flatten().map(|item| of.parse(item, scale));
    items.collect::<Result<_, _>>().map(Value::List)
}

fn word(text: &str, words: &[&str]) -> Result<Value, Complaint> {
    if words.contains(&text) {
        return Ok(Value::Text(text.to_owned()));
    }
    let hint = match did_you_mean(text, words) {
        guess if guess.starts_with("did") => format!("{guess} There is {}", quoted(words)),
        _ => format!("one of {}", quoted(words)),
    };
    Err(Complaint::new(format!("{text:?} is unknown"), hint))
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ")
}

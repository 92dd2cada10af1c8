//! Parameters: declared once, beside the engine that owns them, and parsed once into a typed value.
//!
//! The macro [`params!`](crate::params!) turns one list into a struct and its table of [`Key`]s. The doc
//! comment of a field is the meaning of its key; kind, default and source stand beside it:
//!
//! ```
//! proto::params! {
//!     /// Parameters of a scheme.
//!     pub struct Numbers {
//!         /// Increase of the index with each BECN.
//!         increase: u16 = Whole(0, 255), Default("5"), "IBTA Vol 1, A10.4.3.8";
//!         /// Time between two decrements.
//!         timer: proto::units::Duration = Span, Default("31.744 us");
//!     }
//! }
//! let numbers: Numbers = proto::params::read(&"increase = 7".parse()?)?;
//! assert_eq!((numbers.increase, numbers.timer.as_ps()), (7, 31_744_000));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! From these tables come the checks of scenario files, their JSON Schema, `pausebed schemes`,
//! docs/schemes.md and the parameters in run.json. A default is written as in a scenario file; text
//! needs no quotes.

use std::fmt;
use toml::{Table, Value as Toml};

mod kind;
mod markdown;
pub mod quantity;
mod ratio;
mod value;

pub use kind::Kind;
pub use markdown::markdown;
pub use quantity::Scale;
pub use ratio::Ratio;
pub use value::{FromValue, Millionths, Value};

/// The keys of one table.
#[derive(Debug)]
pub struct KeyTable {
    /// Meaning of the table.
    pub about: &'static str,
    /// Keys that it always has.
    pub keys: &'static [Key],
    /// Keys that depend on the value of another key.
    pub variants: &'static [Variants],
    /// Any further key is accepted.
    pub open: bool,
}

impl KeyTable {
    /// A table that always has the same keys.
    pub const fn new(about: &'static str, keys: &'static [Key]) -> KeyTable {
        KeyTable { about, keys, variants: &[], open: false }
    }

    /// Every key of the table, those of all variants included, each name once.
    pub fn every_key(&self) -> Vec<&'static Key> {
        let rows = self.variants.iter().flat_map(|variants| (variants.rows)());
        let mut all: Vec<&'static Key> = self.keys.iter().collect();
        for key in rows.flat_map(|(_, keys)| keys) {
            if all.iter().all(|known| known.name != key.name) {
                all.push(key);
            }
        }
        all
    }

    /// The keys of the table when its deciding keys have these words.
    pub fn keys_for(&self, word: impl Fn(&str) -> Option<String>) -> Vec<&'static Key> {
        let chosen = self.variants.iter().flat_map(|variants| {
            let word = word(variants.by);
            (variants.rows)().into_iter().filter(move |(name, _)| Some(*name) == word.as_deref())
        });
        self.keys.iter().chain(chosen.flat_map(|(_, keys)| keys)).collect()
    }
}

/// One word of a deciding key, and the keys that it brings.
pub type Variant = (&'static str, Vec<&'static Key>);

/// Keys that depend on the value of a word.
#[derive(Debug)]
pub struct Variants {
    /// The deciding key, of this table or of one around it.
    pub by: &'static str,
    /// Each word of that key and the keys it brings.
    pub rows: fn() -> Vec<Variant>,
}

/// One key.
#[derive(Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it may hold.
    pub kind: Kind,
    /// What holds if it is missing.
    pub need: Need,
    /// Its meaning.
    pub about: &'static str,
    /// Standard clause or paper that defines it; empty for this project's own.
    pub source: &'static str,
    /// The condition under which it has an effect; `None` if always.
    pub when: Option<When>,
}

/// A condition on another key of the same table.
#[derive(Clone, Copy, Debug)]
pub enum When {
    /// The key has one of these values, defaults included.
    Is(&'static str, &'static [&'static str]),
    /// The key does not have this value.
    Not(&'static str, &'static str),
    /// The key is written.
    Written(&'static str),
}

impl When {
    /// Whether the condition holds; `value` returns a key's value as text.
    pub fn holds(self, value: impl Fn(&str) -> Option<String>) -> bool {
        match self {
            When::Is(key, values) => value(key).is_none_or(|value| values.contains(&&*value)),
            When::Not(key, refused) => value(key).is_none_or(|value| value != refused),
            When::Written(key) => value(key).is_some(),
        }
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            When::Is(key, values) => write!(f, "{key} = {}", values.join(" or ")),
            When::Not(key, value) => write!(f, "{key} other than {value}"),
            When::Written(key) => write!(f, "{key}"),
        }
    }
}

impl Key {
    /// A key with a default, written as in a file.
    pub const fn new(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        about: &'static str,
    ) -> Key {
        Key { name, kind, need: Need::Default(default), about, source: "", when: None }
    }

    /// A key that must be there.
    pub const fn required(name: &'static str, kind: Kind, about: &'static str) -> Key {
        Key { name, kind, need: Need::Required, about, source: "", when: None }
    }

    /// A key that may be missing.
    pub const fn optional(name: &'static str, kind: Kind, about: &'static str) -> Key {
        Key { name, kind, need: Need::Optional, about, source: "", when: None }
    }

    /// The same key with an effect only under this condition.
    pub const fn when(mut self, when: When) -> Key {
        self.when = Some(when);
        self
    }
}

/// What holds if a key is missing.
#[derive(Debug)]
pub enum Need {
    /// Its absence is an error.
    Required,
    /// Nothing.
    Optional,
    /// A value that other settings determine, described in words.
    Else(&'static str),
    /// This value, written as in a file.
    Default(&'static str),
    /// A value for each word of another key of the same table, in the order of its words.
    By(&'static str, &'static [&'static str]),
}

impl Need {
    /// The default in force. `position` finds the index of the word that a key of the same table has.
    pub fn text(&self, position: impl Fn(&str) -> Option<usize>) -> Option<&'static str> {
        match self {
            Need::Default(text) => Some(text),
            Need::By(key, texts) => texts.get(position(key)?).copied(),
            Need::Required | Need::Optional | Need::Else(_) => None,
        }
    }
}

/// What is wrong with a value, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}: {hint}")]
pub struct Complaint {
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub hint: String,
}

impl Complaint {
    /// A complaint and its remedy.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Complaint {
        Complaint { message: message.into(), hint: hint.into() }
    }
}

/// A parameter that is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {complaint}")]
pub struct ParamError {
    /// The parameter's key.
    pub key: String,
    /// What is wrong with it.
    pub complaint: Complaint,
}

/// A struct that [`params!`](crate::params!) has declared.
pub trait Params: Sized {
    /// Its keys, in the order of the fields.
    const KEYS: &'static [Key];

    /// Reads all fields. `None` if one is wrong or missing; the reader then holds the errors.
    fn read(reader: &mut Reader<'_>) -> Option<Self>;
}

/// Reads a struct of parameters. A table must hold no other keys.
///
/// # Errors
/// The first parameter that is unknown, missing or wrong.
pub fn read<T: Params>(table: &Table) -> Result<T, ParamError> {
    let groups = [T::KEYS];
    let mut reader = Reader::new(table, &groups);
    let read = T::read(&mut reader);
    reader.finish(read).map_err(|mut errors| errors.remove(0))
}

/// A struct of parameters in which every key has its default.
///
/// # Panics
/// If a key is required.
pub fn defaults<T: Params>() -> T {
    read(&Table::new()).expect("every key has a default")
}

/// A table on its way into typed values, and the errors found so far.
pub struct Reader<'a> {
    source: Source<'a>,
    errors: Vec<ParamError>,
}

/// Where a reader's values come from.
enum Source<'a> {
    /// A table as written.
    Written { table: &'a Table, groups: &'a [&'static [Key]] },
    /// Values that have been parsed already, defaults included.
    Parsed(&'a dyn Fn(&str) -> Option<Value>),
}

impl<'a> Reader<'a> {
    /// Reads `table`, which may hold the keys of `groups` and no others.
    pub fn new(table: &'a Table, groups: &'a [&'static [Key]]) -> Reader<'a> {
        let source = Source::Written { table, groups };
        let mut reader = Reader { source, errors: Vec::new() };
        let names: Vec<&str> = groups.iter().copied().flatten().map(|key| key.name).collect();
        for name in table.keys().filter(|name| !names.contains(&name.as_str())) {
            reader.refuse(name, Complaint::new("unknown key", did_you_mean(name, &names)));
        }
        reader
    }

    /// Reads values that have been parsed already, defaults included.
    pub fn parsed(value: &'a dyn Fn(&str) -> Option<Value>) -> Reader<'a> {
        Reader { source: Source::Parsed(value), errors: Vec::new() }
    }

    /// Whether `key` is written, not by default.
    pub fn is_written(&self, key: &str) -> bool {
        match self.source {
            Source::Written { table, .. } => table.contains_key(key),
            Source::Parsed(value) => value(key).is_some(),
        }
    }

    /// The value of `key`, its default included. `None` if it is wrong or missing.
    pub fn get<T: FromValue>(&mut self, key: &Key) -> Option<T> {
        let (table, groups) = match self.source {
            Source::Written { table, groups } => (table, groups),
            Source::Parsed(value) => {
                return value(key.name).map_or_else(T::absent, |value| T::from_value(&value));
            }
        };
        let value = match table.get(key.name) {
            Some(value) => value.clone(),
            None => match key.need.text(|word| position(table, groups, word)) {
                Some(text) => parse_default(text),
                None if matches!(key.need, Need::Required) => {
                    self.refuse(key.name, Complaint::new("missing", key.kind.expected()));
                    return None;
                }
                None => return T::absent(),
            },
        };
        match key.kind.parse(&value, &Scale::ABSOLUTE) {
            Ok(value) => T::from_value(&value),
            Err(complaint) => {
                self.refuse(key.name, complaint);
                None
            }
        }
    }

    /// Reports a wrong value of `key`.
    pub fn refuse(&mut self, key: &str, complaint: Complaint) {
        self.errors.push(ParamError { key: key.to_owned(), complaint });
    }

    /// What was read, if nothing was wrong.
    ///
    /// # Errors
    /// Every parameter that is wrong, by key.
    pub fn finish<T>(mut self, read: Option<T>) -> Result<T, Vec<ParamError>> {
        self.errors.sort_by(|a, b| a.key.cmp(&b.key));
        match read {
            Some(read) if self.errors.is_empty() => Ok(read),
            _ => Err(self.errors),
        }
    }
}

/// The index of the word that `key` holds, written or by default.
fn position(table: &Table, groups: &[&'static [Key]], key: &str) -> Option<usize> {
    let key = groups.iter().copied().flatten().find(|known| known.name == key)?;
    let Kind::Word(words) = &key.kind else { return None };
    let word = table.get(key.name).and_then(Toml::as_str).or(key.need.text(|_| None))?;
    words().iter().position(|known| *known == word)
}

/// The value that a default stands for. Text that is not a TOML value stands for itself.
pub fn parse_default(text: &str) -> Toml {
    text.parse().unwrap_or_else(|_| Toml::String(text.to_owned()))
}

/// A hint: the one of `known` that `written` resembles, else all of them.
pub fn did_you_mean(written: &str, known: &[&str]) -> String {
    let likeness = |name: &&str| (strsim::jaro_winkler(written, name), name.to_string());
    let alike = known.iter().map(likeness).filter(|(likeness, _)| *likeness > 0.8);
    match alike.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((_, name)) => format!("did you mean {name:?}?"),
        None if known.is_empty() => "there is none".to_owned(),
        None => format!("one of {}", known.join(", ")),
    }
}

/// The name of a key from that of its field, which is raw where it is a word of the language, as in `r#match`.
pub const fn plain_name(field: &'static str) -> &'static str {
    match field.as_bytes() {
        [b'r', b'#', ..] => field.split_at(2).1,
        _ => field,
    }
}

/// Declares a struct of parameters together with its keys; see the documentation of [`params`](mod@crate::params).
///
/// Each field is `key: Type = kind, need, "source" => when;`, with variants of [`Kind`], [`Need`] and
/// [`When`]. Source and condition may be left out.
#[macro_export]
macro_rules! params {
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[doc = $doc:literal])+
            $key:ident: $type:ty = $kind:expr, $need:expr $(, $source:literal)? $(=> $when:expr)?;)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $name {
            $($(#[doc = $doc])+ pub $key: $type,)*
        }

        impl $crate::params::Params for $name {
            const KEYS: &'static [$crate::params::Key] = {
                #[allow(unused_imports, reason = "not every list uses every kind")]
                use $crate::params::{Kind::*, Need::*, When::*};
                &[$($crate::params::Key {
                    name: $crate::params::plain_name(stringify!($key)),
                    kind: $kind,
                    need: $need,
                    about: concat!($($doc),+).trim_ascii(),
                    source: concat!($($source)?),
                    when: [$(Some($when),)? None][0],
                }),*]
            };

            fn read(reader: &mut $crate::params::Reader<'_>) -> Option<Self> {
                let mut keys = Self::KEYS.iter();
                $(let $key = reader.get::<$type>(keys.next()?);)*
                Some($name { $($key: $key?),* })
            }
        }
    };
}

/// Declares enums whose variants are the words of a key.
#[macro_export]
macro_rules! words {
    ($($(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[$about:meta])+ $variant:ident = $word:literal,)+
    })+) => {
        $($(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        $vis enum $name {
            $($(#[$about])+ #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// One of the words.
            pub const KIND: $crate::params::Kind =
                $crate::params::Kind::Word(|| vec![$($name::$variant.word()),+]);

            /// Its word.
            pub const fn word(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }
        }

        impl $crate::params::FromValue for $name {
            fn from_value(value: &$crate::params::Value) -> Option<$name> {
                let text = value.text()?;
                [$($name::$variant),+].into_iter().find(|known| known.word() == text)
            }
        })+
    };
}

#[cfg(test)]
mod tests;

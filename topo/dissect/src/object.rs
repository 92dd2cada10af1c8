//! A JSON object on its way to octets: every member is taken once, and none may be left.

use super::layer::{Absent, Field, Form, Layer, Place, set_bits};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Why an object is no frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {reason} ({hint})")]
pub struct Fault {
    /// The key, from the frame on.
    pub path: String,
    /// What is wrong.
    pub reason: String,
    /// What would be right.
    pub hint: String,
}

/// An object that is being taken apart.
#[derive(Debug)]
pub struct Object {
    path: String,
    members: Map<String, Value>,
    asked: BTreeSet<&'static str>,
}

/// A header that was written, with what it still wants.
#[derive(Debug)]
pub struct Placed {
    layer: &'static Layer,
    /// Its first octet.
    pub at: usize,
    /// Fields to be computed, a bit each.
    computed: u64,
}

impl Object {
    /// The object `value`, called `path` in faults.
    ///
    /// # Errors
    /// If it is none.
    pub fn new(path: &str, value: Value) -> Result<Object, Fault> {
        match value {
            Value::Object(members) => {
                Ok(Object { path: path.to_owned(), members, asked: BTreeSet::new() })
            }
            other => Err(Fault {
                path: path.to_owned(),
                reason: format!("{} is no object", shown(&other)),
                hint: "as `pausebed decode --json` writes it".to_owned(),
            }),
        }
    }

    /// A fault of the member `key`.
    pub fn fault(&self, key: &str, reason: impl Into<String>, hint: impl Into<String>) -> Fault {
        Fault { path: self.path_of(key), reason: reason.into(), hint: hint.into() }
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// True if there is such a member still.
    pub fn has(&self, key: &str) -> bool {
        self.members.contains_key(key)
    }

    /// True if the object `key` has a member `inner` still.
    pub fn has_within(&self, key: &str, inner: &str) -> bool {
        self.members.get(key).is_some_and(|object| object.get(inner).is_some())
    }

    /// Takes a member.
    pub fn take(&mut self, key: &'static str) -> Option<Value> {
        self.asked.insert(key);
        self.members.remove(key)
    }

    /// Takes an object.
    ///
    /// # Errors
    /// If the member is something else.
    pub fn object(&mut self, key: &'static str) -> Result<Option<Object>, Fault> {
        let path = self.path_of(key);
        self.take(key).map(|value| Object::new(&path, value)).transpose()
    }

    /// Takes a list of objects.
    ///
    /// # Errors
    /// If the member is something else.
    pub fn list(&mut self, key: &'static str) -> Result<Option<Vec<Object>>, Fault> {
        let path = self.path_of(key);
        match self.take(key) {
            None => Ok(None),
            Some(Value::Array(entries)) => {
                let entries = entries.into_iter().enumerate();
                let objects =
                    entries.map(|(at, entry)| Object::new(&format!("{path}[{at}]"), entry));
                objects.collect::<Result<_, _>>().map(Some)
            }
            Some(other) => {
                Err(self.fault(key, format!("{} is no list", shown(&other)), "a list of objects"))
            }
        }
    }

    /// Takes octets in hex.
    ///
    /// # Errors
    /// If the member is something else.
    pub fn hex(&mut self, key: &'static str) -> Result<Option<Vec<u8>>, Fault> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let octets = value.as_str().and_then(parse_hex);
        let hint = "two hexadecimal digits an octet, as in \"00ff\"";
        let fault = || self.fault(key, format!("{} is no hex", shown(&value)), hint);
        octets.ok_or_else(fault).map(Some)
    }

    /// Takes a number of at most `max`.
    ///
    /// # Errors
    /// If the member is something else.
    pub fn number(&mut self, key: &'static str, max: u64) -> Result<Option<u64>, Fault> {
        let Some(value) = self.take(key) else { return Ok(None) };
        match number(&value).filter(|number| *number <= max) {
            Some(number) => Ok(Some(number)),
            None => Err(self.fault(
                key,
                format!("{} does not fit", shown(&value)),
                format!("a number from 0 to {max}"),
            )),
        }
    }

    /// Takes text.
    ///
    /// # Errors
    /// If the member is something else.
    pub fn text(&mut self, key: &'static str) -> Result<Option<String>, Fault> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => {
                Err(self.fault(key, format!("{} is no text", shown(&other)), "a string"))
            }
        }
    }

    /// Appends the header of `layer` that the object has under its key.
    ///
    /// # Errors
    /// If a field is missing, unknown or holds what it cannot.
    pub fn header(
        &mut self,
        layer: &'static Layer,
        out: &mut Vec<u8>,
    ) -> Result<Option<Placed>, Fault> {
        let Some(mut object) = self.object(layer.key)? else { return Ok(None) };
        let placed = object.fields(layer, out)?;
        object.finish()?;
        Ok(Some(placed))
    }

    /// Appends a header whose fields the object itself has.
    ///
    /// # Errors
    /// If a field is missing or holds what it cannot.
    pub fn fields(&mut self, layer: &'static Layer, out: &mut Vec<u8>) -> Result<Placed, Fault> {
        let at = out.len();
        out.resize(at + layer.octets, 0);
        let mut placed = Placed { layer, at, computed: 0 };
        let mut bit = 0;
        for (index, field) in layer.fields.iter().enumerate() {
            match self.field(field)? {
                Given::Bits(value) => set_bits(&mut out[at..], bit, field.bits, value),
                Given::Ipv6(address) => {
                    out[at + bit / 8..][..16].copy_from_slice(&address.octets());
                }
                Given::Nothing => placed.computed |= 1 << index,
            }
            bit += field.bits;
        }
        if layer.name.is_some() {
            self.take("name");
        }
        Ok(placed)
    }

    fn field(&mut self, field: &'static Field) -> Result<Given, Fault> {
        let value = match (self.take(field.name), field.absent) {
            (Some(Value::String(auto)), Absent::Computed) if auto == "auto" => None,
            (value, _) => value,
        };
        let Some(value) = value else {
            return match field.absent {
                Absent::Or(value) => Ok(Given::Bits(value)),
                Absent::Computed => Ok(Given::Nothing),
                Absent::Required => Err(self.fault(field.name, "is missing", kind_of(field))),
            };
        };
        given(field, &value).ok_or_else(|| {
            self.fault(field.name, format!("{} does not fit", shown(&value)), kind_of(field))
        })
    }

    /// All members must have been taken.
    ///
    /// # Errors
    /// Naming the first that was not.
    pub fn finish(self) -> Result<(), Fault> {
        let Some(key) = self.members.keys().next() else { return Ok(()) };
        let near = self
            .asked
            .iter()
            .map(|known| (strsim::damerau_levenshtein(key, known), *known))
            .filter(|(distance, _)| *distance <= 2)
            .min();
        let hint = match near {
            Some((_, known)) => format!("did you mean {known:?}?"),
            None => {
                format!("here stand {}", self.asked.iter().copied().collect::<Vec<_>>().join(", "))
            }
        };
        Err(self.fault(key, "nothing has this key here", hint))
    }
}

impl Placed {
    /// Gives a field its value, if that was left to us.
    ///
    /// # Errors
    /// If the field is too narrow.
    pub fn fill(&self, out: &mut [u8], name: &'static str, value: usize) -> Result<(), Fault> {
        if !self.wants(name) {
            return Ok(());
        }
        let Place { at, field } = self.layer.place(name);
        let value = value as u64;
        if value > field.max() {
            return Err(Fault {
                path: format!("{}.{name}", self.layer.key),
                reason: format!("{value} would be needed"),
                hint: format!("{} bits hold at most {}", field.bits, field.max()),
            });
        }
        set_bits(&mut out[self.at..], at, field.bits, value);
        Ok(())
    }

    /// A field's value was left to us.
    pub fn wants(&self, name: &str) -> bool {
        let index = self.layer.fields.iter().position(|field| field.name == name);
        index.is_some_and(|index| self.computed >> index & 1 == 1)
    }
}

enum Given {
    Bits(u64),
    Ipv6(Ipv6Addr),
    Nothing,
}

fn given(field: &Field, value: &Value) -> Option<Given> {
    let text = value.as_str();
    let bits = match field.form {
        Form::Ipv6 => return Some(Given::Ipv6(text?.parse().ok()?)),
        Form::Ipv4 => u64::from(text?.parse::<Ipv4Addr>().ok()?.to_bits()),
        Form::Mac => mac(text?)?,
        Form::Signed if value.as_i64().is_some_and(|number| number < 0) => {
            let number = value.as_i64()?;
            let smallest = -1i64 << (field.bits - 1);
            (number >= smallest).then_some(number as u64 & field.max())?
        }
        Form::Signed => number(value).filter(|number| *number <= field.max() >> 1)?,
        Form::Number | Form::Code | Form::Wide => {
            number(value).filter(|number| *number <= field.max())?
        }
    };
    Some(Given::Bits(bits))
}

fn kind_of(field: &Field) -> String {
    match field.form {
        Form::Ipv6 => "an address as in \"2001:db8::1\"".to_owned(),
        Form::Ipv4 => "an address as in \"192.0.2.1\"".to_owned(),
        Form::Mac => "an address as in \"02:00:00:00:00:01\"".to_owned(),
        Form::Signed => format!("{} bits in two's complement", field.bits),
        Form::Number | Form::Code | Form::Wide => {
            format!("{} bits: a number from 0 to {}, or \"0x…\"", field.bits, field.max())
        }
    }
}

/// A number, `"0x…"`, or a flag as true or false.
fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::Bool(flag) => Some(u64::from(*flag)),
        Value::String(text) => match text.strip_prefix("0x") {
            Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
            _ => None,
        },
        _ => None,
    }
}

fn mac(text: &str) -> Option<u64> {
    let octet =
        |pair: &str| (pair.len() == 2).then(|| u64::from_str_radix(pair, 16).ok()).flatten();
    let octets = text.split(':').map(octet).collect::<Option<Vec<_>>>()?;
    (octets.len() == 6).then(|| octets.into_iter().fold(0, |sum, octet| sum << 8 | octet))
}

/// Two digits an octet.
pub(super) fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |digit: u8| (digit as char).to_digit(16).map(|digit| digit as u8);
    let octets = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
    rest.is_empty().then(|| octets.collect()).flatten()
}

/// A value in a fault, cut where it is long.
fn shown(value: &Value) -> String {
    const SHOWN_MAX: usize = 40;
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

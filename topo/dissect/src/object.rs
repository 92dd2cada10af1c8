//! A JSON object that becomes octets: each member is taken once, and none may be left over.

use super::layer::{Absent, Field, Form, Layer, Place, set_bits};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Why a JSON object is not a frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {reason} ({hint})")]
pub struct Fault {
    /// The key with the keys around it, from the frame on.
    pub path: String,
    /// What is wrong.
    pub reason: String,
    /// A right value.
    pub hint: String,
}

/// An object whose members are being taken.
#[derive(Debug)]
pub struct Object {
    path: String,
    members: Map<String, Value>,
    /// Keys that the encoder looked for.
    asked: BTreeSet<&'static str>,
}

/// Octets of a frame that could not be read.
pub(super) struct Broken(pub Vec<u8>);

/// A header in the output, some of whose fields may still have to be computed.
#[derive(Debug)]
pub struct Placed {
    layer: &'static Layer,
    /// Its first octet in the output.
    pub at: usize,
    /// Bit n: field n has to be computed.
    computed: u64,
}

impl Object {
    /// The object `value`; faults call it `path`.
    ///
    /// # Errors
    /// If `value` is not an object.
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

    /// A fault of the member `key`, with a hint at a right value.
    pub fn fault(&self, key: &str, reason: impl Into<String>, hint: impl Into<String>) -> Fault {
        Fault { path: self.path_of(key), reason: reason.into(), hint: hint.into() }
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// True if the member is there and not yet taken.
    pub fn has(&self, key: &str) -> bool {
        self.members.contains_key(key)
    }

    /// True if the member `key` is an object with a member `inner`.
    pub fn has_within(&self, key: &str, inner: &str) -> bool {
        self.members.get(key).is_some_and(|object| object.get(inner).is_some())
    }

    /// Takes a member.
    pub fn take(&mut self, key: &'static str) -> Option<Value> {
        self.asked.insert(key);
        self.members.remove(key)
    }

    /// Takes a member and converts it with `read`; a value that `read` refuses is a fault.
    fn taken<T>(
        &mut self,
        key: &'static str,
        reason: &str,
        hint: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, Fault> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let fault = || self.fault(key, format!("{} {reason}", shown(&value)), hint);
        read(&value).ok_or_else(fault).map(Some)
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
        let list = |value: &Value| value.as_array().cloned();
        let Some(entries) = self.taken(key, "is no list", "a list of objects", list)? else {
            return Ok(None);
        };
        let entry = |(at, entry)| Object::new(&format!("{path}[{at}]"), entry);
        entries.into_iter().enumerate().map(entry).collect::<Result<_, _>>().map(Some)
    }

    /// Takes octets in hexadecimal digits.
    ///
    /// # Errors
    /// If the member is something else.
    pub fn hex(&mut self, key: &'static str) -> Result<Option<Vec<u8>>, Fault> {
        let hint = "two hexadecimal digits an octet, as in \"00ff\"";
        self.taken(key, "is no hex", hint, |value| parse_hex(value.as_str()?))
    }

    /// Takes a number of at most `max`.
    ///
    /// # Errors
    /// If the member is something else.
    pub fn number(&mut self, key: &'static str, max: u64) -> Result<Option<u64>, Fault> {
        let hint = format!("a number from 0 to {max}");
        let read = |value: &Value| number(value).filter(|number| *number <= max);
        self.taken(key, "does not fit", &hint, read)
    }

    /// Takes text.
    ///
    /// # Errors
    /// If the member is something else.
    pub fn text(&mut self, key: &'static str) -> Result<Option<String>, Fault> {
        self.taken(key, "is no text", "a string", |value| value.as_str().map(str::to_owned))
    }

    /// Takes one of some words.
    ///
    /// # Errors
    /// If the member is something else.
    pub fn word<T: Copy>(
        &mut self,
        key: &'static str,
        words: &[(&str, T)],
        hint: &str,
    ) -> Result<Option<T>, Fault> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        let found = words.iter().find(|(word, _)| *word == text);
        found.map(|(_, value)| Some(*value)).ok_or_else(|| self.fault(key, "is neither", hint))
    }

    /// Takes the octets of `error`, the part of a frame that could not be read. In a frame with an error nothing is
    /// computed that JSON leaves out.
    ///
    /// # Errors
    /// If the member is something else.
    pub fn error(&mut self) -> Result<Option<Broken>, Fault> {
        let Some(mut error) = self.object("error")? else { return Ok(None) };
        error.ignore(&["layer", "offset", "reason"]);
        let octets = error.hex("octets")?.unwrap_or_default();
        error.finish()?;
        Ok(Some(Broken(octets)))
    }

    /// Takes members that `decode` writes for people and that follow from the others.
    pub fn ignore(&mut self, keys: &[&'static str]) {
        for key in keys {
            self.take(key);
        }
    }

    /// Appends a CRC of `length` octets: as given, or what `computed` returns for the octets before it. If `broken`,
    /// nothing is appended for a CRC that JSON leaves out.
    ///
    /// # Errors
    /// If the member is something else.
    pub fn check(
        &mut self,
        key: &'static str,
        length: usize,
        broken: bool,
        out: &mut Vec<u8>,
        computed: impl FnOnce(&[u8]) -> u32,
    ) -> Result<(), Fault> {
        let mut given = Value::from("auto");
        match self.object(key)? {
            None if broken => return Ok(()),
            None => {}
            Some(mut check) => {
                given = check.take("value").unwrap_or(given);
                check.ignore(&["ok", "expected"]);
                check.finish()?;
            }
        }
        if given == "auto" {
            let computed = computed(out).to_le_bytes();
            out.extend_from_slice(&computed[..length]);
            return Ok(());
        }
        let digits = given.as_str().and_then(|text| text.strip_prefix("0x"));
        let octets = digits.and_then(parse_hex).filter(|octets| octets.len() == length);
        let digits = 2 * length;
        let hint = || format!("\"0x\" and {digits} digits, octets as on the wire; or \"auto\"");
        let fault = || self.fault(key, format!("{given} is no such CRC"), hint());
        out.extend(octets.ok_or_else(fault)?);
        Ok(())
    }

    /// Appends the header of `layer` if the object has a member of that key.
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

    /// Appends a header whose fields are members of this object.
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

    /// Checks that all members have been taken.
    ///
    /// # Errors
    /// The first member that was not.
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
    /// Sets the field `name` to `value` if it has to be computed.
    ///
    /// # Errors
    /// If the field is too narrow for the value.
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

    /// True if the field `name` has to be computed.
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

/// Octets from text with two hexadecimal digits for each; `None` if it is something else.
pub(super) fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |digit: u8| (digit as char).to_digit(16).map(|digit| digit as u8);
    let octets = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
    rest.is_empty().then(|| octets.collect()).flatten()
}

/// A value in a fault, at most 40 characters of it.
fn shown(value: &Value) -> String {
    const SHOWN_MAX: usize = 40;
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

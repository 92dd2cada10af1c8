//! A JSON object that becomes octets: each member is taken once, and none may be left over.

use super::layer::{Absent, Field, Form, Layer};
use serde::de::DeserializeOwned;
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
    /// A part of the frame could not be read: nothing is computed that JSON leaves out.
    pub(super) is_broken: bool,
    /// The octets of that part.
    unread: Vec<u8>,
}

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
            Value::Object(members) => Ok(Object {
                path: path.to_owned(),
                members,
                asked: BTreeSet::new(),
                is_broken: false,
                unread: Vec::new(),
            }),
            other => Err(Fault {
                path: path.to_owned(),
                reason: format!("{} is not an object", shown(&other)),
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
        let entries = self.taken(key, "is not a list", "a list of objects", list)?;
        let entry = |(at, entry)| Object::new(&format!("{path}[{at}]"), entry);
        entries.map(|entries| entries.into_iter().enumerate().map(entry).collect()).transpose()
    }

    /// Takes octets in hexadecimal digits.
    ///
    /// # Errors
    /// If the member is something else.
    pub fn hex(&mut self, key: &'static str) -> Result<Option<Vec<u8>>, Fault> {
        let hint = "two hexadecimal digits an octet, as in \"00ff\"";
        self.taken(key, "is not hex", hint, |value| parse_hex(value.as_str()?))
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
        self.taken(key, "is not text", "a string", |value| value.as_str().map(str::to_owned))
    }

    /// Takes one of the words of `T`.
    ///
    /// # Errors
    /// If the member is something else.
    pub fn word<T: DeserializeOwned>(
        &mut self,
        key: &'static str,
        hint: &str,
    ) -> Result<Option<T>, Fault> {
        let word = self.text(key)?.map(|text| T::deserialize(Value::String(text)));
        word.transpose().map_err(|_| self.fault(key, "is neither", hint))
    }

    /// Takes `error`, the part of a frame that could not be read.
    ///
    /// # Errors
    /// If the member is something else.
    pub fn take_error(&mut self) -> Result<(), Fault> {
        let Some(mut error) = self.object("error")? else { return Ok(()) };
        error.ignore(&["layer", "offset", "reason"]);
        self.unread = error.hex("octets")?.unwrap_or_default();
        self.is_broken = true;
        error.finish()
    }

    /// Appends the octets that could not be read, if any.
    pub fn append_unread(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.unread);
    }

    /// Appends the octets that could not be read and the payload; returns how many octets both have.
    ///
    /// # Errors
    /// If the payload is not hex.
    pub fn append_rest(&mut self, out: &mut Vec<u8>) -> Result<usize, Fault> {
        let begin = out.len();
        self.append_unread(out);
        out.extend(self.hex("payload")?.unwrap_or_default());
        Ok(out.len() - begin)
    }

    /// Takes members that `decode` writes for people and that follow from the others.
    pub fn ignore(&mut self, keys: &[&'static str]) {
        for key in keys {
            self.take(key);
        }
    }

    /// Appends a CRC of `length` octets: as given, or what `computed` returns for the octets before it.
    ///
    /// # Errors
    /// If the member is something else.
    pub fn check(
        &mut self,
        key: &'static str,
        length: usize,
        out: &mut Vec<u8>,
        computed: impl FnOnce(&[u8]) -> u32,
    ) -> Result<(), Fault> {
        let mut given = Value::from("auto");
        match self.object(key)? {
            None if self.is_broken => return Ok(()),
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
        out.extend(octets.ok_or_else(|| {
            let digits = 2 * length;
            let hint = format!("\"0x\" and {digits} digits, octets as on the wire; or \"auto\"");
            self.fault(key, format!("{given} is not such a CRC"), hint)
        })?);
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
        object.finish().map(|()| Some(placed))
    }

    /// Appends a header whose fields are members of this object.
    ///
    /// # Errors
    /// If a field is missing or holds what it cannot.
    pub fn fields(&mut self, layer: &'static Layer, out: &mut Vec<u8>) -> Result<Placed, Fault> {
        let at = out.len();
        out.resize(at + layer.octets, 0);
        let mut placed = Placed { layer, at, computed: 0 };
        for (index, field) in layer.fields.iter().enumerate() {
            match self.field(field)? {
                Some(value) => field.write(&mut out[at..], value),
                None => placed.computed |= 1 << index,
            }
        }
        if layer.name.is_some() {
            self.take("name");
        }
        Ok(placed)
    }

    /// The value of a field; `None` if it has to be computed.
    fn field(&mut self, field: &'static Field) -> Result<Option<u128>, Fault> {
        let fault =
            |reason: String| Fault { path: self.path_of(field.name), reason, hint: kind_of(field) };
        let given = self.members.get(field.name);
        let value = match (given, field.absent) {
            (None, Absent::Or(value)) => Some(value.into()),
            (None, Absent::Required) => return Err(fault("is missing".to_owned())),
            (None, Absent::Computed) => None,
            (Some(auto), Absent::Computed) if auto == "auto" => None,
            (Some(value), _) => {
                let fits = given_value(field, value);
                Some(fits.ok_or_else(|| fault(format!("{} does not fit", shown(value))))?)
            }
        };
        self.take(field.name);
        Ok(value)
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
        let (field, value) = (self.layer.field(name), value as u128);
        if value > field.max() {
            return Err(Fault {
                path: format!("{}.{name}", self.layer.key),
                reason: format!("{value} would be needed"),
                hint: format!("{} bits hold at most {}", field.bits, field.max()),
            });
        }
        field.write(&mut out[self.at..], value);
        Ok(())
    }

    /// True if the field `name` has to be computed.
    pub fn wants(&self, name: &str) -> bool {
        let index = self.layer.fields.iter().position(|field| field.name == name);
        index.is_some_and(|index| self.computed >> index & 1 == 1)
    }
}

fn given_value(field: &Field, value: &Value) -> Option<u128> {
    let text = value.as_str();
    let up_to = |max: u128| number(value).map(u128::from).filter(|number| *number <= max);
    Some(match field.form {
        Form::Ipv6 => text?.parse::<Ipv6Addr>().ok()?.to_bits(),
        Form::Ipv4 => text?.parse::<Ipv4Addr>().ok()?.to_bits().into(),
        Form::Mac => mac(text?)?.into(),
        Form::Signed => match value.as_i64() {
            Some(n) if n < 0 => (n >= -1 << (field.bits - 1)).then_some(n as u128 & field.max())?,
            _ => up_to(field.max() >> 1)?,
        },
        Form::Number | Form::Code | Form::Wide => up_to(field.max())?,
    })
}

fn kind_of(field: &Field) -> String {
    let example = match field.form {
        Form::Ipv6 => "2001:db8::1",
        Form::Ipv4 => "192.0.2.1",
        Form::Mac => "02:00:00:00:00:01",
        Form::Signed => return format!("{} bits in two's complement", field.bits),
        Form::Number | Form::Code | Form::Wide => {
            let (bits, max) = (field.bits, field.max());
            return format!("{bits} bits: a number from 0 to {max}, or \"0x…\"");
        }
    };
    format!("an address as in {example:?}")
}

/// A number, `"0x…"`, or a flag as true or false.
fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::Bool(flag) => Some(u64::from(*flag)),
        Value::String(text) => {
            let digits = text.strip_prefix("0x").filter(|digits| !digits.starts_with('+'))?;
            u64::from_str_radix(digits, 16).ok()
        }
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

//! A frame as JSON, written directly into one buffer that all frames reuse.

use super::Meta;
use super::digits::{hex, number, signed, text};
use super::headers::SHIM;
use super::layer::{Form, Layer};
use super::sink::{Check, Sink};
use proto::events::Direction;
use std::fmt::{self, Arguments, Display, Write as _};

/// Writes each frame as one object on one line.
#[derive(Debug, Default)]
pub struct JsonSink {
    line: Vec<u8>,
    /// The defects as JSON strings, a comma before each.
    wrongs: Vec<u8>,
}

impl JsonSink {
    /// Begins the line of a frame.
    pub fn begin(&mut self, meta: &Meta<'_>) {
        self.line.clear();
        self.wrongs.clear();
        self.line.push(b'{');
        self.number("number", meta.number);
        if let Some(at_ns) = meta.at_ns {
            self.number("time_ns", at_ns);
        }
        if let Some(interface) = meta.interface {
            self.text("interface", interface);
        }
        if let Some(direction) = meta.direction {
            self.text("direction", if direction == Direction::Rx { "rx" } else { "tx" });
        }
        self.text("link", meta.technology);
        self.number("length", meta.length as u64);
        if meta.wire_length != meta.length {
            self.number("wire_length", meta.wire_length as u64);
        }
    }

    /// Ends the line and returns it.
    pub fn finish(&mut self) -> &[u8] {
        if let Some((_comma, wrongs)) = self.wrongs.split_first() {
            self.line.extend_from_slice(b",\"wrong\":[");
            self.line.extend_from_slice(wrongs);
            self.line.push(b']');
        }
        self.line.extend_from_slice(b"}\n");
        &self.line
    }

    /// Appends the key of a member; a comma separates it from the one before.
    fn key(&mut self, key: &str) {
        if !self.line.ends_with(b"{") {
            self.line.push(b',');
        }
        self.line.push(b'"');
        self.line.extend_from_slice(key.as_bytes());
        self.line.extend_from_slice(b"\":");
    }

    fn number(&mut self, key: &str, value: u64) {
        self.key(key);
        number(&mut self.line, value);
    }

    fn text(&mut self, key: &str, value: impl Display) {
        self.key(key);
        quoted(&mut self.line, value);
    }

    fn hex(&mut self, key: &str, prefix: &[u8], octets: &[u8]) {
        self.key(key);
        self.line.push(b'"');
        self.line.extend_from_slice(prefix);
        hex(&mut self.line, octets);
        self.line.push(b'"');
    }

    fn fields(&mut self, layer: &'static Layer, octets: &[u8]) {
        let line = &mut self.line;
        for (index, field) in layer.fields.iter().enumerate() {
            if index > 0 {
                line.push(b',');
            }
            line.extend_from_slice(field.opening.as_bytes());
            match field.form {
                Form::Number | Form::Code => number(line, field.read(octets)),
                Form::Signed => signed(line, field.bits, field.read(octets)),
                Form::Wide | Form::Mac | Form::Ipv4 | Form::Ipv6 => {
                    line.push(b'"');
                    text(line, field, octets);
                    line.push(b'"');
                }
            }
            if let (0, Some(name)) = (index, layer.name)
                && let Some(name) = name(field.read(octets))
            {
                line.extend_from_slice(b",\"name\":");
                quoted(line, name);
            }
        }
    }
}

impl Sink for JsonSink {
    fn header(&mut self, layer: &'static Layer, octets: &[u8]) {
        self.key(layer.key);
        self.line.push(b'{');
        self.fields(layer, octets);
        self.line.push(b'}');
    }

    fn octets(&mut self, key: &'static str, octets: &[u8]) {
        self.hex(key, b"", octets);
    }

    fn check(&mut self, check: Check<'_>) {
        self.key(check.key);
        self.line.push(b'{');
        self.hex("value", b"0x", check.present);
        self.key("ok");
        if check.holds() {
            self.line.extend_from_slice(b"true");
        } else {
            self.line.extend_from_slice(b"false");
            self.hex("expected", b"0x", check.expected());
        }
        self.line.push(b'}');
    }

    fn error(&mut self, layer: &str, offset: usize, reason: Arguments<'_>, octets: &[u8]) {
        self.key("error");
        self.line.push(b'{');
        self.text("layer", layer);
        self.number("offset", offset as u64);
        self.text("reason", reason);
        self.hex("octets", b"", octets);
        self.line.push(b'}');
    }

    fn wrong(&mut self, what: Arguments<'_>) {
        self.wrongs.push(b',');
        quoted(&mut self.wrongs, what);
    }

    fn begin_wrapped(&mut self, octets: &[u8], length: usize, is_first: bool) {
        if is_first {
            self.key(SHIM.key);
        }
        self.line.extend_from_slice(if is_first { b"[{" } else { b",{" });
        self.fields(&SHIM, octets);
        self.key("frame");
        self.line.push(b'{');
        self.number("length", length as u64);
    }

    fn end_wrapped(&mut self, is_last: bool) {
        self.line.extend_from_slice(if is_last { b"}}]" } else { b"}}" });
    }
}

/// Appends a JSON string: quotes, backslashes and control characters are escaped.
fn quoted(line: &mut Vec<u8>, text: impl Display) {
    line.push(b'"');
    // Writing to memory cannot fail.
    let _ = write!(Escaped(line), "{text}");
    line.push(b'"');
}

struct Escaped<'a>(&'a mut Vec<u8>);

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for octet in text.bytes() {
            match octet {
                b'"' | b'\\' => self.0.extend_from_slice(&[b'\\', octet]),
                0..0x20 => {
                    self.0.extend_from_slice(b"\\u00");
                    hex(self.0, &[octet]);
                }
                _ => self.0.push(octet),
            }
        }
        Ok(())
    }
}

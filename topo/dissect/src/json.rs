//! A frame as JSON, written directly into one buffer that all frames reuse.

use super::Meta;
use super::digits::{hex, number, signed, text};
use super::layer::{Form, Layer, Value};
use super::sink::{Check, Sink};
use proto::events::Direction;
use proto::technology::Technology;
use std::fmt::{Arguments, Write as _};

/// Writes each frame as one object on one line.
#[derive(Debug, Default)]
pub struct JsonSink {
    line: Vec<u8>,
    /// The defects as JSON strings, a comma before each.
    wrongs: Vec<u8>,
    /// Text before it is quoted.
    text: String,
    first_entry: bool,
}

impl JsonSink {
    /// Begins the line of a frame.
    pub fn begin(&mut self, meta: &Meta<'_>) {
        self.line.clear();
        self.wrongs.clear();
        let line = &mut self.line;
        line.extend_from_slice(b"{\"number\":");
        number(line, meta.number);
        if let Some(at_ns) = meta.at_ns {
            line.extend_from_slice(b",\"time_ns\":");
            number(line, at_ns);
        }
        if let Some(interface) = meta.interface {
            line.extend_from_slice(b",\"interface\":");
            quoted(line, interface);
        }
        match meta.direction {
            Some(Direction::Rx) => line.extend_from_slice(b",\"direction\":\"rx\""),
            Some(Direction::Tx) => line.extend_from_slice(b",\"direction\":\"tx\""),
            None => {}
        }
        line.extend_from_slice(match meta.technology {
            Technology::Infiniband => b",\"link\":\"infiniband\"".as_slice(),
            Technology::Ethernet => b",\"link\":\"ethernet\"",
        });
        line.extend_from_slice(b",\"length\":");
        number(line, meta.length as u64);
        if meta.wire_length != meta.length {
            line.extend_from_slice(b",\"wire_length\":");
            number(line, meta.wire_length as u64);
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

    fn fields(&mut self, layer: &'static Layer, octets: &[u8]) {
        let line = &mut self.line;
        for (index, (field, value)) in layer.read(octets).enumerate() {
            if index > 0 {
                line.push(b',');
            }
            line.extend_from_slice(field.opening.as_bytes());
            put(line, field.form, field.bits, value);
            if let (0, Some(name), Value::Bits(bits)) = (index, layer.name, value)
                && let Some(name) = name(bits)
            {
                line.extend_from_slice(b",\"name\":");
                quoted(line, name);
            }
        }
    }

    fn key(&mut self, key: &str) {
        self.line.extend_from_slice(b",\"");
        self.line.extend_from_slice(key.as_bytes());
        self.line.extend_from_slice(b"\":");
    }

    fn hex(&mut self, octets: &[u8]) {
        self.line.push(b'"');
        hex(&mut self.line, octets);
        self.line.push(b'"');
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
        self.key(key);
        self.hex(octets);
    }

    fn check(&mut self, check: Check<'_>) {
        self.key(check.key);
        self.line.extend_from_slice(b"{\"value\":\"0x");
        hex(&mut self.line, check.present);
        if check.holds() {
            self.line.extend_from_slice(b"\",\"ok\":true}");
            return;
        }
        self.line.extend_from_slice(b"\",\"ok\":false,\"expected\":\"0x");
        hex(&mut self.line, check.expected());
        self.line.extend_from_slice(b"\"}");
    }

    fn error(&mut self, layer: &str, offset: usize, reason: Arguments<'_>, octets: &[u8]) {
        self.key("error");
        self.line.extend_from_slice(b"{\"layer\":");
        quoted(&mut self.line, layer);
        self.line.extend_from_slice(b",\"offset\":");
        number(&mut self.line, offset as u64);
        self.line.extend_from_slice(b",\"reason\":");
        self.text.clear();
        let _ = self.text.write_fmt(reason);
        quoted(&mut self.line, &self.text);
        self.line.extend_from_slice(b",\"octets\":");
        self.hex(octets);
        self.line.push(b'}');
    }

    fn wrong(&mut self, what: Arguments<'_>) {
        self.text.clear();
        let _ = self.text.write_fmt(what);
        self.wrongs.push(b',');
        quoted(&mut self.wrongs, &self.text);
    }

    fn begin_list(&mut self, key: &'static str) {
        self.key(key);
        self.line.push(b'[');
        self.first_entry = true;
    }

    fn begin_wrapped(&mut self, layer: &'static Layer, octets: &[u8], length: usize) {
        if !std::mem::take(&mut self.first_entry) {
            self.line.push(b',');
        }
        self.line.push(b'{');
        self.fields(layer, octets);
        self.line.extend_from_slice(b",\"frame\":{\"length\":");
        number(&mut self.line, length as u64);
    }

    fn end_wrapped(&mut self) {
        self.line.extend_from_slice(b"}}");
        self.first_entry = false;
    }

    fn end_list(&mut self) {
        self.line.push(b']');
        self.first_entry = false;
    }
}

#[inline]
fn put(line: &mut Vec<u8>, form: Form, bits: usize, value: Value) {
    match (form, value) {
        (Form::Number | Form::Code, Value::Bits(value)) => number(line, value),
        (Form::Signed, Value::Bits(value)) => signed(line, bits, value),
        _ => {
            line.push(b'"');
            text(line, form, bits, value);
            line.push(b'"');
        }
    }
}

/// Appends a JSON string: quotes, backslashes and control characters are escaped.
fn quoted(line: &mut Vec<u8>, text: &str) {
    line.push(b'"');
    for octet in text.bytes() {
        match octet {
            b'"' | b'\\' => line.extend_from_slice(&[b'\\', octet]),
            0..0x20 => {
                line.extend_from_slice(b"\\u00");
                hex(line, &[octet]);
            }
            _ => line.push(octet),
        }
    }
    line.push(b'"');
}

//! A frame as people read it: a line of summary, its layers, and what is wrong with it.

use super::Meta;
use super::json::{hex, text};
use super::layer::{Form, Layer, Value};
use super::sink::{Check, Sink};
use std::fmt::{self, Arguments};
use std::io::Write as _;

/// Octets of a payload that are shown.
const SHOWN_MAX: usize = 64;

/// The column behind a layer's title.
const TITLE_WIDTH: usize = 12;

/// Octets in a row.
const ROW: usize = 16;

/// One frame, some lines.
#[derive(Debug, Default)]
pub struct TreeSink {
    all: Vec<u8>,
    body: Vec<u8>,
    wrongs: Vec<u8>,
    checks: Vec<u8>,
    what: Vec<u8>,
    ends: Vec<u8>,
    about: Vec<u8>,
    indent: usize,
}

impl TreeSink {
    /// Begins the lines of a frame.
    pub fn begin(&mut self, meta: &Meta<'_>) {
        for part in [&mut self.all, &mut self.body, &mut self.wrongs, &mut self.checks] {
            part.clear();
        }
        for part in [&mut self.what, &mut self.ends, &mut self.about] {
            part.clear();
        }
        self.indent = 1;
        put(&mut self.all, format_args!("#{}", meta.number));
        if let Some(at_ns) = meta.at_ns {
            let (seconds, rest) = (at_ns / 1_000_000_000, at_ns % 1_000_000_000);
            put(&mut self.all, format_args!("  {seconds}.{rest:09} s"));
        }
        if let Some(interface) = meta.interface {
            put(&mut self.all, format_args!("  {interface:?}"));
        }
        put(&mut self.about, format_args!("  {} octets", meta.length));
        if meta.length < meta.wire_length {
            let (there, all) = (meta.length, meta.wire_length);
            put(&mut self.checks, format_args!("  cut, {there} of {all} captured"));
        }
    }

    /// The lines, ended.
    pub fn finish(&mut self) -> &[u8] {
        if self.what.is_empty() {
            self.what.extend_from_slice(b"unreadable");
        }
        self.all.extend_from_slice(b"  ");
        for part in [&self.what, &self.ends, &self.about, &self.checks] {
            self.all.extend_from_slice(part);
        }
        self.all.push(b'\n');
        self.all.extend_from_slice(&self.body);
        self.all.extend_from_slice(&self.wrongs);
        &self.all
    }

    fn line(&mut self, title: &str) {
        blanks(&mut self.body, 2 * self.indent);
        self.body.extend_from_slice(title.as_bytes());
        blanks(&mut self.body, TITLE_WIDTH.saturating_sub(title.chars().count()));
    }

    /// What the summary says of a header; that of the innermost frame counts.
    fn summarise(&mut self, layer: &'static Layer, octets: &[u8]) {
        let get = |name: &str| layer.get(octets, name);
        match layer.key {
            "lrh" => self.ends_are(&layer, octets, "slid", "dlid", "raw packet"),
            "ethernet" => self.ends_are(&layer, octets, "src", "dst", "Ethernet"),
            "ipv4" => self.ends_are(&layer, octets, "src", "dst", "IPv4"),
            "ipv6" => self.ends_are(&layer, octets, "src", "dst", "IPv6"),
            "bth" => {
                let opcode = get("opcode");
                self.what.clear();
                match layer.name.and_then(|name| name(opcode)) {
                    Some(name) => self.what.extend_from_slice(name.as_bytes()),
                    None => put(&mut self.what, format_args!("opcode {opcode:#04x}")),
                }
                put(
                    &mut self.ends,
                    format_args!("  QP {:#08x}  PSN {}", get("destqp"), get("psn")),
                );
                for (flag, name) in [("f", "FECN"), ("b", "BECN")] {
                    if get(flag) == 1 {
                        put(&mut self.ends, format_args!("  {name}"));
                    }
                }
            }
            "flow_control" => {
                self.what.clear();
                self.what.extend_from_slice(b"flow control");
                let (vl, fctbs, fccl) = (get("vl"), get("fctbs"), get("fccl"));
                put(&mut self.ends, format_args!("  VL {vl}  FCTBS {fctbs}  FCCL {fccl}"));
            }
            "mac_control" | "cnm" | "udp" => {
                self.what.clear();
                self.what.extend_from_slice(layer.title.as_bytes());
            }
            _ => {}
        }
    }

    fn ends_are(
        &mut self,
        layer: &&'static Layer,
        octets: &[u8],
        from: &str,
        to: &str,
        what: &str,
    ) {
        self.what.clear();
        self.what.extend_from_slice(what.as_bytes());
        self.ends.clear();
        for (mark, name) in [("  ", from), (" → ", to)] {
            self.ends.extend_from_slice(mark.as_bytes());
            let found = layer.read(octets).find(|(field, _)| field.name == name);
            if let Some((field, value)) = found {
                text(&mut self.ends, field.form, field.bits, value);
            }
        }
    }

    fn fields(&mut self, layer: &'static Layer, octets: &[u8]) {
        self.line(layer.title);
        for (index, (field, value)) in layer.read(octets).enumerate() {
            // Reserved bits are news only where somebody set them.
            if field.is_reserved() && value == Value::Bits(0) {
                continue;
            }
            self.body.extend_from_slice(b"  ");
            self.body.extend_from_slice(field.name.as_bytes());
            self.body.push(b' ');
            match (field.form, value) {
                (Form::Number, Value::Bits(bits)) if field.bits >= 16 && is_code(field.name) => {
                    digits(&mut self.body, bits, field.bits / 4);
                }
                (form, value) => text(&mut self.body, form, field.bits, value),
            }
            if let (0, Some(name), Value::Bits(bits)) = (index, layer.name, value) {
                let name = name(bits).unwrap_or("unknown");
                put(&mut self.body, format_args!(" ({name})"));
            }
        }
        self.body.push(b'\n');
    }

    fn rows(&mut self, octets: &[u8]) {
        for (row, part) in octets[..octets.len().min(SHOWN_MAX)].chunks(ROW).enumerate() {
            blanks(&mut self.body, 2 * self.indent + 2);
            hex(&mut self.body, &((row * ROW) as u16).to_be_bytes());
            self.body.push(b' ');
            for octet in part {
                self.body.push(b' ');
                hex(&mut self.body, &[*octet]);
            }
            self.body.push(b'\n');
        }
        if octets.len() > SHOWN_MAX {
            let more = octets.len() - SHOWN_MAX;
            put(
                &mut self.body,
                format_args!("{:1$}… {more} more (--json has all)\n", "", 2 * self.indent + 2),
            );
        }
    }
}

/// Keys and types are read in hex.
fn is_code(name: &str) -> bool {
    matches!(
        name,
        "type" | "p_key" | "q_key" | "r_key" | "destqp" | "srcqp" | "opcode" | "checksum" | "enbv"
    )
}

impl Sink for TreeSink {
    fn header(&mut self, layer: &'static Layer, octets: &[u8]) {
        self.summarise(layer, octets);
        self.fields(layer, octets);
    }

    fn octets(&mut self, key: &'static str, octets: &[u8]) {
        if key == "payload" {
            self.about.clear();
            put(&mut self.about, format_args!("  {} octets", octets.len()));
        }
        if octets.is_empty() {
            return;
        }
        self.line(key);
        put(&mut self.body, format_args!("  {} octets", octets.len()));
        if octets.len() <= 4 || octets.iter().all(|octet| *octet == 0) {
            self.body.extend_from_slice(if octets.len() <= 4 { b" " } else { b", all zero" });
            if octets.len() <= 4 {
                hex(&mut self.body, octets);
            }
            self.body.push(b'\n');
            return;
        }
        self.body.push(b'\n');
        self.rows(octets);
    }

    fn check(&mut self, check: Check<'_>) {
        let verdict = Verdict(check);
        self.line(&check.key.to_ascii_uppercase());
        if check.holds() {
            self.body.extend_from_slice(b"  0x");
            hex(&mut self.body, check.present);
            self.body.extend_from_slice(b" ok\n");
            self.checks.extend_from_slice(b"  ");
            self.checks.extend_from_slice(check.key.as_bytes());
            self.checks.extend_from_slice(b" ok");
        } else {
            put(&mut self.body, format_args!("  {verdict}\n"));
            put(&mut self.checks, format_args!("  {} {verdict}", check.key));
            let (found, right) = (Octets(check.present), Octets(check.expected()));
            put(
                &mut self.wrongs,
                format_args!("  ✕ {} is {found}, should be {right}\n", check.key),
            );
        }
    }

    fn error(&mut self, layer: &str, offset: usize, reason: Arguments<'_>, octets: &[u8]) {
        self.line("unreadable");
        put(&mut self.body, format_args!("  {layer} at octet {offset}: {reason}\n"));
        self.rows(octets);
    }

    fn wrong(&mut self, what: Arguments<'_>) {
        put(&mut self.wrongs, format_args!("  ✕ {what}\n"));
    }

    fn begin_list(&mut self, _key: &'static str) {}

    fn begin_wrapped(&mut self, layer: &'static Layer, octets: &[u8], length: usize) {
        self.fields(layer, octets);
        self.about.clear();
        put(&mut self.about, format_args!("  {length} octets"));
        self.indent += 1;
    }

    fn end_wrapped(&mut self) {
        self.indent -= 1;
    }

    fn end_list(&mut self) {}
}

/// A CRC that is wrong, and what is to be said of it.
struct Verdict<'a>(Check<'a>);

impl fmt::Display for Verdict<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdict(check) = self;
        write!(f, "BAD {}, should be {}", Octets(check.present), Octets(check.expected()))
    }
}

/// Octets as one number in hex, in their order.
struct Octets<'a>(&'a [u8]);

impl fmt::Display for Octets<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

/// Formatting costs more than anything else here, so what every frame has is written without it.
fn blanks(line: &mut Vec<u8>, count: usize) {
    line.resize(line.len() + count, b' ');
}

/// A number as so many digits in hex.
fn digits(line: &mut Vec<u8>, bits: u64, count: usize) {
    line.extend_from_slice(b"0x");
    let digit = |place: usize| b"0123456789abcdef"[(bits >> (4 * place)) as usize & 15];
    line.extend((0..count).rev().map(digit));
}

/// Writing to memory cannot fail.
fn put(line: &mut Vec<u8>, what: Arguments<'_>) {
    let _ = line.write_fmt(what);
}

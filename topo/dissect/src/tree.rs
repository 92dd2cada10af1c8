//! A frame as a tree for people: one summary line, its layers, and its defects.

use super::Meta;
use super::digits::{digit, hex, number, text};
use super::headers::{BTH, ETHERNET, FLOW_CONTROL, IPV4, IPV6, LRH};
use super::layer::{Layer, Place, Value};
use super::sink::{Check, Sink};
use std::fmt::{self, Arguments};
use std::io::Write as _;

/// At most this many octets of a payload are shown.
const SHOWN_MAX: usize = 64;

/// Width of the column with the titles of layers, characters.
const TITLE_WIDTH: usize = 12;

/// Octets in a row of a hex dump.
const ROW: usize = 16;

/// Writes each frame as some lines of text.
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
        let TreeSink { all, body, wrongs, checks, what, ends, about, .. } = self;
        [all, body, wrongs, checks, what, ends, about].into_iter().for_each(Vec::clear);
        self.indent = 1;
        self.all.push(b'#');
        number(&mut self.all, meta.number);
        if let Some(at_ns) = meta.at_ns {
            seconds(&mut self.all, at_ns);
        }
        if let Some(interface) = meta.interface {
            put(&mut self.all, format_args!("  {interface:?}"));
        }
        count(&mut self.about, meta.length);
        if meta.length < meta.wire_length {
            let (there, all) = (meta.length, meta.wire_length);
            put(&mut self.checks, format_args!("  cut, {there} of {all} captured"));
        }
    }

    /// Ends the frame and returns its lines.
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

    /// Begins a line with a title; returns the title, which the caller may still change.
    fn line(&mut self, title: &str) -> &mut [u8] {
        blanks(&mut self.body, 2 * self.indent);
        let begin = self.body.len();
        self.body.extend_from_slice(title.as_bytes());
        blanks(&mut self.body, TITLE_WIDTH.saturating_sub(title.len()));
        &mut self.body[begin..]
    }

    /// Updates the summary line by a header; the innermost frame counts.
    fn summarise(&mut self, layer: &'static Layer, octets: &[u8]) {
        match layer.key {
            "lrh" => self.source_and_destination(
                "raw packet",
                octets,
                const { ends(&LRH, "slid", "dlid") },
            ),
            "ethernet" => self.source_and_destination(
                "Ethernet",
                octets,
                const { ends(&ETHERNET, "src", "dst") },
            ),
            "ipv4" => {
                self.source_and_destination("IPv4", octets, const { ends(&IPV4, "src", "dst") })
            }
            "ipv6" => {
                self.source_and_destination("IPv6", octets, const { ends(&IPV6, "src", "dst") })
            }
            "bth" => self.summarise_transport(octets),
            "flow_control" => {
                self.is("flow control");
                let get = |name| FLOW_CONTROL.get(octets, name);
                let (vl, fctbs, fccl) = (get("vl"), get("fctbs"), get("fccl"));
                put(&mut self.ends, format_args!("  VL {vl}  FCTBS {fctbs}  FCCL {fccl}"));
            }
            "mac_control" | "udp" => self.is(layer.title),
            "cnm" | "bcn" => {
                self.is(layer.title);
                let get = |name| (layer.get(octets, name) as u16).cast_signed();
                let [offset, delta] = ["qoffset", "qdelta"].map(get);
                put(&mut self.ends, format_args!("  Qoff {offset}  Qdelta {delta}"));
            }
            "test_frame" => {
                self.is(layer.title);
                let [flow, sequence] = ["flow", "sequence"].map(|name| layer.get(octets, name));
                put(&mut self.ends, format_args!("  flow {flow}  sequence {sequence}"));
            }
            _ => {}
        }
    }

    fn summarise_transport(&mut self, octets: &[u8]) {
        let opcode = const { BTH.place("opcode") }.read(octets);
        match BTH.name.and_then(|name| name(opcode)) {
            Some(name) => self.is(name),
            None => {
                self.what.clear();
                put(&mut self.what, format_args!("opcode {opcode:#04x}"));
            }
        }
        let ends = &mut self.ends;
        ends.extend_from_slice(b"  QP ");
        let pair = const { BTH.place("destqp") };
        text(ends, pair.field.form, pair.field.bits, pair.value(octets));
        ends.extend_from_slice(b"  PSN ");
        number(ends, const { BTH.place("psn") }.read(octets));
        if const { BTH.place("f") }.read(octets) == 1 {
            ends.extend_from_slice(b"  FECN");
        }
        if const { BTH.place("b") }.read(octets) == 1 {
            ends.extend_from_slice(b"  BECN");
        }
    }

    fn is(&mut self, what: &str) {
        self.what.clear();
        self.what.extend_from_slice(what.as_bytes());
    }

    fn source_and_destination(&mut self, what: &str, octets: &[u8], [from, to]: [Place; 2]) {
        self.is(what);
        self.ends.clear();
        for (mark, end) in [("  ", from), (" → ", to)] {
            self.ends.extend_from_slice(mark.as_bytes());
            text(&mut self.ends, end.field.form, end.field.bits, end.value(octets));
        }
    }

    fn fields(&mut self, layer: &'static Layer, octets: &[u8]) {
        self.line(layer.title);
        for (index, (field, value)) in layer.read(octets).enumerate() {
            // Reserved bits are shown only where they are set.
            if field.reserved && value == Value::Bits(0) {
                continue;
            }
            self.body.extend_from_slice(field.label.as_bytes());
            text(&mut self.body, field.form, field.bits, value);
            if let (0, Some(name), Value::Bits(bits)) = (index, layer.name, value) {
                self.body.extend_from_slice(b" (");
                self.body.extend_from_slice(name(bits).unwrap_or("unknown").as_bytes());
                self.body.push(b')');
            }
        }
        self.body.push(b'\n');
    }

    fn rows(&mut self, octets: &[u8]) {
        for (row, part) in octets[..octets.len().min(SHOWN_MAX)].chunks(ROW).enumerate() {
            blanks(&mut self.body, 2 * self.indent + 2);
            hex(&mut self.body, &((row * ROW) as u16).to_be_bytes());
            self.body.push(b' ');
            let mut columns = [[b' '; 3]; ROW];
            for (column, octet) in columns.iter_mut().zip(part) {
                *column = [b' ', digit(octet >> 4), digit(octet & 0xf)];
            }
            self.body.extend_from_slice(columns[..part.len()].as_flattened());
            self.body.push(b'\n');
        }
        if octets.len() > SHOWN_MAX {
            let more = octets.len() - SHOWN_MAX;
            blanks(&mut self.body, 2 * self.indent + 2);
            self.body.extend_from_slice("… ".as_bytes());
            number(&mut self.body, more as u64);
            self.body.extend_from_slice(b" more (--json has all)\n");
        }
    }
}

/// The fields with the source and the destination.
const fn ends(layer: &'static Layer, from: &str, to: &str) -> [Place; 2] {
    [layer.place(from), layer.place(to)]
}

impl Sink for TreeSink {
    fn header(&mut self, layer: &'static Layer, octets: &[u8]) {
        self.summarise(layer, octets);
        self.fields(layer, octets);
    }

    fn octets(&mut self, key: &'static str, octets: &[u8]) {
        if key == "payload" {
            self.about.clear();
            count(&mut self.about, octets.len());
        }
        if octets.is_empty() {
            return;
        }
        self.line(key);
        count(&mut self.body, octets.len());
        let (is_short, is_zero) = (octets.len() <= 4, octets.iter().all(|octet| *octet == 0));
        if is_short {
            self.body.push(b' ');
            hex(&mut self.body, octets);
        } else if is_zero {
            self.body.extend_from_slice(b", all zero");
        }
        self.body.push(b'\n');
        if !is_short && !is_zero {
            self.rows(octets);
        }
    }

    fn check(&mut self, check: Check<'_>) {
        let title = self.line(check.key);
        title.make_ascii_uppercase();
        if check.holds() {
            self.body.extend_from_slice(b"  0x");
            hex(&mut self.body, check.present);
            self.body.extend_from_slice(b" ok\n");
            self.checks.extend_from_slice(b"  ");
            self.checks.extend_from_slice(check.key.as_bytes());
            self.checks.extend_from_slice(b" ok");
        } else {
            let (key, found, right) = (check.key, Octets(check.present), Octets(check.expected()));
            put(&mut self.body, format_args!("  BAD {found}, should be {right}\n"));
            put(&mut self.checks, format_args!("  {key} BAD {found}, should be {right}"));
            put(&mut self.wrongs, format_args!("  ✕ {key} is {found}, should be {right}\n"));
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
        count(&mut self.about, length);
        self.indent += 1;
    }

    fn end_wrapped(&mut self) {
        self.indent -= 1;
    }

    fn end_list(&mut self) {}
}

/// Octets as one hexadecimal number, in wire order.
struct Octets<'a>(&'a [u8]);

impl fmt::Display for Octets<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

fn blanks(line: &mut Vec<u8>, count: usize) {
    line.resize(line.len() + count, b' ');
}

/// Appends a length in octets.
fn count(line: &mut Vec<u8>, octets: usize) {
    line.extend_from_slice(b"  ");
    number(line, octets as u64);
    line.extend_from_slice(b" octets");
}

/// Appends a time in seconds with nine decimals.
fn seconds(line: &mut Vec<u8>, mut ns: u64) {
    line.extend_from_slice(b"  ");
    number(line, ns / 1_000_000_000);
    let mut decimals = *b".000000000 s";
    for place in decimals[1..10].iter_mut().rev() {
        *place += (ns % 10) as u8;
        ns /= 10;
    }
    line.extend_from_slice(&decimals);
}

/// Appends formatted text; writing to memory cannot fail.
fn put(line: &mut Vec<u8>, what: Arguments<'_>) {
    let _ = line.write_fmt(what);
}

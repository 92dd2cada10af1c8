//! A frame as a tree for people: one summary line, its layers, and its defects.

use super::Meta;
use super::digits::{hex, number, pair, text};
use super::headers::*;
use super::layer::{Field, Layer};
use super::sink::{Check, Sink};
use std::fmt::Arguments;
use std::io::Write as _;

/// At most this many octets of a payload are shown.
const SHOWN_MAX: usize = 64;

/// Width of the column with the titles of layers, characters.
const TITLE_WIDTH: usize = 12;

/// Octets in a row of a hex dump.
const ROW: usize = 16;

/// Between the two addresses of a frame; they take the place of those of outer headers.
const ARROW: &str = " → ";

/// The fields of a layer in the summary line, after its title: by key, with a mark before each.
static SUMMARIES: [(&str, &[(&str, &Field)]); 11] = [
    ("lrh", &[("  ", LRH.field("slid")), (ARROW, LRH.field("dlid"))]),
    ("ethernet", &[("  ", ETHERNET.field("src")), (ARROW, ETHERNET.field("dst"))]),
    ("ipv4", &[("  ", IPV4.field("src")), (ARROW, IPV4.field("dst"))]),
    ("ipv6", &[("  ", IPV6.field("src")), (ARROW, IPV6.field("dst"))]),
    ("udp", &[]),
    ("bth", &[("  QP ", BTH.field("destqp")), ("  PSN ", BTH.field("psn"))]),
    (
        "flow_control",
        &[
            ("  VL ", FLOW_CONTROL.field("vl")),
            ("  FCTBS ", FLOW_CONTROL.field("fctbs")),
            ("  FCCL ", FLOW_CONTROL.field("fccl")),
        ],
    ),
    ("mac_control", &[]),
    ("cnm", &[("  Qoff ", CNM.field("qoffset")), ("  Qdelta ", CNM.field("qdelta"))]),
    ("bcn", &[("  Qoff ", BCN.field("qoffset")), ("  Qdelta ", BCN.field("qdelta"))]),
    (
        "test_frame",
        &[("  flow ", TEST_FRAME.field("flow")), ("  sequence ", TEST_FRAME.field("sequence"))],
    ),
];

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
            let (seconds, ns) = (at_ns / 1_000_000_000, at_ns % 1_000_000_000);
            put(&mut self.all, format_args!("  {seconds}.{ns:09} s"));
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
        let Some((key, fields)) = SUMMARIES.iter().find(|(key, _)| *key == layer.key) else {
            return;
        };
        self.what.clear();
        let what = match *key {
            "lrh" => Some("raw packet"),
            "bth" => opcode_name(octets[0].into()),
            _ => Some(layer.title),
        };
        match what {
            Some(what) => self.what.extend_from_slice(what.as_bytes()),
            None => put(&mut self.what, format_args!("opcode {:#04x}", octets[0])),
        }
        let ends = &mut self.ends;
        if fields.iter().any(|(mark, _)| *mark == ARROW) {
            ends.clear();
        }
        for (mark, field) in *fields {
            ends.extend_from_slice(mark.as_bytes());
            text(ends, field, octets);
        }
        let is_set = |flag: &Field| *key == "bth" && flag.read(octets) == 1;
        if is_set(const { BTH.field("f") }) {
            ends.extend_from_slice(b"  FECN");
        }
        if is_set(const { BTH.field("b") }) {
            ends.extend_from_slice(b"  BECN");
        }
    }

    fn fields(&mut self, layer: &'static Layer, octets: &[u8]) {
        self.line(layer.title);
        for (index, field) in layer.fields.iter().enumerate() {
            // Reserved bits are shown only where they are set.
            if field.reserved && field.read(octets) == 0 {
                continue;
            }
            self.body.extend_from_slice(field.label.as_bytes());
            text(&mut self.body, field, octets);
            if let (0, Some(name)) = (index, layer.name) {
                let name = name(field.read(octets)).unwrap_or("unknown");
                self.body.extend_from_slice(b" (");
                self.body.extend_from_slice(name.as_bytes());
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
            for octet in part {
                let [high, low] = pair(*octet);
                self.body.extend_from_slice(&[b' ', high, low]);
            }
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
            let (key, found, right) =
                (check.key, number_of(check.present), number_of(check.expected()));
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

    fn begin_wrapped(&mut self, octets: &[u8], length: usize, _is_first: bool) {
        self.fields(&SHIM, octets);
        self.about.clear();
        count(&mut self.about, length);
        self.indent += 1;
    }

    fn end_wrapped(&mut self, _is_last: bool) {
        self.indent -= 1;
    }
}

/// Octets as one hexadecimal number, in wire order.
fn number_of(octets: &[u8]) -> String {
    octets.iter().fold("0x".to_owned(), |number, octet| number + &format!("{octet:02x}"))
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

/// Appends formatted text; writing to memory cannot fail.
fn put(line: &mut Vec<u8>, what: Arguments<'_>) {
    let _ = line.write_fmt(what);
}

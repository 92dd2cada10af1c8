//! Hexadecimal text: one frame on each line, dumps with offsets, arrays and strings of programs.
//!
//! A row of a dump begins with its offset; offset 0 begins a frame, as in the output of `tcpdump -xx`, `xxd`,
//! `hexdump -C`, `od -A x -t x1` and Wireshark. Any other line is a whole frame, unless it is continued: it ends with a
//! comma or a backslash, or a brace is open.

use super::{Fcs, LINE_MAX, Meta, Packet, Visitor, next_line};
use crate::infiniband;
use proto::technology::Technology;
use row::{Row, Shape};
use std::io::{self, BufRead};

mod row;

/// At most this many lines of text above a dump are taken as its headings.
const HEADINGS_MAX: usize = 64;

const UNDERSTOOD: &str = "understood are a frame a line (10000080 50d5, 10:00:00, 0x10, 0x00, \\x10\\x00), \
                          dumps that begin with an offset (tcpdump -xx, xxd, hexdump -C, Wireshark), \
                          arrays in braces, pcap and pcapng";

/// Reads the lines of `input` to its end.
///
/// # Errors
/// Those of the visitor.
pub(super) fn visit(
    mut input: impl BufRead,
    technology: Option<Technology>,
    visitor: &mut impl Visitor,
) -> io::Result<()> {
    let mut line = Vec::new();
    let (state, octets, headings) = (State::Idle, Vec::new(), Vec::new());
    let mut text =
        Text { visitor, technology, number: 0, line: 0, octets, state, headings, frames: 0 };
    loop {
        line.clear();
        text.line += 1;
        match next_line(&mut input, &mut line, LINE_MAX) {
            Ok(true) if line.len() > LINE_MAX => {
                text.end_frame()?;
                text.complain(format!("longer than {LINE_MAX} characters"));
            }
            Ok(true) => text.line(line.trim_ascii_end())?,
            Ok(false) => break,
            Err(error) => {
                text.complain(error.to_string());
                break;
            }
        }
    }
    text.end_frame()?;
    text.report_headings();
    if text.frames == 0 {
        text.visitor.unreadable(&format!("no frame is in it: {UNDERSTOOD}"));
    }
    Ok(())
}

/// State after the line before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No frame is begun.
    Idle,
    /// The next line continues the frame.
    Open,
    /// The frame continues up to a closing brace.
    Braces,
    /// A dump with rows of this shape.
    Dump {
        shape: Shape,
        /// Where in the frame the last row begins.
        row: usize,
        /// A star stands for rows like the last.
        star: bool,
    },
    /// A broken dump; its rows are skipped.
    Lost(Shape),
}

struct Text<'v, V> {
    visitor: &'v mut V,
    technology: Option<Technology>,
    /// Number of the last frame; unreadable frames count.
    number: u64,
    line: u64,
    octets: Vec<u8>,
    state: State,
    /// Messages about lines that are not hexadecimal; dropped if a dump follows, because they were its headings.
    headings: Vec<String>,
    frames: u64,
}

impl<V: Visitor> Text<'_, V> {
    fn line(&mut self, line: &[u8]) -> io::Result<()> {
        if line.is_empty() {
            return if self.state == State::Braces { Ok(()) } else { self.end_frame() };
        }
        let shape = match &mut self.state {
            State::Open | State::Braces => return self.plain(line),
            State::Dump { star, .. } if line == b"*" => {
                *star = true;
                return Ok(());
            }
            State::Dump { shape, .. } | State::Lost(shape) => Some(*shape),
            State::Idle => None,
        };
        if let Some(row) = Row::parse(line, shape) {
            return self.row(row);
        }
        if shape.is_some() {
            self.end_frame()?;
        }
        self.plain(line)
    }

    fn row(&mut self, row: Row<'_>) -> io::Result<()> {
        if row.offset == 0 {
            self.end_frame()?;
            self.headings.clear();
            self.state = State::Dump { shape: row.shape, row: 0, star: false };
        }
        let State::Dump { shape, row: last, star } = self.state else {
            if !matches!(self.state, State::Lost(_)) {
                let offset = row.offset;
                self.complain(format!("a dump begins at offset {offset:#x}: rows are missing"));
            }
            self.state = State::Lost(row.shape);
            return Ok(());
        };
        let offset = usize::try_from(row.offset).unwrap_or(usize::MAX).min(LINE_MAX + 1);
        if star && offset <= LINE_MAX {
            let repeated = self.octets[last..].to_vec();
            while self.octets.len() < offset && !repeated.is_empty() {
                self.octets.extend_from_slice(&repeated);
            }
        }
        // A column of text can look like hexadecimal digits; the next offset gives the number of octets of the row.
        if offset > last && offset < self.octets.len() {
            self.octets.truncate(offset);
        }
        if offset != self.octets.len() {
            let there = self.octets.len();
            let said = row.offset;
            self.lose(shape, format!("offset {said:#x} after {there:#x} octets: rows are missing"));
            return Ok(());
        }
        match row.octets(&mut self.octets) {
            Ok(()) => self.state = State::Dump { shape, row: offset, star: false },
            Err(reason) => self.lose(shape, reason),
        }
        Ok(())
    }

    /// Gives up a broken dump.
    fn lose(&mut self, shape: Shape, reason: String) {
        self.complain(reason);
        self.octets.clear();
        self.state = State::Lost(shape);
    }

    fn plain(&mut self, line: &[u8]) -> io::Result<()> {
        let begin = match self.state {
            State::Idle => beginning(line),
            _ => 0,
        };
        let opens = line[..begin].ends_with(b"{");
        let before = self.octets.len();
        match hex(line, begin, &mut self.octets) {
            Err(reason) => {
                let state = std::mem::replace(&mut self.state, State::Idle);
                self.octets.clear();
                match state {
                    State::Idle if is_declaration(line) => {}
                    State::Idle if self.headings.len() < HEADINGS_MAX => {
                        self.headings.push(format!("line {}: {reason}", self.line));
                    }
                    _ => self.complain(reason),
                }
                Ok(())
            }
            Ok(end) => {
                let is_open = opens || self.state == State::Braces;
                self.state = match end {
                    _ if self.octets.len() > LINE_MAX => {
                        self.octets.clear();
                        self.complain(format!("more than {LINE_MAX} octets"));
                        State::Idle
                    }
                    End::Brace => State::Idle,
                    _ if is_open => State::Braces,
                    End::GoesOn if self.octets.len() > before => State::Open,
                    _ => State::Idle,
                };
                if self.state == State::Idle { self.end_frame() } else { Ok(()) }
            }
        }
    }

    /// Ends the frame, if there are octets.
    fn end_frame(&mut self) -> io::Result<()> {
        self.state = State::Idle;
        if self.octets.is_empty() {
            return Ok(());
        }
        self.report_headings();
        self.number += 1;
        self.frames += 1;
        let (number, length) = (self.number, self.octets.len());
        let technology = self.technology.unwrap_or_else(|| guess(&self.octets));
        let meta = Meta::new(number, technology, length);
        self.visitor.frame(Packet { meta, octets: &self.octets, fcs: Fcs::Auto })?;
        self.octets.clear();
        Ok(())
    }

    fn complain(&mut self, reason: String) {
        self.report_headings();
        self.number += 1;
        self.visitor.unreadable(&format!("line {}: {reason}", self.line));
    }

    /// Reports the lines that were not headings, since no dump followed.
    fn report_headings(&mut self) {
        for heading in std::mem::take(&mut self.headings) {
            self.number += 1;
            self.visitor.unreadable(&heading);
        }
    }
}

/// The technology of a frame, from its octets.
pub fn guess(octets: &[u8]) -> Technology {
    if infiniband::reads_like_ethernet(octets) && !infiniband::reads_like_packet(octets) {
        Technology::Ethernet
    } else {
        Technology::Infiniband
    }
}

/// True for a declaration beside an array, such as its length.
fn is_declaration(line: &[u8]) -> bool {
    line.contains(&b'=') && line.ends_with(b";")
}

/// Where the octets of a line begin: behind a brace, or at the first escape of a string.
fn beginning(line: &[u8]) -> usize {
    let brace = line.iter().position(|character| *character == b'{').map(|at| at + 1);
    let escape = line.windows(2).position(|pair| pair == b"\\x");
    brace.or(escape).unwrap_or(0)
}

/// How a line ends.
enum End {
    /// With nothing special.
    Line,
    /// With a closing brace.
    Brace,
    /// With a comma or a backslash.
    GoesOn,
}

/// Appends the octets of a line from `begin` on: pairs of digits with separators, `0x` or `\x` before any; `#` and `//`
/// begin a comment.
fn hex(line: &[u8], begin: usize, octets: &mut Vec<u8>) -> Result<End, String> {
    let digit = |at: usize| {
        let digit = (line[at] as char).to_digit(16).map(|digit| digit as u8);
        let shown = line[at].escape_ascii();
        digit.ok_or_else(|| format!("column {}: '{shown}' is not a hexadecimal digit", at + 1))
    };
    let (mut end, mut at) = (End::Line, begin);
    while let Some(character) = line.get(at).copied() {
        let (before, rest) = (if at > begin { line[at - 1] } else { b' ' }, &line[at + 1..]);
        match (character, rest.first()) {
            (b'#', _) | (b'/', Some(b'/')) => break,
            (b'/', Some(b'*')) => {
                let length = rest.windows(2).position(|pair| pair == b"*/");
                at += length.map_or(rest.len(), |length| length + 2);
            }
            (b'}', _) => return Ok(End::Brace),
            (b',' | b'\\', _) => end = End::GoesOn,
            (b' ' | b'\t', _) => {}
            (separator, _) if is_separator(separator) => end = End::Line,
            (b'x', _) if before == b'\\' => {}
            // A comment ends with a slash.
            (b'0', Some(b'x' | b'X')) if before == b'/' || is_separator(before) => {
                (at, end) = (at + 1, End::Line);
            }
            (_, second) => {
                let high = digit(at)?;
                (at, end) = (at + 1, End::Line);
                match second {
                    None | Some(b'#') => return Err("an odd number of digits".to_owned()),
                    Some(second) if is_separator(*second) => {
                        let column = at + 1;
                        return Err(format!(
                            "column {column}: a digit is missing, an octet has two"
                        ));
                    }
                    Some(_) => octets.push(high << 4 | digit(at)?),
                }
            }
        }
        at += 1;
    }
    Ok(end)
}

/// True for a separator of octets.
fn is_separator(character: u8) -> bool {
    b" \t:-,;\"'()[]\\".contains(&character)
}

#[cfg(test)]
mod tests;

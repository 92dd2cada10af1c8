//! The output of a command, in bounded memory: its begin and its end.

use host::text::escaped;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Write};

/// Octets that are kept of the begin, and as many of the end.
const HALF: usize = 512 << 10;

/// Takes any number of octets and keeps the first and the last of them.
#[derive(Debug, Default)]
pub(super) struct Output {
    begin: Vec<u8>,
    end: VecDeque<u8>,
    /// Octets between both that were left out.
    pub left_out: u64,
}

impl Output {
    fn push(&mut self, octets: &[u8]) {
        let (first, rest) = octets.split_at(octets.len().min(HALF - self.begin.len()));
        self.begin.extend_from_slice(first);
        self.end.extend(rest);
        let excess = self.end.len().saturating_sub(HALF);
        self.end.drain(..excess);
        self.left_out += excess as u64;
    }

    /// Octets that were taken.
    pub fn octets(&self) -> u64 {
        (self.begin.len() + self.end.len()) as u64 + self.left_out
    }

    /// As text with escaped control characters. A line states what was left out.
    pub fn text(&self) -> String {
        let end: Vec<u8> = self.end.iter().copied().collect();
        match self.left_out {
            0 => escaped(&[&self.begin[..], &end].concat()),
            octets => format!(
                "{}\n[{octets} octets of output are left out here]\n{}",
                escaped(&self.begin),
                escaped(&end)
            ),
        }
    }
}

/// One of several writers into the same output.
#[derive(Debug)]
pub(super) struct Writer<'a>(pub &'a RefCell<Output>);

impl Write for Writer<'_> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().push(octets);
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_kept_whole_or_with_its_begin_and_its_end() {
        let output = RefCell::new(Output::default());
        let mut stdout = Writer(&output);
        let mut stderr = Writer(&output);
        stdout.write_all(b"a\x1bb\n").expect("memory");
        stderr.write_all(b"c").expect("memory");
        assert_eq!(output.borrow().text(), "a\\u{1b}b\nc");
        for _ in 0..100 {
            stdout.write_all(&[b'x'; 100_000]).expect("memory");
        }
        stdout.write_all(b"end").expect("memory");
        let output = output.borrow();
        assert_eq!(output.octets(), 5 + 10_000_000 + 3);
        assert_eq!(output.left_out, output.octets() - 2 * HALF as u64);
        let text = output.text();
        assert!(text.starts_with("a\\u{1b}b\ncxxx") && text.ends_with("xxend"));
        assert!(text.contains(&format!("[{} octets of output", output.left_out)));
        assert!(text.len() < 2 * HALF + 100);
    }
}

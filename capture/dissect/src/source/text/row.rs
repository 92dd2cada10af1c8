//! A row of a hex dump: an offset, octets, and often the same octets as characters.

use crate::object::parse_hex;

/// The format of the offsets of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    digits: usize,
    has_colon: bool,
}

/// One row whose octets are not yet read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'a> {
    /// The format of its offset.
    pub shape: Shape,
    /// Octets of the frame before the row.
    pub offset: u64,
    /// The line behind the offset, from column `column` on.
    rest: &'a [u8],
    column: usize,
}

/// Least number of digits of an offset without a colon.
const DIGITS_MIN: usize = 4;

/// Octets after which some tools leave a wider space.
const HALF_ROW: usize = 8;

impl<'a> Row<'a> {
    /// Reads the offset of `line`; `None` if it has none. `known` is the format of the rows before. A first row without a
    /// colon must have offset 0 and single octets; anything else could be a plain frame.
    pub(super) fn parse(line: &'a [u8], known: Option<Shape>) -> Option<Row<'a>> {
        let indent = line.iter().take_while(|character| character.is_ascii_whitespace()).count();
        let prefix = if line[indent..].starts_with(b"0x") { 2 } else { 0 };
        let begin = indent + prefix;
        let digits = line[begin..].iter().take_while(|digit| digit.is_ascii_hexdigit()).count();
        let text = std::str::from_utf8(&line[begin..begin + digits]).ok()?;
        let offset = u64::from_str_radix(text, 16).ok()?;
        let behind = begin + digits;
        let has_colon = line.get(behind) == Some(&b':');
        let column = behind + usize::from(has_colon);
        let rest = &line[column..];
        if rest.first().is_some_and(|next| !next.is_ascii_whitespace()) {
            return None;
        }
        let shape = Shape { digits, has_colon };
        let row = Row { shape, offset, rest, column };
        let begins = match has_colon {
            true => digits > 2 && (known.is_none() || offset == 0),
            false => {
                let is_offset = prefix == 0 && digits >= DIGITS_MIN && offset == 0;
                is_offset && (row.first_digits() == 2 || row.is_of_words())
            }
        };
        (begins || known == Some(shape)).then_some(row)
    }

    /// Digits of the first word behind the offset; 0 if it is not hexadecimal.
    fn first_digits(&self) -> usize {
        let word = self.rest.split(u8::is_ascii_whitespace).find(|word| !word.is_empty());
        word.filter(|word| word.iter().all(u8::is_ascii_hexdigit)).map_or(0, <[u8]>::len)
    }

    /// True for words in host byte order, as `hexdump` and `od` write them without options.
    fn is_of_words(&self) -> bool {
        !self.shape.has_colon && self.shape.digits == 7 && self.first_digits() > 2
    }

    /// Appends the octets up to the column of characters.
    ///
    /// # Errors
    /// What is not hexadecimal, in a sentence without a full stop.
    pub(super) fn octets(&self, octets: &mut Vec<u8>) -> Result<(), String> {
        if self.is_of_words() {
            return Err(
                "words in this machine's order: use hexdump -C, od -A x -t x1 or xxd".to_owned()
            );
        }
        let begin = octets.len();
        let mut at = 0;
        while at < self.rest.len() {
            let gap =
                self.rest[at..].iter().take_while(|octet| octet.is_ascii_whitespace()).count();
            let word = &self.rest[at + gap..];
            let word = word.split(u8::is_ascii_whitespace).next().unwrap_or_default();
            let present = octets.len() - begin;
            // A wide space precedes the characters, except the one in the middle of a row.
            if present > 0 && gap > 1 && !(gap == 2 && present == HALF_ROW && word.len() == 2) {
                return Ok(());
            }
            let hex = parse_hex(std::str::from_utf8(word).unwrap_or("?"));
            match hex {
                Some(hex) => octets.extend(hex),
                None if present > 0 && (gap > 1 || matches!(word[0], b'|' | b'>')) => return Ok(()),
                None => {
                    let column = self.column + at + gap + 1;
                    let shown = word.escape_ascii();
                    return Err(format!(
                        "column {column}: '{shown}' is not a pair of hexadecimal digits"
                    ));
                }
            }
            at += gap + word.len();
        }
        Ok(())
    }
}

//! Text from hosts, which is not trusted: control characters could change a terminal.

/// The text of `octets` with control characters other than ends of lines and tabs as `\u{1b}`. A carriage return
/// before the end of a line is left out, since consoles send it; octets that are not UTF-8 become U+FFFD.
pub fn escaped(octets: &[u8]) -> String {
    let text = String::from_utf8_lossy(octets).replace("\r\n", "\n");
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\t' => shown.push(letter),
            _ if letter.is_control() => shown.extend(letter.escape_unicode()),
            _ => shown.push(letter),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn no_control_character_passes() {
        assert_eq!(escaped(b"a\tb\r\nc\n"), "a\tb\nc\n");
        assert_eq!(escaped(b"\x1b[2J\x07\r"), "\\u{1b}[2J\\u{7}\\u{d}");
        assert_eq!(escaped("12 \u{b5}s \u{9b}".as_bytes()), "12 \u{b5}s \\u{9b}");
        assert_eq!(escaped(&[0x9b, b'x']), "\u{fffd}x");
    }
}

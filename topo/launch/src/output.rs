//! `print!` and `println!` that survive a closed pipe, as in `pausebed … | head`.
//!
//! The macros of the standard library panic when the reader has closed the pipe, and a panic would lose the run.
//! These macros take their place in every crate of the launcher: the run goes on to its end and its exit code.
//! What does not fit into standard error, for example a log on a full disk, is left out.
//!
//! Data is printed as it is. Messages and tables for people (`say!`, `eprintln!`) are adapted to the terminal: its
//! width, and its characters.

use std::borrow::Cow;
use std::fmt::Arguments;
use std::io::{ErrorKind, IsTerminal, Write, stderr, stdout};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// More than ASCII.
    pub unicode: bool,
    /// Columns of standard output, if it is a terminal.
    pub width: Option<usize>,
    /// Columns of standard error, if it is a terminal.
    pub width_of_messages: Option<usize>,
}

static TERMINAL: OnceLock<Terminal> = OnceLock::new();
static QUIET: AtomicBool = AtomicBool::new(false);

/// Adapts everything that is printed from now on to the locale and the terminal.
pub fn adapt() {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
    let columns =
        set("COLUMNS").and_then(|columns| columns.parse().ok()).filter(|columns| *columns > 0);
    TERMINAL.get_or_init(|| Terminal {
        unicode: has_unicode(locale.as_deref(), set("TERM").as_deref()),
        width: columns.or_else(|| width_of(stdout())),
        width_of_messages: columns.or_else(|| width_of(stderr())),
    });
}

/// What the terminal can show: everything, as long as nothing is known about it.
pub fn terminal() -> Terminal {
    let any = Terminal { unicode: true, width: None, width_of_messages: None };
    TERMINAL.get().copied().unwrap_or(any)
}

/// Leaves out all messages from now on but errors.
pub fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether messages are left out.
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

fn has_unicode(locale: Option<&str>, term: Option<&str>) -> bool {
    !matches!(locale, Some("C" | "POSIX")) && term != Some("dumb")
}

fn width_of(stream: impl IsTerminal + AsFd) -> Option<usize> {
    let size = terminal_size::terminal_size_of(&stream).filter(|_| stream.is_terminal());
    size.map(|(width, _)| width.0.into())
}

/// Characters that messages and tables use, and what stands for them in ASCII.
const ASCII: &[(char, &str)] = &[
    ('✓', "+"),
    ('✕', "x"),
    ('◐', "~"),
    ('×', "x"),
    ('·', "*"),
    ('–', "-"),
    ('—', "-"),
    ('−', "-"),
    ('→', "->"),
    ('≥', ">="),
    ('≤', "<="),
    ('±', "+-"),
    ('…', "..."),
    ('µ', "u"),
    ('μ', "u"),
    ('τ', "tau"),
    ('α', "alpha"),
    ('σ', "sigma"),
    ('Δ', "d"),
    ('λ', "lambda"),
    ('²', "2"),
];

/// `text` in ASCII. Where a character becomes several, the next gap of a table is that much shorter.
fn ascii(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut excess = 0;
    for c in text.chars() {
        match ASCII.iter().find(|(known, _)| *known == c) {
            _ if c == ' ' && excess > 0 && plain.ends_with(' ') => excess -= 1,
            _ if c.is_ascii() => {
                plain.push(c);
                excess = if c == '\n' { 0 } else { excess };
            }
            Some((_, instead)) => {
                plain.push_str(instead);
                excess += instead.len() - 1;
            }
            None => plain.push('?'),
        }
    }
    plain
}

/// `text` with lines of at most `width` characters, broken at spaces; what follows a break is indented.
fn wrapped(text: &str, width: usize) -> String {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let indent = line.len() - line.trim_start().len() + 2;
        let mut rest = line.to_owned();
        while rest.chars().count() > width {
            let end = rest.char_indices().nth(width).map_or(rest.len(), |(at, _)| at);
            let start = end.min(rest.len() - rest.trim_start().len());
            let before = || rest[start..end].rfind(' ').map(|at| at + start);
            // A word that is longer than a line, such as a path, stays whole.
            let after = || rest[end..].find(' ').map(|at| at + end);
            let gap =
                if rest[end..].starts_with(' ') { Some(end) } else { before().or_else(after) };
            let Some(gap) = gap else { break };
            lines.push(rest[..gap].trim_end().to_owned());
            rest = format!("{:indent$}{}", "", rest[gap..].trim_start());
        }
        lines.push(rest);
    }
    lines.join("\n")
}

/// `text` for people, as a terminal of `width` columns shows it.
pub fn shown(text: &str, width: Option<usize>) -> Cow<'_, str> {
    let plain = match terminal().unicode || text.is_ascii() {
        true => Cow::Borrowed(text),
        false => Cow::Owned(ascii(text)),
    };
    match width {
        Some(width) if text.len() > width => Cow::Owned(wrapped(&plain, width)),
        _ => plain,
    }
}

/// Prints to `stream`. A closed pipe is not an error.
///
/// # Panics
/// On any other error, because a full disk must not look like success.
pub fn print_to(mut stream: impl Write, text: Arguments<'_>) {
    match stream.write_fmt(text).and_then(|()| stream.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => panic!("cannot print: {error}"),
        _ => {}
    }
}

/// Prints to `stream`, and ignores every error: a log on a full disk must not end a lab.
pub fn try_print_to(mut stream: impl Write, text: Arguments<'_>) {
    let _ = stream.write_fmt(text);
}

/// Prints to standard output; a reader that has closed the pipe is not an error.
#[macro_export]
macro_rules! print {
    ($($text:tt)*) => { $crate::output::print_to(std::io::stdout(), format_args!($($text)*)) };
}

/// Prints a line to standard output; a reader that has closed the pipe is not an error.
#[macro_export]
macro_rules! println {
    () => { print!("\n") };
    ($($text:tt)*) => { print!("{}\n", format_args!($($text)*)) };
}

/// Prints a message for people to standard error, unless messages are left out.
pub fn note(text: Arguments<'_>) {
    if !is_quiet() {
        alert(text);
    }
}

/// Prints an error for people to standard error.
pub fn alert(text: Arguments<'_>) {
    let width = terminal().width_of_messages;
    try_print_to(stderr(), format_args!("{}", shown(&text.to_string(), width)));
}

/// Prints a line for people to standard output.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => {{
        let width = $crate::output::terminal().width;
        println!("{}", $crate::output::shown(&format!($($text)*), width));
    }};
}

/// Prints a line to standard error, even if messages are left out.
#[macro_export]
macro_rules! alert {
    ($($text:tt)*) => { $crate::output::alert(format_args!("{}\n", format_args!($($text)*))) };
}

/// Prints a message to standard error; what cannot be written is left out.
#[macro_export]
macro_rules! eprint {
    ($($text:tt)*) => { $crate::output::note(format_args!($($text)*)) };
}

/// Prints a message and a line end to standard error; what cannot be written is left out.
#[macro_export]
macro_rules! eprintln {
    () => { eprint!("\n") };
    ($($text:tt)*) => { eprint!("{}\n", format_args!($($text)*)) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    /// A stream that refuses every write with this error.
    struct Refusing(ErrorKind);

    impl Write for Refusing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn ascii_stands_for_every_sign_and_columns_stay_where_they_are() {
        let table = "  hot   ≥ 0.9   0.95  ✓\n  cold  0.8     0.85  ✕";
        assert_eq!(ascii(table), "  hot   >= 0.9  0.95  +\n  cold  0.8     0.85  x");
        assert_eq!(ascii("965× → 20 τ, 3 µs, ü"), "965x -> 20 tau, 3 us, ?");
    }

    #[test]
    fn long_lines_are_broken_at_spaces_and_long_words_stay_whole() {
        assert_eq!(wrapped("  one two three\nfour", 9), "  one two\n    three\nfour");
        assert_eq!(wrapped("see /a/very/long/path now", 8), "see\n  /a/very/long/path\n  now");
        assert_eq!(wrapped("short", 5), "short");
    }

    #[test]
    fn the_locale_and_the_terminal_decide_about_characters() {
        assert!(has_unicode(None, None) && has_unicode(Some("C.UTF-8"), Some("xterm")));
        assert!(!has_unicode(Some("C"), None) && !has_unicode(Some("POSIX"), Some("xterm")));
        assert!(!has_unicode(Some("de_DE.UTF-8"), Some("dumb")));
    }

    #[test]
    fn a_closed_pipe_is_no_error() {
        print_to(Refusing(ErrorKind::BrokenPipe), format_args!("{}", 1));
    }

    #[test]
    fn messages_on_a_full_disk_are_left_out() {
        try_print_to(Refusing(ErrorKind::StorageFull), format_args!("{}", 1));
    }

    #[test]
    #[should_panic(expected = "cannot print")]
    fn data_on_a_full_disk_is_an_error() {
        print_to(Refusing(ErrorKind::StorageFull), format_args!("{}", 1));
    }
}

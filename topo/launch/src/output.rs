//! `print!` and `println!` that survive a closed pipe, as in `pausebed … | head`.
//!
//! The macros of the standard library panic when the reader has closed the pipe, and a panic would lose the run.
//! These macros take their place in every crate of the launcher: the run goes on to its end and its exit code.
//! What does not fit into standard error, for example a log on a full disk, is left out.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write};

/// Prints to `stream`. A closed pipe is no error.
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

/// Prints to standard output; a reader that has closed the pipe is no error.
#[macro_export]
macro_rules! print {
    ($($text:tt)*) => { $crate::output::print_to(std::io::stdout(), format_args!($($text)*)) };
}

/// Prints a line to standard output; a reader that has closed the pipe is no error.
#[macro_export]
macro_rules! println {
    () => { print!("\n") };
    ($($text:tt)*) => { print!("{}\n", format_args!($($text)*)) };
}

/// Prints to standard error; what cannot be written is left out.
#[macro_export]
macro_rules! eprint {
    ($($text:tt)*) => { $crate::output::try_print_to(std::io::stderr(), format_args!($($text)*)) };
}

/// Prints a line to standard error; what cannot be written is left out.
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

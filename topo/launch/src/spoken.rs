//! Printing to somebody who may have gone: `pausebed … | head` is no fault of ours.
//!
//! The macros of the standard library panic when their reader has closed the pipe. A panic in the midst of
//! a run would be a run lost, so these take their place in the whole crate: what nobody reads is not
//! printed, and the run goes on to its end and its exit code. Standard error may be a log on a full disk:
//! what does not fit there is left out.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write};

/// Prints to `stream`.
///
/// # Panics
/// If it fails for any other reason than a reader who has gone: a full disk must not pass for success.
pub fn speak(mut stream: impl Write, text: Arguments<'_>) {
    match stream.write_fmt(text).and_then(|()| stream.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        Err(error) => panic!("cannot print: {error}"),
    }
}

/// Says something on `stream`, where nobody waits for it: a log on a full disk ends no lab.
pub fn mutter(mut stream: impl Write, text: Arguments<'_>) {
    // There is nobody left to tell.
    let _ = stream.write_fmt(text);
}

/// Prints to standard output; a reader that has closed the pipe is no error.
#[macro_export]
macro_rules! print {
    ($($text:tt)*) => { $crate::spoken::speak(std::io::stdout(), format_args!($($text)*)) };
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
    ($($text:tt)*) => { $crate::spoken::mutter(std::io::stderr(), format_args!($($text)*)) };
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

    /// Whoever stands at the other end.
    struct Reader(ErrorKind);

    impl Write for Reader {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_who_has_gone_is_no_fault() {
        speak(Reader(ErrorKind::BrokenPipe), format_args!("{}", 1));
    }

    #[test]
    fn what_nobody_waits_for_may_get_lost() {
        mutter(Reader(ErrorKind::StorageFull), format_args!("{}", 1));
    }

    #[test]
    #[should_panic(expected = "cannot print")]
    fn a_full_disk_is() {
        speak(Reader(ErrorKind::StorageFull), format_args!("{}", 1));
    }
}

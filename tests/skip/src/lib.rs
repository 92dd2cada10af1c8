//! Tests, or parts of tests, that cannot run on this machine: each says why, and `test.sh` lists the reasons.
//!
//! Cargo shows no output of a test that passes. So the reason goes to standard error, and to the file that the environment
//! variable `PAUSEBED_SKIPPED` names. A reason that begins with `CONFIG_` names an option that the kernel was built
//! without; `test.sh` accepts no other reason where it could install all programs.

use std::fmt;
use std::fs::File;
use std::io::Write;

/// States why a test, or a part of it, is skipped; arguments as of `format!`.
#[macro_export]
macro_rules! because {
    ($($reason:tt)*) => { $crate::note(format_args!($($reason)*)) };
}

/// The function behind [`because`].
///
/// # Panics
///
/// If the file that `PAUSEBED_SKIPPED` names cannot be written.
pub fn note(reason: fmt::Arguments<'_>) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a thread of a test");
    // One line and one write: tests of several processes append to the file.
    let line = format!("{reason} ({test})").replace('\n', " ");
    eprintln!("SKIPPED: {line}");
    if let Some(file) = std::env::var_os("PAUSEBED_SKIPPED") {
        let file = File::options().create(true).append(true).open(file);
        file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()))
            .expect("PAUSEBED_SKIPPED names a file that can be written");
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test starts itself once more")]
mod tests;

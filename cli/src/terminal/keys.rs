//! Keys of the terminal, one by one.

use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use std::io::{self, Read};

/// Waits for a key and returns it; none at the end of standard input.
pub fn key() -> Option<u8> {
    let raw = RawTerminal::enter();
    let mut key = [0];
    let read = io::stdin().lock().read_exact(&mut key);
    drop(raw);
    read.ok().map(|()| key[0])
}

/// The terminal passes every key on. Its settings return when this value is dropped.
pub struct RawTerminal(Option<Termios>);

impl RawTerminal {
    /// Stops the terminal of standard input from handling keys; does nothing where there is none.
    pub fn enter() -> RawTerminal {
        // What is not a terminal has no settings.
        let before = tcgetattr(io::stdin()).ok();
        if let Some(before) = &before {
            let mut raw = before.clone();
            cfmakeraw(&mut raw);
            let _ = tcsetattr(io::stdin(), SetArg::TCSAFLUSH, &raw);
        }
        RawTerminal(before)
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = tcsetattr(io::stdin(), SetArg::TCSAFLUSH, before);
        }
    }
}

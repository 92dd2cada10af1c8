//! Ctrl-C and SIGTERM: noted by a handler, asked for by whoever can stop in good order.

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_: libc::c_int) {
    REQUESTED.store(true, Ordering::Relaxed);
}

/// From now on Ctrl-C and SIGTERM are noted instead of ending the process at once.
pub fn watch() {
    let action = SigAction::new(SigHandler::Handler(note), SaFlags::empty(), SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        // SAFETY: the handler only stores to an atomic, which is allowed in a signal handler.
        let set = unsafe { sigaction(signal, &action) };
        set.expect("these signals can be handled");
    }
}

/// Whether somebody wants the run to end.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

//! Ctrl-C and SIGTERM: a handler sets a flag, and loops that can stop cleanly read it.

use emulation::clock::monotonic_ns;
use emulation::timer;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_: libc::c_int) {
    REQUESTED.store(true, Ordering::Relaxed);
}

/// Installs handlers, so that Ctrl-C and SIGTERM set the flag instead of ending the process.
pub fn install_handlers() {
    let action = SigAction::new(SigHandler::Handler(note), SaFlags::empty(), SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        // SAFETY: the handler only stores to an atomic, which is allowed in a signal handler.
        // Test: ctrl_c_ends_with_130_and_leaves_nothing_behind.
        let set = unsafe { sigaction(signal, &action) };
        set.expect("these signals can be handled");
    }
}

/// Waits for `ns` nanoseconds, or until a signal arrives.
pub fn pause(ns: u64) {
    timer::wait(None, monotonic_ns() + ns);
}

/// Sets the flag as a signal does, or clears it: for programs with signal handlers of their own, such as Python.
pub fn request(is_requested: bool) {
    REQUESTED.store(is_requested, Ordering::Relaxed);
}

/// Whether a signal has asked for the end.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

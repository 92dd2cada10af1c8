//! Fuzz target that calls `pausebed_fuzz::congestion::check`.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| pausebed_fuzz::congestion::check(octets));

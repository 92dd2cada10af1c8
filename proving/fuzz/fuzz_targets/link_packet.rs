//! Fuzz target that calls `pausebed_fuzz::link_packet::check`.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| pausebed_fuzz::link_packet::check(octets));

//! Fuzz target that calls `pausebed_fuzz::roce_nic::check`.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| pausebed_fuzz::roce_nic::check(octets));

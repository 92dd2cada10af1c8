//! What a virtual machine and its host say to each other. The first process of the machine, `guestd`, and the crate
//! `host` share these types; the program itself is in `main.rs`.

pub mod protocol;

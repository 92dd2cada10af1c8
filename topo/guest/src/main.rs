//! `guestd`: the first process of a virtual machine.

fn main() {}

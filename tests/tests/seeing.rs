//! Labs observed by other programs: browsers, Prometheus with the dashboard, Wireshark.

#![expect(clippy::disallowed_methods, reason = "these tests start programs")]

#[path = "seeing/board.rs"]
mod board;
#[path = "seeing/extcap.rs"]
mod extcap;
#[path = "live/hostile.rs"]
#[allow(dead_code, reason = "laboratory.rs asks it for the ports of daemons")]
mod hostile;
#[path = "live/laboratory.rs"]
#[allow(dead_code, reason = "the tests of live.rs use more of it")]
mod laboratory;
#[path = "lab/place.rs"]
#[allow(dead_code, reason = "the tests of lab.rs use more of it")]
mod place;
#[path = "seeing/served.rs"]
mod served;

use place::{ETHERNET, INFINIBAND, Place};
use std::ops::Deref;
use std::process::{Command, Output};

/// A running lab, stopped when dropped.
struct Lab {
    place: Place,
    name: &'static str,
}

impl Lab {
    fn up(file: &str, name: &'static str) -> Lab {
        let place = Place::new();
        place.up(file, name);
        Lab { place, name }
    }
}

impl Deref for Lab {
    type Target = Place;

    fn deref(&self) -> &Place {
        &self.place
    }
}

/// The output of a program that may be missing; says why and returns `None` if it is.
fn if_there(command: &mut Command) -> Option<Output> {
    match command.output() {
        Ok(output) => Some(output),
        Err(error) => {
            let name = command.get_program().to_string_lossy().into_owned();
            skip::because!("{name} is not installed ({error})");
            None
        }
    }
}

//! `pausebed serve LAB`: a lab that is up, in browsers until it is taken down.

use super::{LOOK_EVERY_NS, Options, Subject, open, stay};
use crate::command::Exit;
use emulation::clock::monotonic_ns;
use emulation::timer;
use launch::interrupt;
use launch::lab::Record;
use launch::lab::folder::SCENARIO;
use scenario::Scenario;
use scenario::render::render;
use serve::standing::Watch;
use serve::{Board, Server};
use std::sync::Arc;

const NS_PER_S: u64 = 1_000_000_000;
/// How often a lab is looked at while nobody has its page open.
const IDLE_EVERY_NS: u64 = 5 * NS_PER_S;

/// Runs the command if what it names is a lab.
pub fn run(options: &Options) -> Option<Exit> {
    let name = options.file.to_str()?;
    let labs = match options.place.labs() {
        Ok(labs) => labs,
        Err(exit) => return Some(exit),
    };
    let Some(record) = labs.all().remove(name) else {
        eprintln!("{name} is no file, and no lab of that name is up: pausebed status");
        return Some(Exit::Usage);
    };
    if !record.is_alive() {
        eprintln!("lab {name} has ended: pausebed logs, and then pausebed down {name}");
        return Some(Exit::Died);
    }
    let text = std::fs::read_to_string(labs.folder(name).join(SCENARIO));
    let scenario = text.map_err(|error| error.to_string()).and_then(|text| {
        Scenario::parse(&text, &record.sets).map_err(|faults| faults.in_file(SCENARIO))
    });
    Some(match scenario {
        Ok(scenario) => serve(options, &scenario, &record),
        Err(reason) => {
            eprintln!("lab {name}: {reason}");
            Exit::Host
        }
    })
}

fn serve(options: &Options, scenario: &Scenario, record: &Record) -> Exit {
    let lab = render(scenario);
    let board = Arc::new(Board::new(scenario, &lab, true));
    let back_end = format!("lab on {}, dilated {}×", record.backend, record.dilation);
    let subject = Subject { scenario, lab: &lab, back_end, record: Some(record) };
    let server = match open(options, subject, &board) {
        Ok(server) => server,
        Err(exit) => return exit,
    };
    interrupt::watch();
    follow(options, record, &board, &server);
    if !interrupt::requested() {
        board.end("ended", "The lab is up no more.", None);
        stay(options);
    }
    Exit::Good
}

/// Looks at the lab until it ends or somebody interrupts: as often as pages are told while there are any.
fn follow(options: &Options, record: &Record, board: &Arc<Board>, server: &Server) {
    let mut watch = Watch::new(record.clone(), Arc::clone(board));
    let mut looked = None;
    while !interrupt::requested() {
        let every = match server.listeners() {
            0 => IDLE_EVERY_NS,
            _ => NS_PER_S / u64::from(options.rate),
        };
        let now = monotonic_ns();
        let due = looked.map_or(now, |looked| looked + every);
        if now < due {
            // Somebody may open the page meanwhile.
            timer::wait(None, due.min(now + LOOK_EVERY_NS));
            continue;
        }
        if !record.is_alive() {
            return;
        }
        // A daemon that does not answer now may do so the next time, or its lab ends.
        let _ = watch.look();
        // From the answer on, so that what daemons show for a tenth of a second is old by then.
        looked = Some(monotonic_ns());
    }
}

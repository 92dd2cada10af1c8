//! `pausebed serve LAB`: shows a lab in browsers until it ends.

use super::{Options, POLL_NS, open, wait_for_end};
use crate::command::lab::running;
use crate::exit::{Exit, Failure, Outcome};
use emulation::clock::monotonic_ns;
use emulation::timer;
use launch::interrupt;
use launch::lab::LabRecord;
use launch::lab::folder::SCENARIO;
use scenario::Scenario;
use scenario::render::render;
use serve::lab_poller::LabPoller;
use serve::page::PageSubject;
use serve::{LiveState, Server};
use std::sync::Arc;

const NS_PER_S: u64 = 1_000_000_000;
/// The polling interval without a connected page.
const IDLE_NS: u64 = 5 * NS_PER_S;

/// Runs the command for the lab `name`.
pub fn run(options: &Options, name: &str) -> Outcome {
    let labs = options.place.labs()?;
    let record = labs.all().remove(name).ok_or_else(|| {
        Failure::usage(format!(
            "{name} is neither a file nor a running lab; `pausebed status` lists labs"
        ))
    })?;
    let record = running(record)?;
    let of_lab = |failure: Failure| failure.of(format!("lab {name}"));
    let text = std::fs::read_to_string(labs.folder(name).join(SCENARIO));
    let text = text.map_err(|error| of_lab(Failure::host(error)))?;
    let scenario = Scenario::parse(&text, &record.sets)
        .map_err(|faults| of_lab(Failure::host(faults.in_file(SCENARIO))))?;
    let lab = render(&scenario);
    let state = Arc::new(LiveState::new(&scenario, &lab, true));
    let back_end = format!("lab on {}, dilated {}×", record.backend, record.dilation);
    let subject = PageSubject { scenario: &scenario, lab: &lab, back_end, record: Some(&record) };
    let server = open(options, &subject, &state)?;
    interrupt::install_handlers();
    poll(options, &record, &state, &server);
    if !interrupt::requested() {
        state.end("ended", "The lab has ended.", None);
        wait_for_end(options);
    }
    Ok(Exit::Good)
}

/// Polls the lab until it ends or a signal arrives, at the rate of the pages while any are connected.
fn poll(options: &Options, record: &LabRecord, state: &Arc<LiveState>, server: &Server) {
    let mut poller = LabPoller::new(record.clone(), Arc::clone(state));
    let mut polled = None;
    while !interrupt::requested() {
        let interval = match server.clients() {
            0 => IDLE_NS,
            _ => NS_PER_S / u64::from(options.rate),
        };
        let now = monotonic_ns();
        let due = polled.map_or(now, |polled| polled + interval);
        if now < due {
            // A page may connect meanwhile.
            timer::wait(None, due.min(now + POLL_NS));
            continue;
        }
        if !record.is_alive() {
            return;
        }
        // A daemon that does not answer may answer the next time, or its lab ends.
        let _ = poller.poll();
        // After the answer, because a daemon caches its counters for a tenth of a second.
        polled = Some(monotonic_ns());
    }
}

//! The part `verbs`: the agent for verbs on its port. It is a process of its own, because libibverbs may crash it.

use crate::boot;
use crate::port::{Arrival, Port};
use agent::ibverbs::Ibverbs;
use guest::protocol::VERBS_PORT;
use std::io;
use verbs::line::answer;

/// Serves one client after the other for ever. What a client has made ends with it.
///
/// # Errors
/// The reason, if there is no such port.
pub fn serve() -> io::Error {
    match boot::permit_locked_memory().and_then(|()| Port::open(VERBS_PORT)) {
        Ok(port) => calls(port),
        Err(error) => error,
    }
}

fn calls(mut port: Port) -> ! {
    let mut agent = Ibverbs::default();
    loop {
        match port.read() {
            Arrival::Octets => {}
            Arrival::Nothing => port.wait_edge(),
            Arrival::NoClient => {
                agent.clear();
                port.wait_edge();
            }
        }
        while let Some(line) = port.lines.next_line() {
            if let Some(answer) = answer(&mut agent, &line) {
                port.queue_line(&answer);
                port.flush_all();
            }
        }
    }
}

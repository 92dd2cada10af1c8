//! Runs with daemons: they are started on this host, connected, followed and ended.
//!
//! ```text
//!   start each daemon ─▶ hello from all ─▶ start to all ─▶ beats … ─▶ report from all ─▶ end of all
//! ```
//!
//! After any error all daemons are ended before the function returns.

pub(crate) mod accounts;
pub(crate) mod configuration;
mod elastic;
mod outcome;
pub(crate) mod persistent;
pub(crate) mod session;
pub mod tester;

use super::hosts::{Commands, Hosts};
use super::placement::Hosting;
use super::{Job, LaunchError, Outcome, Progress, block_on, refuse_exact};
use daemon::PortInterface;
use emulation::cable::Carrier;
use emulation::cable::namespace::Namespace;
use session::Session;

/// What connects the daemons of a run.
#[derive(Clone, Debug)]
pub struct Cabling {
    /// The kind of the sockets.
    pub carrier: Carrier,
    /// With packet sockets: frames are sent as they are, without the shim.
    pub bare: bool,
    /// With packet sockets: the interface of each port of the fabric that has a cable.
    pub interfaces: Vec<PortInterface>,
}

impl Cabling {
    /// UDP, whatever the scenario asks for: across containers and machines.
    pub(crate) const UDP: Cabling = Cabling::datagrams(Carrier::Udp);

    const fn datagrams(carrier: Carrier) -> Cabling {
        Cabling { carrier, bare: false, interfaces: Vec::new() }
    }

    /// Sockets on loopback, of the kind that the scenario asks for.
    pub fn on_loopback(job: &Job<'_>) -> Cabling {
        Cabling::datagrams(job.run.carrier)
    }

    /// The kind of its cables, as results name it.
    const fn name(&self) -> &'static str {
        match self.carrier {
            Carrier::Udp => "udp",
            Carrier::Unix => "unix",
            Carrier::Packet => "veth",
        }
    }
}

/// The processes of a run.
#[derive(Debug)]
pub struct Setup {
    /// The process of each node.
    pub hosting: Hosting,
    /// What connects the daemons.
    pub cabling: Cabling,
    /// The address of a socket of this program, if it plays the last process.
    pub address: Option<String>,
    /// The size of each daemon's receive buffer in octets, instead of the host's maximum.
    pub receive_buffer: Option<usize>,
    /// Additional environment variables of each daemon.
    pub environment: Vec<(String, String)>,
}

impl Setup {
    /// A daemon for each process, with the largest buffers and no further variables.
    pub fn new(hosting: Hosting, cabling: Cabling) -> Setup {
        let environment = Vec::new();
        Setup { hosting, cabling, address: None, receive_buffer: None, environment }
    }
}

/// The assignment of the devices of `job` to workers on this host.
fn hosting_here(job: &Job<'_>) -> Hosting {
    let cores = std::thread::available_parallelism().map_or(2, |cores| cores.get());
    Hosting::new(&job.lab.fabric.wiring, job.run.placement, cores)
}

/// Runs a job with its hosts and with daemons that `cabling` connects. `namespaces` are those of devices, by node.
///
/// # Errors
/// If a host cannot be started or ends, a daemon dies or refuses its configuration, or the user interrupts.
pub(crate) fn run(
    job: &Job<'_>,
    cabling: Cabling,
    namespaces: &[Namespace],
    progress: &mut dyn FnMut(Progress),
) -> Result<Outcome, LaunchError> {
    refuse_exact(job)?;
    if job.lab.is_managed() {
        let reason =
            "a managed fabric is a lab: pausebed up, or pausebed run FILE for the routes of OpenSM";
        return Err(LaunchError::config(reason));
    }
    let mut hosts = Hosts::start_and_wait(job, namespaces)?;
    let mut commands = None;
    let outcome = block_on(async {
        let setup = Setup::new(hosting_here(job), cabling);
        let begun = |clock: &_| commands = Some(Commands::begin(&hosts, job.lab, clock));
        Session::open(job, setup, |_| None)?.run(job, begun, progress).await
    })?;
    let ran = commands.map_or(Vec::new(), Commands::end);
    if let Some((index, why)) = hosts.take_ended().into_iter().next() {
        let name = &job.lab.fabric.hosts[index].name;
        return Err(LaunchError::died(format!("host {name} has ended: {why}")));
    }
    hosts.stop();
    Ok(Outcome { hosts: ran, ..outcome })
}

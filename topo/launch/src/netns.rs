//! The substrate `netns`: every device in a network namespace of its own, every cable a veth pair.
//!
//! ```text
//!   rights ─▶ what killed launchers left is removed ─▶ namespaces, pairs ─▶ daemons … ─▶ all gone
//! ```
//!
//! Namespaces have no names: they are held by descriptors of this process, and the daemons open their
//! sockets through those. When the last of these processes is gone, however it went, the kernel removes
//! namespaces and interfaces. What it does not remove, files, is in the [`journal`]. Devices are hosted as
//! on `udp`: one process for many namespaces, or one for each with `placement = "device"`.

mod journal;

use super::daemons::{self, Cabling};
use super::{Job, LaunchError, Outcome, Progress, owner};
use daemon::PortInterface;
use daemon::privileges::{self, Right};
use emulation::cable::Carrier;
use emulation::cable::interface::{PairEnd, address_of};
use emulation::cable::namespace::{Namespace, become_owner};
use emulation::cable::shim::{SendingEnd, Shim};
use emulation::clock::Stopwatch;
use emulation::wiring::{Action, End, LinkWiring, Wiring};
use journal::{Journal, Lab};
use proto::technology::Technology;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;

/// What this substrate needs.
const RIGHTS: [Right; 3] = [Right::SysAdmin, Right::NetAdmin, Right::NetRaw];

/// Octets that a frame may have beyond a full one: tags, headers of IPv6, the shim.
const HEADERS_MAX: u64 = 256 + Shim::LENGTH as u64;
/// The MTU that interfaces have by default, which nothing here goes below.
const MTU_MIN: u64 = 1_500;

/// Runs a job.
///
/// # Errors
/// If the host lacks a right, a daemon dies or refuses its configuration, or somebody interrupts.
pub fn run(job: &Job<'_>, progress: &mut dyn FnMut(Progress)) -> Result<Outcome, LaunchError> {
    let (_standing, cabling) = Standing::make(job)?;
    daemons::run(job, cabling, progress)
}

/// Namespaces, interfaces and their journal, which are gone with this.
pub struct Standing {
    _journal: Journal,
    _network: Network,
}

impl Standing {
    /// Makes what a job needs, and says how daemons reach it.
    ///
    /// # Errors
    /// If the host lacks a right or something cannot be made.
    pub fn make(job: &Job<'_>) -> Result<(Standing, Cabling), LaunchError> {
        let bare = job.lab.fabric.technology == Technology::Ethernet;
        refuse_the_impossible(job, bare)?;
        obtain_rights(&job.lab.fabric.wiring)?;
        let host = |what: &str, error: &io::Error| LaunchError::Host(format!("{what}: {error}"));
        let mut journal = Journal::open(job.name, job.scratch)
            .map_err(|error| host("cannot keep a journal of the lab", &error))?;
        let stopwatch = Stopwatch::start();
        let network = Network::make(job, &journal)
            .map_err(|error| host("cannot make namespaces and interfaces", &error))?;
        journal
            .enter(Lab::of(&job.lab.fabric.wiring, &network.interfaces))
            .map_err(|error| host("cannot write the journal of the lab", &error))?;
        let links = job.lab.fabric.wiring.links.len();
        eprintln!(
            "lab {}: {} namespaces, {links} pairs of interfaces in {:.0} ms; {} tells where",
            journal.lab(),
            network.namespaces.len(),
            stopwatch.seconds() * 1e3,
            journal.file().display(),
        );
        let interfaces = network.interfaces.clone();
        let cabling = Cabling { carrier: Carrier::Packet, bare, interfaces };
        Ok((Standing { _journal: journal, _network: network }, cabling))
    }
}

/// Removes what launchers left that were killed.
pub fn sweep() {
    // Without a folder there is nothing in it.
    if owner::place().exists()
        && let Ok(folder) = owner::folder()
    {
        journal::sweep(&folder);
    }
}

/// Refuses what bare cables cannot do.
fn refuse_the_impossible(job: &Job<'_>, bare: bool) -> Result<(), LaunchError> {
    let wiring = &job.lab.fabric.wiring;
    let corrupt = |action: &Action| *action == Action::Corrupt;
    if bare && wiring.impairments.iter().any(|rule| corrupt(&rule.action)) {
        return Err(LaunchError::Config(
            "a bare cable has no FCS that could tell of a corrupt frame: run it on udp or virtual"
                .to_owned(),
        ));
    }
    if !bare && !wiring.attached.is_empty() {
        return Err(LaunchError::Config("interfaces carry Ethernet alone".to_owned()));
    }
    Ok(())
}

/// Makes sure of the rights, if need be in a user namespace of this process's own.
fn obtain_rights(wiring: &Wiring) -> Result<(), LaunchError> {
    let missing = privileges::missing(&RIGHTS);
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(", ");
    if let Some(attached) = wiring.attached.first() {
        return Err(LaunchError::Host(format!(
            "to attach interface {} takes {names}, which this process does not have: run as root",
            attached.interface
        )));
    }
    become_owner().map_err(|error| {
        LaunchError::Host(format!(
            "the backend netns takes {names}, which this process does not have, and a user \
             namespace, in which it would have them, is refused: {error}. Run as root, or permit \
             user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, \
             kernel.apparmor_restrict_unprivileged_userns). The backend udp takes no right"
        ))
    })
}

/// Namespaces with their interfaces, which are gone with this.
struct Network {
    /// By node; none if there are no cables.
    namespaces: Vec<Namespace>,
    /// Every port that has a cable or an attached interface.
    interfaces: Vec<PortInterface>,
}

impl Network {
    fn make(job: &Job<'_>, journal: &Journal) -> io::Result<Network> {
        let wiring = &job.lab.fabric.wiring;
        let count = if wiring.links.is_empty() { 0 } else { wiring.nodes.len() };
        let namespaces = Namespace::make(count)?;
        let longest = job.lab.fabric.full_frame.get() + HEADERS_MAX;
        let mtu = longest.max(MTU_MIN) as u32;
        let mut interfaces = Vec::with_capacity(wiring.links.len() * 2 + wiring.attached.len());
        for (number, link) in wiring.links.iter().enumerate() {
            cable(&namespaces, number as u32, link, mtu)?;
            for (at, far) in [(link.a, link.b), (link.b, link.a)] {
                let note = format!(
                    "pausebed {}: {} to {}",
                    journal.lab(),
                    wiring.end_name(at),
                    wiring.end_name(far)
                );
                let name = name_of(at);
                let namespace = &namespaces[at.node];
                namespace.interfaces.switch_on(&name, &note)?;
                let path = path_of(namespace);
                interfaces.push(PortInterface { at, namespace: Some(path), name });
            }
        }
        interfaces.extend(wiring.attached.iter().map(|attached| PortInterface {
            at: attached.at,
            namespace: None,
            name: attached.interface.clone(),
        }));
        Ok(Network { namespaces, interfaces })
    }
}

/// Makes the pair of interfaces that is cable `number`.
fn cable(namespaces: &[Namespace], number: u32, link: &LinkWiring, mtu: u32) -> io::Result<()> {
    let (near, far) = (name_of(link.a), name_of(link.b));
    let end = |name, at: End, end| PairEnd {
        name,
        address: address_of(number, end),
        namespace: namespaces[at.node].as_fd(),
    };
    let [a, b] = [end(&near, link.a, SendingEnd::A), end(&far, link.b, SendingEnd::B)];
    namespaces[link.a.node].interfaces.make_pair(a, b, mtu)
}

/// A port's interface in its device's namespace.
fn name_of(at: End) -> String {
    format!("p{}", at.port)
}

/// Where other processes of this user find a namespace.
fn path_of(namespace: &Namespace) -> PathBuf {
    PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), namespace.descriptor()))
}

//! The substrate `netns`: every device has its own network namespace, every cable is a veth pair.
//!
//! ```text
//!   rights ─▶ remove leftovers of killed launchers ─▶ namespaces, pairs ─▶ daemons … ─▶ end of all
//! ```
//!
//! Namespaces have no names: this process holds them by descriptors, and the daemons open their sockets through
//! these. When the last of these processes ends, the kernel removes namespaces and interfaces. Files, which it
//! does not remove, are listed in the [`journal`]. Processes host devices as on `udp`: many namespaces for each
//! process, or one with `placement = "device"`.

mod journal;

use super::daemons::{self, Cabling};
use super::{Job, LaunchError, Outcome, Progress, interfaces, owner, refuse_exact};
use crate::attached::{self, Claims, name_of, remarks};
use crate::error::OrHost;
use daemon::PortInterface;
use daemon::privileges::{self, Capability};
use emulation::cable::Carrier;
use emulation::cable::interface::{PairEnd, address_of};
use emulation::cable::namespace::{Namespace, become_owner};
use emulation::cable::shim::{SendingEnd, Shim};
use emulation::clock::Stopwatch;
use emulation::wiring::{Action, Attached, End, Impairment, LinkWiring, Wiring};
use journal::Journal;
use proto::technology::Technology;
use scenario::host::HostKind;
use scenario::keyfile::problem::did_you_mean;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;

/// The rights that this substrate needs.
pub const RIGHTS: [Capability; 3] =
    [Capability::CAP_SYS_ADMIN, Capability::CAP_NET_ADMIN, Capability::CAP_NET_RAW];

/// Octets that a frame may have beyond a full one: tags, headers of IPv6, the shim.
const HEADERS_MAX: u64 = 256 + Shim::LENGTH as u64;
/// The smallest MTU that is set: the default of Ethernet.
const MTU_MIN: u64 = 1_500;

/// Runs a job.
///
/// # Errors
/// If the host lacks a right, a daemon dies or refuses its configuration, or the user interrupts.
pub(crate) fn run(
    job: &Job<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Outcome, LaunchError> {
    refuse_exact(job)?;
    let (network, cabling) = LabNetwork::make(job)?;
    daemons::run(job, cabling, network.namespaces(), progress)
}

/// Namespaces, interfaces and their journal, which are removed on drop.
pub(crate) struct LabNetwork {
    _claims: Claims,
    _journal: Journal,
    network: Network,
}

impl LabNetwork {
    /// The namespaces by node; empty if no port needs one.
    pub fn namespaces(&self) -> &[Namespace] {
        &self.network.namespaces
    }

    /// Makes the network of a job, and the cabling by which daemons reach it.
    ///
    /// # Errors
    /// If the host lacks a right or an interface, or something cannot be made.
    pub fn make(job: &Job<'_>) -> Result<(LabNetwork, Cabling), LaunchError> {
        let wiring = &job.lab.fabric.wiring;
        let bare = job.lab.fabric.technology == Technology::Ethernet;
        refuse_unsupported(wiring, bare)?;
        obtain_rights(job)?;
        let claims = Claims::take(job)?;
        remarks(wiring).iter().for_each(|remark| eprintln!("{remark}"));
        let mut journal =
            Journal::open(job.name, job.scratch).or_host("cannot write the journal of the lab")?;
        let stopwatch = Stopwatch::start();
        let network =
            Network::make(job, &journal).or_host("cannot make namespaces and interfaces")?;
        let entered = journal.enter(wiring, &network.interfaces);
        entered.or_host("cannot write the journal of the lab")?;
        eprintln!(
            "lab {}: {} namespaces, {} pairs of interfaces in {:.0} ms; they are listed in {}",
            journal.entry.lab,
            network.namespaces.len(),
            wiring.links.len(),
            stopwatch.seconds() * 1e3,
            journal.file.display(),
        );
        let interfaces = network.interfaces.clone();
        let cabling = Cabling { carrier: Carrier::Packet, bare, interfaces };
        Ok((LabNetwork { _claims: claims, _journal: journal, network }, cabling))
    }
}

/// Removes what killed launchers left.
pub fn remove_leftovers() {
    // Without a folder there is nothing to remove.
    if owner::place().exists()
        && let Ok(folder) = owner::folder()
    {
        journal::remove_leftovers(&folder);
    }
}

/// Refuses what bare cables cannot do, and interfaces that do not exist.
fn refuse_unsupported(wiring: &Wiring, bare: bool) -> Result<(), LaunchError> {
    let needs_fcs = |rule: &Impairment| {
        rule.action == Action::Corrupt && wiring.attached_at(rule.from).is_none()
    };
    if bare && wiring.impairments.iter().any(needs_fcs) {
        let reason = "a bare cable has no FCS that shows a corrupt frame: name a `part` of the \
                      frame, or use the backend udp or virtual";
        return Err(LaunchError::config(reason));
    }
    if !bare && !wiring.attached.is_empty() {
        return Err(LaunchError::config("attached interfaces carry only Ethernet"));
    }
    let known = interfaces::names();
    let unknown = attached::interfaces(wiring).find(|one| !known.contains(&one.interface));
    unknown.map_or(Ok(()), |attached| {
        let hint = did_you_mean(&attached.interface, known.iter().map(String::as_str));
        let what = format!("this host has no interface {:?}: {hint}", attached.interface);
        Err(LaunchError::host(what))
    })
}

/// Obtains the rights, if necessary in a user namespace of this process.
fn obtain_rights(job: &Job<'_>) -> Result<(), LaunchError> {
    let missing = privileges::missing(&RIGHTS);
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(", ");
    let mut containers =
        job.lab.fabric.hosts.iter().filter(|host| host.kind == HostKind::Container);
    let outside = match attached::interfaces(&job.lab.fabric.wiring).next() {
        Some(attached) => Some(format!("interface {}", attached.interface)),
        None => containers.next().map(|host| format!("container {}", host.name)),
    };
    if let Some(outside) = outside {
        return Err(LaunchError::host(format!(
            "attaching {outside} needs {names}, which this process does not have: run as root"
        )));
    }
    let what = format!(
        "the backend netns needs {names}, which this process does not have. Run as root, or permit user \
         namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, \
         kernel.apparmor_restrict_unprivileged_userns). The backend udp needs no rights. The kernel refused \
         a user namespace"
    );
    become_owner().or_host(what)
}

/// Namespaces with their interfaces, which are removed on drop.
struct Network {
    /// The namespaces by node; empty if there are no cables and no hosts behind interfaces.
    namespaces: Vec<Namespace>,
    /// The interface of every port that has a cable or an attached interface.
    interfaces: Vec<PortInterface>,
}

impl Network {
    fn make(job: &Job<'_>, journal: &Journal) -> io::Result<Network> {
        let wiring = &job.lab.fabric.wiring;
        let is_program = |one: &&Attached| one.is_host && one.socket.is_none();
        let programs = || wiring.attached.iter().filter(is_program);
        let has_interfaces = !wiring.links.is_empty() || programs().next().is_some();
        let namespaces = Namespace::make(if has_interfaces { wiring.nodes.len() } else { 0 })?;
        let longest = job.lab.fabric.full_frame.get() + HEADERS_MAX;
        let mtu = longest.max(MTU_MIN) as u32;
        let mut interfaces = Vec::with_capacity(wiring.links.len() * 2 + wiring.attached.len());
        for (number, link) in wiring.links.iter().enumerate() {
            cable(&namespaces, number as u32, link, mtu)?;
            for (at, far) in [(link.a, link.b), (link.b, link.a)] {
                let note = format!(
                    "pausebed {}: {} to {}",
                    journal.entry.lab,
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
        // Hosts make theirs.
        interfaces.extend(programs().map(|host| PortInterface {
            at: host.at,
            namespace: Some(path_of(&namespaces[host.at.node])),
            name: name_of(host.at),
        }));
        interfaces.extend(attached::interfaces(wiring).map(|attached| PortInterface {
            at: attached.at,
            namespace: None,
            name: attached.interface.clone(),
        }));
        Ok(Network { namespaces, interfaces })
    }
}

/// Makes the pair of interfaces for cable `number`.
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

/// The path of a namespace for other processes of this user.
fn path_of(namespace: &Namespace) -> PathBuf {
    PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), namespace.descriptor()))
}

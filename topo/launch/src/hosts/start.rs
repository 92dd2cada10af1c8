//! The start of each kind of host.

use super::{Report, cannot_start};
use crate::attached::name_of;
use crate::error::OrHost;
use crate::owner::{ProcessIdentity, pid_namespace};
use crate::{Job, LaunchError, interrupt};
use emulation::cable::interface::address_of;
use emulation::cable::namespace::Namespace;
use emulation::cable::shim::SendingEnd;
use host::HostError;
use host::container::{ContainerHost, ContainerSpec, remove_leftovers};
use host::image::Image;
use host::interface::{Interface, LabEnd};
use host::namespace::{NamespaceHost, NamespaceSpec};
use host::running::Running;
use host::vm::{Vm, VmSpec, prepare};
use proto::units::Bytes;
use scenario::host::{Host, HostKind};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Removes the containers of launchers that have ended.
pub fn remove_containers() {
    let Ok(here) = pid_namespace() else { return };
    let is_ours = |owner: &str| owner.starts_with(&format!("{here}."));
    let has_ended = |owner: &str| ProcessIdentity::named(owner).is_some_and(|one| !one.is_alive());
    // Without an engine there are none.
    let _ = remove_leftovers(|owner| is_ours(owner) && has_ended(owner));
}

/// What the hosts of a job need.
pub(super) struct Starter<'a> {
    job: &'a Job<'a>,
    /// The namespaces of devices.
    namespaces: &'a [Namespace],
    /// Images whose hashes have been checked.
    images: BTreeMap<Option<PathBuf>, Image>,
    /// This process, for containers: its pid namespace and its identity.
    owner: String,
}

impl<'a> Starter<'a> {
    /// For one job.
    ///
    /// # Errors
    /// If /proc is not mounted.
    pub fn new(job: &'a Job<'a>, namespaces: &'a [Namespace]) -> Result<Starter<'a>, LaunchError> {
        let own =
            pid_namespace().and_then(|here| Ok(format!("{here}.{}", ProcessIdentity::this()?)));
        let owner = own.or_host("cannot read /proc")?;
        if job.lab.fabric.hosts.iter().any(|host| host.kind == HostKind::Container) {
            remove_containers();
        }
        Ok(Starter { job, namespaces, images: BTreeMap::new(), owner })
    }

    /// Starts a host.
    ///
    /// # Errors
    /// If it cannot be started, or the user interrupts.
    pub fn start(&mut self, host: &Host, report: Report<'_>) -> Result<Running, LaunchError> {
        if interrupt::requested() {
            return Err(LaunchError::interrupted());
        }
        match host.kind {
            HostKind::Vm => self.vm(host, report),
            HostKind::Netns => self.namespace(host).map_err(cannot_start(&host.name)),
            HostKind::Container => self.container(host).map_err(cannot_start(&host.name)),
        }
    }

    fn vm(&mut self, host: &Host, report: Report<'_>) -> Result<Running, LaunchError> {
        let failed = || cannot_start(&host.name);
        let folder = self.job.scratch;
        let image = self.image(host).map_err(failed())?;
        let memory_mib = match host.memory {
            Some(memory) => mib(memory),
            None => image.memory_mib().map_err(failed())?,
        };
        let file = |ending: &str| folder.join(format!("{}.{ending}", host.name));
        let spec = VmSpec {
            name: host.name.clone(),
            mac: host.mac.octets(),
            addresses: host.addresses.clone(),
            mtu: octets(host.mtu),
            memory_mib,
            local: file("peer"),
            remote: file("lab"),
            folder: folder.to_owned(),
        };
        let mut said = Ok(());
        let mut progress = |line: &str| said = report(line.to_owned());
        prepare(image, memory_mib, &mut progress).map_err(failed())?;
        said?;
        Vm::start(image, &spec).map(Running::Vm).map_err(failed())
    }

    fn image(&mut self, host: &Host) -> Result<&Image, HostError> {
        if !self.images.contains_key(&host.kernel) {
            let release = host.kernel.as_ref().map(|release| release.to_string_lossy());
            self.images.insert(host.kernel.clone(), Image::find(release.as_deref())?);
        }
        Ok(&self.images[&host.kernel])
    }

    fn namespace(&self, host: &Host) -> Result<Running, HostError> {
        let spec = NamespaceSpec {
            name: host.name.clone(),
            interface: interface(host),
            folder: self.job.scratch.to_owned(),
        };
        self.with_lab_end(host, |lab| NamespaceHost::start(&spec, lab)).map(Running::Namespace)
    }

    fn container(&self, host: &Host) -> Result<Running, HostError> {
        let spec = ContainerSpec {
            name: host.name.clone(),
            interface: interface(host),
            image: host.image.clone().unwrap_or_default(),
            memory_mib: host.memory.map(mib),
            owner: self.owner.clone(),
            folder: self.job.scratch.to_owned(),
        };
        self.with_lab_end(host, |lab| ContainerHost::start(&spec, lab)).map(Running::Container)
    }

    /// Gives `start` the other end of the host's interface.
    fn with_lab_end<T>(
        &self,
        host: &Host,
        start: impl FnOnce(LabEnd<'_>) -> Result<T, HostError>,
    ) -> Result<T, HostError> {
        let wiring = &self.job.lab.fabric.wiring;
        let none = || HostError::Invalid("it needs the backend netns".to_owned());
        let namespace = self.namespaces.get(host.at.node).ok_or_else(none)?;
        // Cables have the numbers before.
        let place = wiring.attached.iter().position(|attached| attached.at == host.at);
        let number = (wiring.links.len() + place.unwrap_or(0)) as u32;
        let port = wiring.end_name(host.at);
        start(LabEnd {
            namespace,
            name: &name_of(host.at),
            mac: address_of(number, SendingEnd::A),
            note: &format!("pausebed {}: {port} to {}", self.job.name, host.name),
        })
    }
}

fn interface(host: &Host) -> Interface {
    Interface { mac: host.mac.octets(), addresses: host.addresses.clone(), mtu: octets(host.mtu) }
}

fn octets(mtu: Bytes) -> u32 {
    u32::try_from(mtu.get()).unwrap_or(u32::MAX)
}

fn mib(memory: Bytes) -> u32 {
    u32::try_from(memory.get() >> 20).unwrap_or(u32::MAX)
}

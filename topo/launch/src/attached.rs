//! Interfaces of this host that a lab attaches to ports: claims them for one lab, and checks their state.

use crate::{Job, LaunchError};
use emulation::cable::claim::Claim;
use emulation::cable::interface_info::{InterfaceInfo, interface};
use emulation::wiring::{Attached, End, SocketPair, Wiring};
use std::io;
use std::path::Path;

/// Names of claims begin so.
const CLAIM: &str = "pausebed/attached/";
/// Offloads by which the kernel joins received frames.
const JOINING: [&str; 2] = ["generic-receive-offload", "large-receive-offload"];

/// The interfaces that a lab has claimed; dropping it releases them.
#[derive(Debug)]
pub(crate) struct Claims(Vec<Claim>);

impl Claims {
    /// Claims the attached interfaces of a job.
    ///
    /// # Errors
    /// If another lab has claimed one, with the name of that lab.
    pub fn take(job: &Job<'_>) -> Result<Claims, LaunchError> {
        let mut claims = Claims(Vec::new());
        for attached in interfaces(&job.lab.fabric.wiring) {
            let claim = format!("{CLAIM}{}", attached.interface);
            let held = Claim::take(&claim).map_err(|error| match error.kind() {
                io::ErrorKind::AddrInUse => taken(&attached.interface, &claim),
                _ => {
                    let what = format!("cannot claim interface {}", attached.interface);
                    LaunchError::host(what).caused::<io::Error>()(error)
                }
            })?;
            claims.0.push(held);
            // The claim alone counts. A name that is too long for an address is not shown.
            claims.0.extend(Claim::take(&format!("{claim}/{}", job.name)));
        }
        Ok(claims)
    }
}

fn taken(interface: &str, claim: &str) -> LaunchError {
    let (lab, hint) = match Claim::find(&format!("{claim}/")) {
        Some(lab) => (format!("lab {lab}"), format!("pausebed down {lab}")),
        None => ("another lab".to_owned(), "pausebed status shows labs".to_owned()),
    };
    LaunchError::host(format!("interface {interface} is attached to {lab} already: {hint}"))
}

/// The ports that are attached to interfaces of this host, not to other programs or to hosts of the lab.
pub(crate) fn interfaces(wiring: &Wiring) -> impl Iterator<Item = &Attached> {
    wiring.attached.iter().filter(|attached| attached.socket.is_none() && !attached.is_host)
}

/// The interface of a port in the namespace of its device.
pub(crate) fn name_of(at: End) -> String {
    format!("p{}", at.port)
}

/// The wiring with the relative paths of sockets completed, in `folder`, and with names that show the addresses of
/// other programs. A host keeps its name.
pub(crate) fn resolved(wiring: &Wiring, folder: &Path) -> Wiring {
    let mut wiring = wiring.clone();
    for Attached { interface, socket, is_host, .. } in &mut wiring.attached {
        if let Some(SocketPair::Unix { local, remote }) = socket {
            *local = folder.join(&*local);
            *remote = folder.join(&*remote);
        }
        match socket {
            Some(SocketPair::Unix { local, .. }) if !*is_host => {
                *interface = format!("unix:{}", local.display());
            }
            Some(SocketPair::Udp { local, .. }) => *interface = format!("udp:{local}"),
            _ => {}
        }
    }
    wiring
}

/// What may surprise about the attached interfaces of a lab, one sentence each.
pub fn remarks(wiring: &Wiring) -> Vec<String> {
    let mut all = Vec::new();
    for attached in interfaces(wiring) {
        // An interface that does not exist is refused elsewhere.
        let Ok(info) = interface(&attached.interface) else { continue };
        let port = wiring.end_name(attached.at);
        all.extend(about(&info, &port, attached.mtu.get() as usize));
    }
    all
}

/// The same for one interface, at a port with this MTU in octets.
fn about(info: &InterfaceInfo, port: &str, port_mtu: usize) -> Vec<String> {
    let InterfaceInfo { name, mtu, .. } = info;
    let mut all = Vec::new();
    if !info.is_up {
        all.push(format!("is switched off, and frames to it are dropped: ip link set {name} up"));
    } else if !info.has_carrier {
        all.push("has no carrier, and frames to it are dropped".to_owned());
    }
    if *mtu < port_mtu {
        all.push(format!(
            "has an MTU of {mtu} octets, and frames of the port with up to {port_mtu} are dropped: ip link set {name} \
             mtu {port_mtu}, or mtu = \"{mtu} B\" in [lab] attach"
        ));
    }
    if !info.addresses.is_empty() {
        let addresses = info.addresses.iter().map(|(ip, prefix)| format!("{ip}/{prefix}"));
        let addresses = addresses.collect::<Vec<_>>().join(" ");
        all.push(format!(
            "has the address {addresses}, so this host's own stack answers there too: ip addr flush dev {name}"
        ));
    }
    for offload in info.offloads.iter().filter(|offload| JOINING.contains(offload)) {
        all.push(format!(
            "has {offload}, which joins frames before the port gets them: ethtool -K {name} {offload} off"
        ));
    }
    all.into_iter().map(|what| format!("interface {name} at {port} {what}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> InterfaceInfo {
        InterfaceInfo {
            name: "t1".to_owned(),
            index: 7,
            is_up: true,
            has_carrier: true,
            is_loopback: false,
            mtu: 9_000,
            mac: None,
            addresses: Vec::new(),
            offloads: vec!["tx-checksumming"],
        }
    }

    #[test]
    fn an_interface_without_surprises_has_no_remarks() {
        assert_eq!(about(&good(), "s1:1", 9_000), [""; 0]);
    }

    #[test]
    fn every_surprise_has_a_remark_with_its_remedy() {
        let down = InterfaceInfo { is_up: false, has_carrier: false, ..good() };
        assert!(about(&down, "s1:1", 9_000)[0].ends_with("ip link set t1 up"));
        let dark = InterfaceInfo { has_carrier: false, ..good() };
        assert!(about(&dark, "s1:1", 9_000)[0].contains("has no carrier"));
        let small = InterfaceInfo { mtu: 1_500, ..good() };
        assert!(about(&small, "s1:1", 9_000)[0].contains("ip link set t1 mtu 9000"));
        let addresses = vec![(std::net::Ipv4Addr::LOCALHOST.into(), 8)];
        let addressed = InterfaceInfo { addresses, ..good() };
        assert!(about(&addressed, "s1:1", 9_000)[0].contains("127.0.0.1/8"));
        let joining = InterfaceInfo { offloads: vec!["large-receive-offload"], ..good() };
        assert!(about(&joining, "s1:1", 9_000)[0].contains("ethtool -K t1"));
    }
}

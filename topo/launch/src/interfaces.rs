//! Network interfaces of this host, for `pausebed doctor` and for hints about `[lab] attach`.

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use pnet_datalink::NetworkInterface;
use std::fmt;
use std::os::fd::AsRawFd;

/// Offloads that `pausebed doctor` names, with their commands. Source: linux/ethtool.h, `ETHTOOL_G…`.
const OFFLOADS: [(&str, u32); 5] =
    [("rx-checksum", 0x14), ("tx-checksum", 0x16), ("tso", 0x1e), ("gso", 0x23), ("gro", 0x2b)];

/// The request for a query of the driver. Source: linux/sockios.h.
const SIOCETHTOOL: libc::c_ulong = 0x8946;

/// `struct ethtool_value`. Source: linux/ethtool.h.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// One network interface of the namespace of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// As `ip link` shows it.
    pub name: String,
    is_up: bool,
    has_carrier: bool,
    /// In octets, if it is known.
    mtu: Option<u32>,
    addresses: Vec<String>,
    /// The names of offloads that are on.
    offloads: Vec<&'static str>,
}

/// All interfaces of the namespace of this process.
pub fn all() -> Vec<Interface> {
    pnet_datalink::interfaces().into_iter().map(Interface::from).collect()
}

impl From<NetworkInterface> for Interface {
    fn from(found: NetworkInterface) -> Interface {
        let mtu = std::fs::read_to_string(format!("/sys/class/net/{}/mtu", found.name));
        Interface {
            is_up: found.is_up(),
            has_carrier: found.is_lower_up(),
            mtu: mtu.ok().and_then(|text| text.trim().parse().ok()),
            addresses: found.ips.iter().map(ToString::to_string).collect(),
            offloads: offloads(&found.name),
            name: found.name,
        }
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.is_up { "up" } else { "down" };
        let carrier = if self.has_carrier { "carrier" } else { "no carrier" };
        write!(f, "{} {state}, {carrier}", self.name)?;
        self.mtu.map_or(Ok(()), |mtu| write!(f, ", MTU {mtu}"))?;
        let list =
            |items: &[String]| if items.is_empty() { "none".into() } else { items.join(" ") };
        let offloads: Vec<String> = self.offloads.iter().map(ToString::to_string).collect();
        write!(f, ", addresses {}, offloads {}", list(&self.addresses), list(&offloads))
    }
}

/// The offloads of an interface that are on.
fn offloads(interface: &str) -> Vec<&'static str> {
    let (family, kind) = (AddressFamily::Inet, SockType::Datagram);
    let Ok(socket) = socket(family, kind, SockFlag::SOCK_CLOEXEC, None) else { return Vec::new() };
    let is_on = |command: u32| {
        let mut value = EthtoolValue { command, data: 0 };
        // SAFETY: a request of zeros is valid: an empty name and a null pointer.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        // The last octet stays zero: names have at most 15.
        let name = request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut();
        name.zip(interface.bytes()).for_each(|(to, octet)| *to = octet as libc::c_char);
        request.ifr_ifru.ifru_data = (&raw mut value).cast();
        // SAFETY: the pointer in the request leads to a value of the command's type that outlives the call.
        let done = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
        done == 0 && value.data != 0
    };
    OFFLOADS.iter().filter(|(_, command)| is_on(*command)).map(|(name, _)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_found_with_its_address() {
        let all = all();
        let loopback = all.iter().find(|one| one.name == "lo").expect("every host has it");
        assert!(loopback.is_up && loopback.mtu.is_some(), "{loopback:?}");
        assert!(loopback.to_string().contains("127.0.0.1"), "{loopback}");
    }
}

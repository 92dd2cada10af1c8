//! Network interfaces of this host, for `pausebed doctor` and for hints about `[lab] attach`.

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use pnet_datalink::NetworkInterface;
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

/// The names of all interfaces of the namespace of this process.
pub fn names() -> Vec<String> {
    pnet_datalink::interfaces().into_iter().map(|interface| interface.name).collect()
}

/// All interfaces of the namespace of this process, one line each.
pub fn describe() -> Vec<String> {
    pnet_datalink::interfaces().iter().map(description).collect()
}

fn description(interface: &NetworkInterface) -> String {
    let name = &interface.name;
    let state = if interface.is_up() { "up" } else { "down" };
    let carrier = if interface.is_lower_up() { "carrier" } else { "no carrier" };
    let mtu = std::fs::read_to_string(format!("/sys/class/net/{name}/mtu"));
    let mtu = mtu.map_or(String::new(), |mtu| format!(", MTU {}", mtu.trim()));
    let list = |items: &[&str]| if items.is_empty() { "none".into() } else { items.join(" ") };
    let addresses: Vec<String> = interface.ips.iter().map(ToString::to_string).collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let (addresses, offloads) = (list(&addresses), list(&offloads(name)));
    format!("{name} {state}, {carrier}{mtu}, addresses {addresses}, offloads {offloads}")
}

/// The offloads of an interface that are on.
fn offloads(interface: &str) -> Vec<&'static str> {
    let (family, kind) = (AddressFamily::Inet, SockType::Datagram);
    let Ok(socket) = socket(family, kind, SockFlag::SOCK_CLOEXEC, None) else { return Vec::new() };
    let is_on = |command: u32| {
        let mut value = EthtoolValue { command, data: 0 };
        // SAFETY: a request of zeros is valid: an empty name and a null pointer.
        // Test: the_loopback_interface_is_found_with_its_address.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        // The last octet stays zero: names have at most 15.
        let name = request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut();
        name.zip(interface.bytes()).for_each(|(to, octet)| *to = octet as libc::c_char);
        request.ifr_ifru.ifru_data = (&raw mut value).cast();
        // SAFETY: the pointer in the request leads to a value of the command's type that outlives the call.
        // Test: the_loopback_interface_is_found_with_its_address.
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
        assert!(names().contains(&"lo".to_owned()));
        let all = describe();
        let loopback = all.iter().find(|line| line.starts_with("lo ")).expect("every host has it");
        for part in ["lo up, ", ", MTU ", "127.0.0.1"] {
            assert!(loopback.contains(part), "{loopback}");
        }
    }
}

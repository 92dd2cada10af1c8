//! Properties of a host interface as the kernel reports them: state, MTU, addresses, offloads.
//!
//! pnet lists interfaces with their addresses. MTU and offloads are read by ioctl, since pnet has neither.

use super::interface::NAME_MAX;
use pnet_datalink::NetworkInterface;
use socket2::{Domain, Socket, Type};
use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;

/// An interface in the namespace of the calling thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceInfo {
    /// Its name.
    pub name: String,
    /// Its index.
    pub index: u32,
    /// It is switched on (IFF_UP).
    pub is_up: bool,
    /// Its link has a carrier (IFF_LOWER_UP).
    pub has_carrier: bool,
    /// It is a loopback interface.
    pub is_loopback: bool,
    /// The MTU: octets of the longest payload of a frame, behind addresses and EtherType.
    pub mtu: usize,
    /// Its MAC address, if it has one.
    pub mac: Option<[u8; 6]>,
    /// Its IP addresses with their prefix lengths in bits.
    pub addresses: Vec<(IpAddr, u8)>,
    /// The names of the offloads that are on, in the words of `ethtool -k`.
    pub offloads: Vec<&'static str>,
}

/// Offloads by name, with the ethtool command that reads each and its bits in the answer. Source: linux/ethtool.h.
const OFFLOADS: [(&str, u32, u32); 7] = [
    ("rx-checksumming", 0x14, u32::MAX),
    ("tx-checksumming", 0x16, u32::MAX),
    ("tcp-segmentation-offload", 0x1e, u32::MAX),
    ("generic-segmentation-offload", 0x23, u32::MAX),
    ("generic-receive-offload", 0x2b, u32::MAX),
    ("large-receive-offload", 0x25, 1 << 15),
    ("scatter-gather", 0x18, u32::MAX),
];
/// Source: linux/sockios.h.
const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// The interface `name` of the namespace in which the calling thread is.
///
/// # Errors
/// If there is no such interface, or its MTU cannot be read.
pub fn interface(name: &str) -> io::Result<InterfaceInfo> {
    let found = pnet_datalink::interfaces().into_iter().find(|face| face.name == name);
    describe(found.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))?)
}

/// All interfaces of the namespace in which the calling thread is.
///
/// # Errors
/// If the MTU of one cannot be read.
pub fn interfaces() -> io::Result<Vec<InterfaceInfo>> {
    pnet_datalink::interfaces().into_iter().map(describe).collect()
}

fn describe(face: NetworkInterface) -> io::Result<InterfaceInfo> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    let mut request = request(&face.name);
    ioctl(&socket, libc::SIOCGIFMTU, &mut request)?;
    // SAFETY: the call has written this member. Test: loopback_is_known_with_its_state_and_addresses.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    let is_on =
        |(_, command, bits): &&(&str, u32, u32)| is_on(&socket, &face.name, *command, *bits);
    Ok(InterfaceInfo {
        index: face.index,
        is_up: face.is_up(),
        has_carrier: face.is_lower_up(),
        is_loopback: face.is_loopback(),
        mtu: usize::try_from(mtu).unwrap_or(0),
        mac: face.mac.map(|mac| mac.octets()),
        addresses: face.ips.iter().map(|network| (network.ip(), network.prefix())).collect(),
        offloads: OFFLOADS.iter().filter(is_on).map(|(name, ..)| *name).collect(),
        name: face.name,
    })
}

/// Switches the offloads off of the interface `name` in the namespace of the calling thread: its frames have complete
/// checksums and are no longer than the MTU.
///
/// # Errors
/// Those of the kernel; EPERM without `CAP_NET_ADMIN`.
pub fn switch_offloads_off(name: &str) -> io::Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    for (_, command, bits) in OFFLOADS {
        if let Ok(value) = ethtool(&socket, name, command, 0)
            && value & bits != 0
        {
            // The command that writes an offload follows the one that reads it.
            ethtool(&socket, name, command + 1, value & !bits)?;
        }
    }
    Ok(())
}

/// Whether an offload is on; false where the interface does not know it.
fn is_on(socket: &Socket, name: &str, command: u32, bits: u32) -> bool {
    ethtool(socket, name, command, 0).is_ok_and(|value| value & bits != 0)
}

/// Reads or writes one value of an interface.
fn ethtool(socket: &Socket, name: &str, command: u32, data: u32) -> io::Result<u32> {
    /// `struct ethtool_value`.
    #[repr(C)]
    struct Value {
        command: u32,
        data: u32,
    }
    let mut value = Value { command, data };
    let mut request = request(name);
    request.ifr_ifru.ifru_data = std::ptr::from_mut(&mut value).cast();
    // The kernel reads and writes `value` through the pointer in `request`, and `value` outlives the call.
    ioctl(socket, SIOCETHTOOL, &mut request)?;
    Ok(value.data)
}

/// A request about the interface `name`.
fn request(name: &str) -> libc::ifreq {
    // SAFETY: plain data, for which all zeros is a valid value. Test: loopback_is_known_with_its_state_and_addresses.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, octet) in request.ifr_name.iter_mut().zip(name.bytes().take(NAME_MAX)) {
        *place = octet as libc::c_char;
    }
    request
}

fn ioctl(socket: &Socket, call: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: `request` outlives the call, holds a name that ends with zero, and what it points to is alive.
    // Test: loopback_is_known_with_its_state_and_addresses.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), call, request) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_known_with_its_state_and_addresses() {
        let Ok(all) = interfaces() else { panic!("interfaces can be listed") };
        let loopback = all.into_iter().find(|face| face.is_loopback);
        let loopback = loopback.expect("every network namespace has one");
        assert_eq!(interface(&loopback.name).expect("it is there"), loopback);
        assert!(loopback.index > 0 && loopback.mtu >= 1_500, "{loopback:?}");
        assert!(!loopback.is_up || loopback.addresses.iter().any(|(ip, _)| ip.is_loopback()));
        assert!(interface("no-such-face").is_err());
    }
}

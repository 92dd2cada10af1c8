//! The interface of a host: its properties, and the veth pair by which a program gets it.

use crate::HostError;
use emulation::cable::interface::PairEnd;
use emulation::cable::interface_info::switch_offloads_off;
use emulation::cable::namespace::Namespace;
use nix::net::if_::if_nametoindex;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;

/// Its name in the host.
const NAME: &str = "eth0";
/// Longest name of a host.
const NAME_MAX: usize = 32;
/// Range of MTUs: the least of IPv4 (RFC 791), and what the interfaces of virtual machines are made for.
const MTU: std::ops::RangeInclusive<u32> = 68..=9500;
/// Most addresses of a host.
const ADDRESSES_MAX: usize = 16;
/// Settings of IPv6 that are 0, so that it asks no router for an address, and no host whether an address is free.
/// Source: the kernel's ip-sysctl.rst.
const ASKING: [&str; 5] =
    ["accept_ra", "autoconf", "router_solicitations", "accept_dad", "dad_transmits"];

/// The interface `eth0` of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its MAC address.
    pub mac: [u8; 6],
    /// Its addresses with the lengths of their prefixes.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Its MTU in octets, 68 to 9500.
    pub mtu: u32,
}

/// The end of a veth pair that a port of a switch uses.
#[derive(Clone, Copy, Debug)]
pub struct LabEnd<'a> {
    /// The namespace in which the port's socket is opened.
    pub namespace: &'a Namespace,
    /// The name of the interface there, at most 15 octets.
    pub name: &'a str,
    /// Its MAC address.
    pub mac: [u8; 6],
    /// Its alias, for users who list interfaces.
    pub note: &'a str,
}

impl Interface {
    /// Makes the pair: `eth0` in the namespace `inside` with its addresses, switched on, and the other end in the lab.
    pub(crate) fn make(&self, inside: &Namespace, lab: LabEnd<'_>) -> io::Result<()> {
        let near = PairEnd { name: NAME, address: self.mac, namespace: inside.as_fd() };
        let far = PairEnd { name: lab.name, address: lab.mac, namespace: lab.namespace.as_fd() };
        inside.interfaces.make_pair(near, far, self.mtu)?;
        lab.namespace.enter(|| quiet_end(lab.name))?;
        lab.namespace.interfaces.switch_on(lab.name, lab.note)?;
        let has_ipv6 = self.addresses.iter().any(|(address, _)| address.is_ipv6());
        let index = inside.enter(|| {
            switch_offloads_off(NAME)?;
            set_ipv6(NAME, has_ipv6)?;
            set_ipv6("lo", has_ipv6)?;
            Ok(if_nametoindex(NAME)?)
        })?;
        inside.interfaces.set_state("lo", true)?;
        inside.interfaces.switch_on(NAME, lab.note)?;
        self.addresses.iter().try_for_each(|(address, prefix)| {
            inside.interfaces.give_address(index, *address, *prefix)
        })
    }
}

/// Removes `eth0`, and with it the end in the lab. The kernel does so as well, but only some time after the namespace.
pub(crate) fn remove(inside: &Namespace) {
    // The interface is gone if the program has removed it.
    let _ = inside.interfaces.remove(NAME);
}

/// The lab's end only carries frames.
fn quiet_end(name: &str) -> io::Result<()> {
    switch_offloads_off(name)?;
    set_ipv6(name, false)
}

/// Switches IPv6 on or off at an interface of the namespace of the calling thread.
fn set_ipv6(name: &str, on: bool) -> io::Result<()> {
    let set = |key: &str, value: &str| {
        match fs::write(format!("/proc/sys/net/ipv6/conf/{name}/{key}"), value) {
            // A kernel without IPv6 needs no settings.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !on => Ok(()),
            written => written,
        }
    };
    if on {
        ASKING.iter().try_for_each(|key| set(key, "0"))?;
    }
    set("disable_ipv6", if on { "0" } else { "1" })
}

/// Checks the properties of a host's interface.
pub(crate) fn check(
    name: &str,
    mac: [u8; 6],
    mtu: u32,
    addresses: &[(IpAddr, u8)],
) -> Result<(), HostError> {
    let bad = |why: String| Err(HostError::Invalid(format!("host {name:?}: {why}")));
    check_name(name)?;
    if mac[0] & 1 == 1 || mac == [0; 6] {
        return bad("its MAC address must be that of one interface".to_owned());
    }
    if !MTU.contains(&mtu) {
        return bad(format!("an MTU of {mtu} is outside {MTU:?}"));
    }
    let fits =
        |(address, prefix): &(IpAddr, u8)| *prefix <= if address.is_ipv4() { 32 } else { 128 };
    if addresses.len() > ADDRESSES_MAX || !addresses.iter().all(fits) {
        return bad(format!("at most {ADDRESSES_MAX} addresses with a proper prefix are possible"));
    }
    Ok(())
}

/// Refuses names that could be more than a part of a file name.
pub(crate) fn check_name(name: &str) -> Result<(), HostError> {
    let plain = |octet: u8| octet.is_ascii_alphanumeric() || octet == b'-' || octet == b'_';
    let good = name.bytes().all(plain) && !name.starts_with('-');
    if good && (1..=NAME_MAX).contains(&name.len()) {
        return Ok(());
    }
    let text = format!(
        "{name:?} is not a name of a host: letters, digits, `-` and `_`, at most {NAME_MAX}"
    );
    Err(HostError::Invalid(text))
}

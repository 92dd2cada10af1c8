//! `[[host]]`: the keys of hosts, checked, and a port of a switch for each.

use crate::attached::PortRate;
use crate::fabric::FabricSettings;
use crate::fabric::link::{MAPS, MODES};
use crate::host::{Command, ExpectedExit, Host, HostKind};
use crate::keyfile::fields::{Fields, TEXTS, Texts, words};
use crate::keyfile::problem::Complaint;
use crate::lab::{self, Attach, FarEnd};
use crate::refuse_duplicates;
use crate::run::{Backend, Dilate, Run};
use emulation::wiring::{Sending, SocketPair};
use proto::params::{KeyTable, Params};
use proto::units::{BitRate, Bytes, Instant};
use proto::wire::ethernet::{MacAddress, plan};
use std::net::IpAddr;
use std::path::PathBuf;

/// The longest name: it is part of the paths of sockets, which have at most 107 octets (unix(7)).
const NAME_MAX: usize = 24;
/// Addresses of one host.
const ADDRESSES_MAX: usize = 8;
/// Octets of a command.
const COMMAND_MAX: usize = 4_096;
/// The least memory with which the kernel of a virtual machine starts.
const MEMORY_MIN: Bytes = Bytes::new(128 << 20);
/// The first two octets of a MAC address that is made from a name: locally administered, and outside the numbering
/// plan of adapters and ports.
const MAC_PREFIX: u64 = 0x0268 << 32;

/// The keys of `[[host]]`.
pub static KEYS: KeyTable = KeyTable::new(
    "a host at a port of a switch, at dilation 1: a virtual machine on the backends udp and netns, a program in a \
     namespace or container on netns",
    Written::KEYS,
);

proto::params! {
    /// One `[[host]]` as written.
    pub struct Written {
        /// Its name in commands and results: at most 24 letters, digits, - and _.
        name: String = Text, Required;
        /// The port, as node:port; one that no cable uses, beyond the last if need be.
        port: String = Text, Required;
        /// Linux with soft-RoCE in a virtual machine, programs in a network namespace of their own, or a container.
        kind: HostKind = HostKind::KIND, Default("vm");
        /// IPv4 and IPv6 addresses of its interface, each with the length of its prefix, as in 198.18.0.1/16.
        address: Texts = TEXTS, Required;
        /// The MAC address of its interface.
        mac: Option<String> = Text, Else("made from the name, locally administered");
        /// The port's rate, or none: it sends what there is at once.
        rate: PortRate = Either(&[Word(|| vec!["none"]), Rate]), Default("none");
        /// The MTU of its interface, and the largest payload of a frame at the port.
        mtu: Bytes = Octets, Default("9000 B");
        /// How frames leave to it: by a ring of AF_XDP if there is one free, or a packet socket.
        send: Sending = Sending::KIND, Default("ring") => Is("kind", &["netns", "container"]);
        /// How the port and the host stop each other: not at all, by PAUSE, or by PFC for each priority.
        pause: Option<String> = Word(|| words(&MODES)), Else("`pause` of `[fabric.link]`");
        /// The rate whose bit times pause quanta count: the speed that the host assumes.
        pause_rate: Option<BitRate> = Rate, Else("`rate`; 10 Gbps without one");
        /// What gives a frame its priority: upper three bits of the DSCP, or the tag's PCP.
        priorities: Option<String> = Word(|| words(&MAPS)), Else("`priorities` of `[fabric.link]`");
        /// Memory of the virtual machine, or the limit of the container.
        memory: Option<Bytes> = Octets, Else("what the image needs for a vm; no limit for a container") => Is("kind", &["vm", "container"]);
        /// The kernel of the virtual machine, instead of the one that `pausebed vm build` made last.
        kernel: Option<String> = Text, Optional => Is("kind", &["vm"]);
        /// The image of the container; it needs the program cat.
        image: Option<String> = Text, Optional => Is("kind", &["container"]);
        /// A command that a run starts on the host; words as in a shell, but no shell reads them.
        run: Option<String> = Text, Optional;
        /// When it is started.
        start: Instant = Time, Default("0 mtu") => Written("run");
        /// Its exit code, without which the run fails; with any, every code, and it need not end.
        exit: ExpectedExit = Either(&[Word(|| vec!["any"]), Whole(0, 255)]), Default("0") => Written("run");
    }
}

/// Reads every `[[host]]`; each becomes an attached port of the fabric.
pub fn read(root: &Fields<'_>, run: Option<&Run>, fabric: &mut FabricSettings) {
    refuse_duplicates(&root.tables("host"), "hosts");
    let all = root.each::<Written>("host");
    if let (Some(Dilate::By(by)), Some(fields)) = (run.map(|run| run.dilate), root.table("run"))
        && by != 1.0
        && !all.is_empty()
    {
        fields.error("dilate", "hosts run in real time", "dilate = 1, or leave it out");
    }
    for (fields, written) in all {
        if let Some(host) = one(&fields, written, run, fabric) {
            fabric.hosts.push(host);
        }
    }
}

fn one(
    fields: &Fields<'_>,
    written: Written,
    run: Option<&Run>,
    fabric: &mut FabricSettings,
) -> Option<Host> {
    check_backend(fields, written.kind, run);
    let name = fields.accept("name", name(&written.name, fabric));
    let addresses = fields.gather("address", &written.address, |text| address(text, fabric));
    let addresses = addresses.and_then(|addresses| distinct(fields, addresses));
    let mac = fields.accept("mac", mac(&written, fabric));
    let command = command(fields, &written, run);
    let image = image(fields, &written);
    if written.memory.is_some_and(|memory| written.kind == HostKind::Vm && memory < MEMORY_MIN) {
        fields.error("memory", "Linux needs more memory to start", "\"192 MiB\" is usual");
    }
    let (name, addresses, mac, command, image) = (name?, addresses?, mac?, command?, image?);
    let socket = (written.kind == HostKind::Vm).then(|| {
        let file = |ending: &str| PathBuf::from(format!("{name}.{ending}"));
        SocketPair::Unix { local: file("lab"), remote: file("peer") }
    });
    let (kind, mtu, memory) = (written.kind, written.mtu, written.memory);
    let kernel = written.kernel.clone();
    let far_end = FarEnd { interface: name.clone(), socket, is_host: true };
    let at = lab::attach(fields, fabric, attach(written), far_end)?;
    let kernel = kernel.map(PathBuf::from);
    Some(Host { name, at, kind, addresses, mac, mtu, memory, kernel, image, command })
}

/// What `[lab] attach` says of a port, said of a host.
fn attach(written: Written) -> Attach {
    let Written { port, rate, mtu, send, pause, pause_rate, priorities, .. } = written;
    let (iface, socket, local, remote) = (None, None, None, None);
    Attach { port, iface, socket, local, remote, rate, mtu, send, pause, pause_rate, priorities }
}

/// Refuses backends that cannot have the host.
fn check_backend(fields: &Fields<'_>, kind: HostKind, run: Option<&Run>) {
    let Some(run) = run else { return };
    let (fits, hint) = match kind {
        HostKind::Vm => (&[Backend::Udp, Backend::Netns][..], "run.backend = \"udp\" or \"netns\""),
        _ => (&[Backend::Netns][..], "run.backend = \"netns\""),
    };
    if !fits.contains(&run.backend) {
        let (kind, backend) = (kind.word(), run.backend.word());
        let message = format!("the backend {backend} has no hosts of the kind {kind}");
        fields.error("kind", message, hint);
    }
}

/// A name that is free, and fit for files, sockets and containers.
fn name(text: &str, fabric: &FabricSettings) -> Result<String, Complaint> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    let begins = text.starts_with(|letter: char| letter.is_ascii_alphanumeric());
    if !begins || text.len() > NAME_MAX || !text.chars().all(is_plain) {
        let hint = format!("at most {NAME_MAX} letters, digits, - and _, the first no sign");
        return Err(Complaint::new(format!("{text:?} cannot be the name of a host"), hint));
    }
    if fabric.topology.find(text).is_some() {
        return Err(Complaint::new(format!("{text} is a device of the fabric"), "another name"));
    }
    Ok(text.to_owned())
}

/// An address of an interface, as `address/prefix`, that nothing else on the fabric has.
fn address(text: &str, fabric: &FabricSettings) -> Result<Vec<(IpAddr, u8)>, Complaint> {
    let parsed = text.split_once('/').and_then(|(address, prefix)| {
        let (address, prefix) = (address.parse::<IpAddr>().ok()?, prefix.parse::<u8>().ok()?);
        let bits = if address.is_ipv4() { 32 } else { 128 };
        (1..=bits).contains(&prefix).then_some((address, prefix))
    });
    let hint = "such as \"198.18.0.1/16\" or \"2001:db8::1/64\"";
    let no_address = || Complaint::new(format!("{text:?} is not an address with a prefix"), hint);
    let (address, prefix) = parsed.ok_or_else(no_address)?;
    if !is_usable(address, prefix) {
        let message = format!("{address} is not an address that an interface can have");
        return Err(Complaint::new(message, hint));
    }
    if let Some(host) = fabric.hosts.iter().find(|host| host.has(address)) {
        let message = format!("{address} is an address of host {} already", host.name);
        return Err(Complaint::new(message, "another address"));
    }
    let nodes = &fabric.topology.nodes[..fabric.topology.adapters()];
    let is_his = |number| address == plan::ipv4(number) || address == plan::ipv6(number);
    match nodes.iter().find(|node| is_his(node.lid)) {
        Some(nic) => {
            let message = format!("{address} is the address of {}", nic.name);
            Err(Complaint::new(message, "NICs have 198.18.0.1 and 2001:db8::1 upwards"))
        }
        None => Ok(vec![(address, prefix)]),
    }
}

/// Whether one interface can have `address`: not one of a group, of this host, or of a whole network.
fn is_usable(address: IpAddr, prefix: u8) -> bool {
    if address.is_unspecified() || address.is_loopback() || address.is_multicast() {
        return false;
    }
    match address {
        IpAddr::V4(address) if prefix < 31 => {
            let host = address.to_bits() << prefix;
            !address.is_broadcast() && host != 0 && host != u32::MAX << prefix
        }
        IpAddr::V4(address) => !address.is_broadcast(),
        IpAddr::V6(address) => address.to_ipv4_mapped().is_none(),
    }
}

/// The addresses of one host: at least one, not too many, each once.
fn distinct(fields: &Fields<'_>, addresses: Vec<(IpAddr, u8)>) -> Option<Vec<(IpAddr, u8)>> {
    if !(1..=ADDRESSES_MAX).contains(&addresses.len()) {
        let message = format!("{} addresses", addresses.len());
        return fields.refuse("address", message, format!("from 1 to {ADDRESSES_MAX}"));
    }
    for (index, (address, _)) in addresses.iter().enumerate() {
        if addresses[..index].iter().any(|(other, _)| other == address) {
            return fields.refuse("address", format!("{address} stands here twice"), "once");
        }
    }
    Some(addresses)
}

/// The MAC address as written, or made from the name; nothing else on the fabric has it.
fn mac(written: &Written, fabric: &FabricSettings) -> Result<MacAddress, Complaint> {
    let hint = "such as mac = \"02:00:00:00:01:01\"";
    let mac = match &written.mac {
        None => made_from(&written.name),
        Some(text) => {
            let wrong = |_| Complaint::new(format!("{text:?} is not a MAC address"), hint);
            text.parse::<MacAddress>().map_err(wrong)?
        }
    };
    if mac.number() == 0 || mac.number() >> 40 & 1 == 1 {
        let message = format!("{mac} is not an address that an interface can have");
        return Err(Complaint::new(message, hint));
    }
    if let Some(host) = fabric.hosts.iter().find(|host| host.mac == mac) {
        let message = format!("{mac} is the MAC address of host {} already", host.name);
        return Err(Complaint::new(message, hint));
    }
    let lid_is_used = |lid| fabric.topology.nodes.iter().any(|node| node.lid == lid);
    if plan::adapter_of_mac(mac).is_some_and(lid_is_used) {
        let message = format!("{mac} is the MAC address of a device of the fabric");
        return Err(Complaint::new(message, hint));
    }
    Ok(mac)
}

/// 02:68 and the 32-bit FNV-1a hash of the name.
fn made_from(name: &str) -> MacAddress {
    let hash = name
        .bytes()
        .fold(0x811c_9dc5u32, |hash, octet| (hash ^ u32::from(octet)).wrapping_mul(0x0100_0193));
    MacAddress::from_number(MAC_PREFIX | u64::from(hash))
}

/// What a run starts; the outer `None` after an error.
fn command(fields: &Fields<'_>, written: &Written, run: Option<&Run>) -> Option<Option<Command>> {
    let Some(text) = &written.run else { return Some(None) };
    let hint = "such as run = \"ping -c 3 198.18.0.2\"";
    let words = if text.len() > COMMAND_MAX || text.contains('\0') {
        None
    } else {
        shlex::split(text).filter(|words| words.first().is_some_and(|program| !program.is_empty()))
    };
    let Some(words) = words else {
        let message = "no command: it is empty, longer than 4096 octets, or a quote is not closed";
        return fields.refuse("run", message, hint);
    };
    if run.is_some_and(|run| written.start >= run.end()) {
        return fields.refuse("start", "the run has ended by then", "see run.duration");
    }
    let line = fields.place.line();
    Some(Some(Command { words, start: written.start, exit: written.exit, line }))
}

/// The image of a container; the outer `None` after an error.
fn image(fields: &Fields<'_>, written: &Written) -> Option<Option<String>> {
    if written.kind != HostKind::Container {
        return Some(None);
    }
    let example = "such as image = \"alpine:3.20\"";
    let Some(image) = &written.image else {
        return fields.refuse("image", "a container needs an image", example);
    };
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-/:@".contains(letter);
    let begins = image.starts_with(|letter: char| letter.is_ascii_alphanumeric());
    if !begins || image.len() > 255 || !image.chars().all(is_plain) {
        return fields.refuse("image", format!("{image:?} is the name of no image"), example);
    }
    Some(Some(image.clone()))
}

#[cfg(test)]
mod tests;

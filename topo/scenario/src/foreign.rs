//! `[[foreign]]`: hosts at attached ports that traffic items can name as receivers.
//!
//! A host's number is that of its address in the numbering plan, so its frames tell who sent them.

use crate::fabric::FabricSettings;
use crate::host::ForeignHost;
use crate::keyfile::fields::Fields;
use crate::keyfile::problem::Complaint;
use nicd::config::{Encapsulation, RoceVersion};
use proto::ids::Lid;
use proto::params::{KeyTable, Params};
use proto::units::Bytes;
use proto::wire::ethernet::plan;
use std::net::IpAddr;

/// The keys of `[[foreign]]`.
pub static KEYS: KeyTable =
    KeyTable::new("a host at an attached port that traffic can be sent to", Written::KEYS);

proto::params! {
    /// One `[[foreign]]` as written.
    pub struct Written {
        /// Its name, which traffic items give as receiver.
        name: String = Text, Required;
        /// Its IP address, in 198.18.0.0/16, or in 2001:db8::/112 if roce is v2-ipv6, and that of no NIC.
        address: String = Text, Required;
        /// The MTU of its interface, which limits the path MTU.
        mtu: Bytes = Octets, Default("1500 B");
    }
}

/// The port of the connection manager at which the example programs of rdma-core listen.
pub const PORT: u16 = 7471;

/// Octets that Linux reserves for headers when it derives a path MTU: IPv6, UDP, BTH, XRCETH, AtomicETH, ICRC.
/// Source: Linux, `iboe_get_mtu`.
const HEADERS: u64 = 40 + 8 + 12 + 4 + 28 + 4;

/// The path MTU over an interface with this MTU, on a fabric with `most`; `None` if not even the least one fits.
/// Source: IBTA Vol 1, 12.7.23 (256 to 4096).
pub fn path_mtu(interface: Bytes, most: Bytes) -> Option<Bytes> {
    let fits = |mtu: &u64| *mtu <= most.get() && *mtu + HEADERS <= interface.get();
    [4096, 2048, 1024, 512, 256].into_iter().find(fits).map(Bytes::new)
}

/// Reads every `[[foreign]]`.
pub fn read(root: &Fields<'_>, fabric: &mut FabricSettings) {
    for (fields, Written { name, address, mtu }) in root.each::<Written>("foreign") {
        if fabric.attached.is_empty() {
            let hint = "[lab] attach = [{ port = \"s1:4\", socket = \"v1\" }]";
            fields.error("name", "no host is attached", hint);
            continue;
        }
        let taken = fabric.topology.find(&name).is_some()
            || fabric.foreign.iter().any(|other| other.name == name);
        if taken || name.is_empty() {
            fields.error("name", format!("{name:?} is taken, or empty"), "another name");
            continue;
        }
        let number = fields.accept("address", number(&address, fabric));
        let Some(path_mtu) = path_mtu(mtu, fabric.mtu) else {
            fields.error("mtu", "no packet of 256 octets fits", "at least \"352 B\"");
            continue;
        };
        fabric.foreign.extend(number.map(|number| ForeignHost { name, number, path_mtu }));
    }
}

/// The number of an address.
fn number(text: &str, fabric: &FabricSettings) -> Result<Lid, Complaint> {
    let wants_ipv4 = match &fabric.nic.wire {
        Encapsulation::Roce(roce) => roce.version == RoceVersion::V2Ipv4,
        Encapsulation::Infiniband => true,
    };
    let (prefix, hint) = match wants_ipv4 {
        true => ("198.18.0.0/16", "198.18.0.200"),
        false => ("2001:db8::/112", "2001:db8::200"),
    };
    let number = match text.parse() {
        Ok(IpAddr::V4(ip)) if wants_ipv4 => plan::adapter_of_ipv4(ip),
        Ok(IpAddr::V6(ip)) if !wants_ipv4 => plan::adapter_of_ipv6(ip),
        _ => None,
    };
    let number = number.filter(|number| number.is_unicast());
    let outside = || Complaint::new(format!("{text:?} is not an address in {prefix}"), hint);
    let number = number.ok_or_else(outside)?;
    let nodes = &fabric.topology.nodes[..fabric.topology.adapters()];
    let owner = nodes.iter().find(|node| node.lid == number).map(|node| node.name.as_str());
    let foreign = fabric.foreign.iter().find(|other| other.number == number);
    match owner.or(foreign.map(|other| other.name.as_str())) {
        Some(owner) => Err(Complaint::new(format!("{text} is the address of {owner}"), hint)),
        None => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;
    use crate::render::render;
    use nicd::config::{RemoteConfig, Target};

    fn scenario(keys: &str) -> Result<Scenario, String> {
        let text = format!(
            r#"
            schema = 1
            name = "foreign"
            [run]
            duration = "1 ms"
            backend = "udp"
            [fabric]
            technology = "ethernet"
            mtu = "4096 B"
            nodes = [{{ name = "s1", kind = "switch" }}, {{ name = "h1", kind = "nic" }}]
            links = [{{ a = "h1:1", b = "s1:1" }}]
            link = {{ pause = "none" }}
            [lab]
            attach = [{{ port = "s1:3", socket = "v1" }}]
            {keys}
            "#
        );
        Scenario::parse(&text, &[]).map_err(|problems| problems.in_file("foreign.toml"))
    }

    fn foreign(address: &str) -> String {
        format!("[[foreign]]\nname = \"v1\"\naddress = \"{address}\"\n")
    }

    fn traffic(more: &str) -> String {
        format!("[[traffic]]\nname = \"t\"\nfrom = \"h1\"\narrivals = \"backlog\"\n{more}\n")
    }

    #[test]
    fn a_traffic_item_may_name_a_foreign_host() {
        let keys = format!("{}{}", foreign("198.18.0.200"), traffic("to = \"v1\"\nport = 9"));
        let lab = render(&scenario(&keys).unwrap_or_else(|problems| panic!("{problems}")));
        let nic = &lab.nics[0];
        let lid = Lid::new(200);
        let remote = RemoteConfig { lid, class: 0, port: 9, mtu: Bytes::new(1024) };
        assert_eq!(nic.host.as_ref().expect("a host").remotes, [remote]);
        assert_eq!(nic.traffic[0].to, Target::Lids(vec![lid]));
        assert!(nic.check().is_ok());
    }

    #[test]
    fn wrong_addresses_and_receivers_are_refused() {
        let refused = |keys: &str| scenario(keys).expect_err("it is refused");
        assert!(refused(&foreign("10.0.0.1")).contains("not an address in 198.18.0.0/16"));
        assert!(refused(&foreign("2001:db8::200")).contains("not an address in"));
        assert!(refused(&foreign("198.18.0.1")).contains("is the address of h1"));
        let host = foreign("198.18.0.200");
        let mixed = format!("{host}{}", traffic("to = [\"v1\", \"h1\"]"));
        assert!(refused(&mixed).contains("NICs and foreign hosts"), "{}", refused(&mixed));
        let ud = format!("{host}{}", traffic("to = \"v1\"\ntransport = \"ud\""));
        assert!(refused(&ud).contains("reliable"), "{}", refused(&ud));
        let port = traffic("to = \"uniform\"\nport = 9");
        assert!(refused(&port).contains("port"), "{}", refused(&port));
    }

    #[test]
    fn the_path_mtu_is_that_of_linux() {
        let mtu = |interface: u64| path_mtu(Bytes::new(interface), Bytes::new(4096));
        assert_eq!(mtu(1500), Some(Bytes::new(1024)));
        assert_eq!(mtu(9000), Some(Bytes::new(4096)));
        assert_eq!((mtu(4192), mtu(4191)), (Some(Bytes::new(4096)), Some(Bytes::new(2048))));
        assert_eq!((mtu(352), mtu(351)), (Some(Bytes::new(256)), None));
        assert_eq!(path_mtu(Bytes::new(9000), Bytes::new(3000)), Some(Bytes::new(2048)));
    }
}

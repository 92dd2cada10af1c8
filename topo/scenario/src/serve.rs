//! `[[serve]]`: programs that NICs imitate for hosts at attached ports.

use crate::fabric::FabricSettings;
use crate::keyfile::fields::{Fields, TEXTS, Texts};
use crate::names;
use nicd::config::{ServeConfig, ServiceKind};
use proto::params::{KeyTable, Params};

/// The keys of `[[serve]]`.
pub static KEYS: KeyTable =
    KeyTable::new("a program that NICs imitate for hosts at attached ports", Serve::KEYS);

proto::params! {
    /// One `[[serve]]` as written.
    pub struct Serve {
        /// The NICs that serve, by name.
        node: Texts = TEXTS, Required;
        /// The program: the server of rping, or of the bandwidth tests of perftest with -R.
        kind: ServiceKind = ServiceKind::KIND, Required;
        /// The port of the connection manager.
        port: Option<u16> = Whole(1, 65_535), Else("7174 for rping, 18515 for perftest");
    }
}

/// Reads every `[[serve]]`: NICs with what they serve, in the order of the file.
pub fn read(root: &Fields<'_>, fabric: &FabricSettings) -> Vec<(usize, ServeConfig)> {
    let mut serving: Vec<(usize, ServeConfig)> = Vec::new();
    for (fields, Serve { node, kind, port }) in root.each::<Serve>("serve") {
        if fabric.attached.is_empty() {
            let hint = "[lab] attach = [{ port = \"s1:4\", socket = \"v1\" }]";
            fields.error("node", "no host is attached that could ask", hint);
            continue;
        }
        let nodes = fields.gather("node", &node, |text| names::adapters(&fabric.topology, text));
        let config = ServeConfig { kind, port: port.unwrap_or(kind.port()) };
        for node in nodes.unwrap_or_default() {
            if serving.iter().any(|(other, old)| (*other, old.port) == (node, config.port)) {
                let name = &fabric.topology.nodes[node].name;
                let message = format!("{name} serves something else at port {}", config.port);
                fields.error("port", message, "another port");
                continue;
            }
            serving.push((node, config));
        }
    }
    serving
}

#[cfg(test)]
mod tests {
    use crate::Scenario;
    use crate::render::render;
    use nicd::config::{HostConfig, ServeConfig, ServiceKind};

    fn scenario(keys: &str) -> Result<Scenario, String> {
        let text = format!(
            r#"
            schema = 1
            name = "serve"
            [run]
            duration = "1 ms"
            backend = "udp"
            [fabric]
            technology = "ethernet"
            nodes = [{{ name = "s1", kind = "switch" }}, {{ name = "h1", kind = "nic" }}, {{ name = "h2", kind = "nic" }}]
            links = [{{ a = "h1:1", b = "s1:1" }}, {{ a = "h2:1", b = "s1:2" }}]
            link = {{ pause = "none" }}
            {keys}
            "#
        );
        Scenario::parse(&text, &[]).map_err(|problems| problems.in_file("serve.toml"))
    }

    const ATTACHED: &str = "[lab]\nattach = [{ port = \"s1:3\", socket = \"v1\" }]\n";

    fn refused(keys: &str) -> String {
        scenario(keys).expect_err("it is refused")
    }

    #[test]
    fn every_nic_of_a_lab_with_hosts_is_one_and_some_serve() {
        let keys = format!("{ATTACHED}[[serve]]\nnode = \"h2\"\nkind = \"rping\"");
        let lab = render(&scenario(&keys).expect("it is valid"));
        let hosts: Vec<_> = lab.nics.iter().map(|nic| nic.host.clone()).collect();
        let rping = ServeConfig { kind: ServiceKind::Rping, port: 7174 };
        let serving = HostConfig { serve: vec![rping], ..HostConfig::default() };
        assert_eq!(hosts, [Some(HostConfig::default()), Some(serving)]);
        let alone = render(&scenario("").expect("it is valid"));
        assert!(alone.nics.iter().all(|nic| nic.host.is_none()), "no foreign host, no host");
    }

    #[test]
    fn ports_are_given_once_and_only_where_hosts_are() {
        let serve = "[[serve]]\nnode = \"h*\"\nkind = \"perftest\"\n";
        assert!(refused(serve).contains("no host is attached"), "{}", refused(serve));
        let twice = refused(&format!("{ATTACHED}{serve}{serve}"));
        assert!(twice.contains("h1 serves something else at port 18515"), "{twice}");
        let other = serve.replace("perftest", "ssh");
        assert!(refused(&format!("{ATTACHED}{other}")).contains("rping"));
    }
}

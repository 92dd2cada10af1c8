//! What a Compose file contains and what it must never contain.

use super::*;
use emulation::wiring::NodeWiring;
use scenario::run::Placement;

fn wiring(names: &[&str]) -> Wiring {
    let node = |(place, name): (usize, &&str)| NodeWiring {
        name: (*name).to_owned(),
        kind: if place == 0 { NodeKind::Nic } else { NodeKind::Switch },
        ports: 1,
        level: 0,
    };
    Wiring { nodes: names.iter().enumerate().map(node).collect(), ..Wiring::default() }
}

fn text(names: &[&str], engine: Engine, launcher: &Launcher, scenario: &str) -> String {
    let wiring = wiring(names);
    let hosting = Hosting::elsewhere(&wiring, Placement::Device);
    let lab = ContainerLab {
        scenario,
        labels: Labels { id: "0badcafe", owner: "me" },
        token: "secret",
        image: "pausebed:0",
        subnet: "198.18.7.0/24".parse().expect("a network"),
        realtime: false,
        launcher,
        monitoring: None,
    };
    render(&lab, engine, &wiring, &hosting)
}

fn service() -> Launcher {
    Launcher::Service {
        file: "/labs/a $.toml".to_owned(),
        arguments: vec!["--seed".to_owned(), "3".to_owned()],
        out: None,
    }
}

/// What the file says, without the comment before it.
fn parse(text: &str) -> Value {
    let lines = text.lines().skip_while(|line| line.starts_with('#'));
    serde_json::from_str(&lines.collect::<Vec<_>>().join("\n")).expect("JSON")
}

#[test]
fn each_process_is_a_service_without_privilege_that_joins_the_launcher_at_the_gateway() {
    let text = text(&["h0", "s0"], Engine::Compose, &Launcher::Outside, "a lab");
    let file = parse(&text);
    let services = file["services"].as_object().expect("services");
    assert_eq!(services.keys().collect::<Vec<_>>(), ["h0", "s0"]);
    assert_eq!(services["h0"]["image"], "pausebed:0");
    let command = json!(["switchd", "--join", "198.18.7.1:4700", "--process", "1"]);
    assert_eq!(services["s0"]["command"], command);
    for service in services.values() {
        assert_eq!(service["read_only"], true);
        assert_eq!(service["cap_drop"], json!(["ALL"]));
        assert_eq!(service["security_opt"], json!(["no-new-privileges:true"]));
        for never in ["cap_add", "user", "network_mode", "pid", "ports"] {
            assert!(service.get(never).is_none(), "{never} in {text}");
        }
    }
    for never in ["privileged", "docker.sock"] {
        assert!(!text.contains(never), "{never} in {text}");
    }
    let network = &file["networks"]["fabric"];
    assert_eq!(network["ipam"]["config"][0]["subnet"], "198.18.7.0/24");
    assert_eq!(network["driver_opts"]["com.docker.network.driver.mtu"], "9000");
    assert!(file.get("configs").is_none(), "{text}");
}

#[test]
fn a_file_that_stands_alone_has_its_launcher_and_reads_the_scenario_where_it_is() {
    let compose = parse(&text(&["h0", "s0"], Engine::Compose, &service(), "a lab"));
    let launcher = &compose["services"]["launcher"];
    assert_eq!(launcher["volumes"][1], "/labs/a $$.toml:/scenario.toml:ro");
    assert_eq!(
        launcher["command"].as_array().map(|words| &words[5..]),
        Some(&[json!("--seed"), json!("3")][..])
    );
    assert_eq!(compose["services"]["h0"]["command"][2], "launcher:4700");
    let swarm = parse(&text(&["h0", "s0"], Engine::Swarm, &service(), "a lab"));
    assert_eq!(swarm["networks"]["fabric"]["driver"], "overlay");
    assert_eq!(swarm["configs"]["scenario"]["file"], "/labs/a $$.toml");
    for service in swarm["services"].as_object().expect("services").values() {
        assert_eq!(service["deploy"]["endpoint_mode"], "dnsrr");
        assert!(service.get("restart").is_none());
    }
    let volumes = swarm["services"]["launcher"]["volumes"].as_array().expect("a list");
    assert_eq!(volumes.len(), 1, "the scenario is not a volume");
}

#[test]
fn a_folder_for_run_directories_is_mounted_for_its_owner() {
    let out = OutFolder { path: "/runs $".to_owned(), owner: (1000, 100) };
    let Launcher::Service { file, arguments, .. } = service() else { panic!("a service") };
    let launcher = Launcher::Service { file, arguments, out: Some(out) };
    for (engine, place) in [(Engine::Compose, 2), (Engine::Swarm, 1)] {
        let file = parse(&text(&["h0", "s0"], engine, &launcher, "a lab"));
        let launcher = &file["services"]["launcher"];
        assert_eq!(
            (&launcher["command"][4], &launcher["user"]),
            (&json!("--out"), &json!("1000:100"))
        );
        let mount =
            json!({ "type": "bind", "source": "/runs $$", "target": launcher["command"][5] });
        assert_eq!(launcher["volumes"][place], mount);
    }
}

#[test]
fn hostile_names_neither_become_services_nor_leave_their_comment() {
    let names = ["h0: {privileged: true}", "launcher"];
    let text = text(&names, Engine::Compose, &service(), "x\nservices:\n  evil: {}\n");
    assert_eq!(text.lines().filter(|line| line.starts_with('#')).count(), 2, "{text}");
    let file = parse(&text);
    let services = file["services"].as_object().expect("services");
    let found: Vec<&String> = services.keys().collect();
    assert_eq!(found, ["launcher", "nicd-0", "switchd-1"]);
    assert!(services.values().all(|service| service.get("privileged").is_none()), "{text}");
    let own = ["launcher", "prometheus", "grafana"];
    for bad in own.into_iter().chain(["", "A", "0h", "h_0", "h0-", &"h".repeat(41)]) {
        assert!(!is_service_name(bad), "{bad}");
    }
    assert!(is_service_name("h0") && is_service_name("leaf-12"));
}

#[test]
fn with_monitoring_daemons_serve_metrics_and_grafana_needs_its_profile() {
    let wiring = wiring(&["h0", "grafana"]);
    let hosting = Hosting::elsewhere(&wiring, Placement::Device);
    let monitoring = Monitoring {
        folder: "/labs/a $ monitoring".into(),
        image: "prometheus:0".to_owned(),
        user: (1000, 100),
    };
    let lab = ContainerLab {
        scenario: "a lab",
        labels: Labels { id: "0badcafe", owner: "me" },
        token: "secret",
        image: "pausebed:0",
        subnet: "198.18.7.0/24".parse().expect("a network"),
        realtime: false,
        launcher: &service(),
        monitoring: Some(&monitoring),
    };
    let text = render(&lab, Engine::Compose, &wiring, &hosting);
    let file = parse(&text);
    let services = &file["services"];
    let admin = |name: &str| services[name]["command"][6].clone();
    assert_eq!((admin("h0"), admin("switchd-1")), (json!("h0:4701"), json!("switchd-1:4701")));
    let prometheus = &services["prometheus"];
    assert_eq!(prometheus["image"], "prometheus:0");
    assert_eq!(prometheus["user"], "1000:100");
    assert_eq!(prometheus["ports"][0], "127.0.0.1:${PAUSEBED_PROMETHEUS_PORT:-9090}:9090");
    let config = "/labs/a $$ monitoring/prometheus.yml:/etc/prometheus.yml:ro";
    assert_eq!(prometheus["volumes"][1], config);
    let grafana = &services["grafana"];
    assert_eq!(grafana["image"], "grafana/grafana");
    assert_eq!(grafana["profiles"], json!(["grafana"]));
    // Only the daemons and the launcher have the token in this file.
    assert_eq!(text.matches("secret").count(), 3, "{text}");
}

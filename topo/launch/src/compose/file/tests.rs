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
        subnet: Ipv4Addr::new(198, 18, 7, 0),
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
    }
}

#[test]
fn each_process_is_a_service_without_privilege_that_joins_the_launcher_at_the_gateway() {
    let text = text(&["h0", "s0"], Engine::Compose, &Launcher::Outside, "a lab");
    assert!(text.contains("\n  h0:\n    image: \"pausebed:0\"\n"), "{text}");
    let command = "command: [\"switchd\", \"--join\", \"198.18.7.1:4700\", \"--process\", \"1\"]";
    assert!(text.contains(command), "{text}");
    for promise in ["read_only: true", "cap_drop: [\"ALL\"]", "no-new-privileges"] {
        assert_eq!(text.matches(promise).count(), 2, "{promise} in {text}");
    }
    for never in ["privileged", "cap_add", "user:", "network_mode", "pid:", "ports:", "docker.sock"]
    {
        assert!(!text.contains(never), "{never} in {text}");
    }
    assert!(text.contains("subnet: \"198.18.7.0/24\"") && text.contains("mtu: \"9000\""), "{text}");
    assert!(!text.contains("configs:") && !text.contains("launcher:\n"), "{text}");
}

#[test]
fn a_file_that_stands_alone_has_its_launcher_and_reads_the_scenario_where_it_is() {
    let compose = text(&["h0", "s0"], Engine::Compose, &service(), "a lab");
    assert!(compose.contains("- \"/labs/a $$.toml:/scenario.toml:ro\""), "{compose}");
    assert!(compose.contains("\"--join\", \"launcher:4700\""), "{compose}");
    assert!(compose.contains("\"--seed\", \"3\"]"), "{compose}");
    let swarm = text(&["h0", "s0"], Engine::Swarm, &service(), "a lab");
    assert!(swarm.contains("driver: overlay") && swarm.contains("endpoint_mode: dnsrr"), "{swarm}");
    assert!(swarm.contains("configs:\n  scenario:\n    file: \"/labs/a $$.toml\""), "{swarm}");
    assert!(!swarm.contains("/labs/a $$.toml:/scenario") && !swarm.contains("restart:"), "{swarm}");
}

#[test]
fn hostile_names_neither_become_services_nor_leave_their_comment() {
    let names = ["h0: {privileged: true}", "launcher"];
    let text = text(&names, Engine::Compose, &service(), "x\nservices:\n  evil: {}\n");
    assert!(text.contains("\n  nicd-0:\n") && text.contains("\n  switchd-1:\n"), "{text}");
    assert!(!text.contains("privileged: true") && !text.contains("\n  evil"), "{text}");
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
        subnet: Ipv4Addr::new(198, 18, 7, 0),
        realtime: false,
        launcher: &service(),
        monitoring: Some(&monitoring),
    };
    let text = render(&lab, Engine::Compose, &wiring, &hosting);
    assert!(text.contains("\"--process\", \"0\", \"--admin\", \"h0:4701\"]"), "{text}");
    assert!(text.contains("\"--admin\", \"switchd-1:4701\"]"), "{text}");
    let promises = [
        "\n  prometheus:\n    image: \"prometheus:0\"\n",
        "user: \"1000:100\"",
        "ports: [\"127.0.0.1:${PAUSEBED_PROMETHEUS_PORT:-9090}:9090\"]",
        "- \"/labs/a $$ monitoring/prometheus.yml:/etc/prometheus.yml:ro\"",
        "\n  grafana:\n    image: \"grafana/grafana\"\n    profiles: [\"grafana\"]\n",
    ];
    for promise in promises {
        assert!(text.contains(promise), "{promise} in {text}");
    }
    // Only the daemons and the launcher have the token in this file.
    assert_eq!(text.matches("secret").count(), 3, "{text}");
}

//! Monitoring of a lab of containers: Prometheus scrapes every daemon, and Grafana shows the dashboard.
//!
//! ```text
//!   daemons ◀── /metrics, with a token that only reads ── prometheus ◀── grafana (only with its profile)
//! ```
//!
//! The configuration of both is in a folder of this host that the Compose file mounts. It is JSON, which is YAML.

use super::service::{Engine, Labels, literal};
use daemon::token::Token;
use serde_json::{Value, json};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The name of the service that scrapes.
pub(super) const PROMETHEUS: &str = "prometheus";
/// The name of the service that draws, and of the profile that starts it.
pub(super) const GRAFANA: &str = "grafana";
/// The port of a daemon's administration in the lab's network.
const ADMIN_PORT: u16 = 4701;
/// The port of Prometheus.
const PROMETHEUS_PORT: u16 = 9090;
/// The scrape interval: runs last seconds to minutes.
const SCRAPE_INTERVAL: &str = "1s";

const CONFIG: &str = "prometheus.yml";
const SOURCE: &str = "datasource.yml";
const PROVIDER: &str = "provider.yml";
const DASHBOARD: &str = "pausebed.json";
/// The folder of dashboards in the container of Grafana.
const DASHBOARDS: &str = "/var/lib/grafana/dashboards";
/// The folder of its configuration. Source: Grafana documentation, "Provision Grafana".
const PROVISIONING: &str = "/etc/grafana/provisioning";

/// Prometheus and Grafana of a lab.
#[derive(Clone, Debug)]
pub struct Monitoring {
    /// The folder of their configuration, as an absolute path.
    pub folder: PathBuf,
    /// The image of Prometheus.
    pub image: String,
    /// The user and group that own the folder.
    pub user: (u32, u32),
}

/// The name of the image of Prometheus that docker/prometheus.sh builds.
pub fn image() -> String {
    format!("pausebed-prometheus:{}", env!("CARGO_PKG_VERSION"))
}

/// The host and port of the daemon in a service: the target of Prometheus, and the name that the daemon accepts.
pub(super) fn target(service: &str) -> String {
    format!("{service}:{ADMIN_PORT}")
}

impl Monitoring {
    /// Writes the configuration of both: the targets with the token, the data source, and the dashboard.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, services: &[String], token: &Token, dashboard: &[u8]) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let public = |name: &str, text: &[u8]| fs::write(self.folder.join(name), text);
        public(SOURCE, pretty(&source()).as_bytes())?;
        public(PROVIDER, pretty(&provider()).as_bytes())?;
        public(DASHBOARD, dashboard)?;
        secret(&self.folder.join(CONFIG), &pretty(&scraping(services, token)))
    }

    /// The services of the Compose file, by name.
    pub(super) fn services(&self, labels: Labels<'_>) -> [(String, Value); 2] {
        let words = [
            format!("--config.file=/etc/{CONFIG}"),
            "--storage.tsdb.path=/data".to_owned(),
            // The data is in memory.
            "--storage.tsdb.retention.size=256MB".to_owned(),
        ];
        let mut prometheus = labels.service(Engine::Compose, &self.image, &words);
        let (user, group) = self.user;
        prometheus["user"] = json!(format!("{user}:{group}"));
        prometheus["ports"] = json!([published("PAUSEBED_PROMETHEUS_PORT", PROMETHEUS_PORT)]);
        let data = json!({ "type": "tmpfs", "target": "/data" });
        prometheus["volumes"] = json!([data, self.mounted(CONFIG, "/etc")]);
        let grafana = json!({
            "image": "grafana/grafana",
            "profiles": [GRAFANA],
            "networks": ["fabric"],
            "ports": [published("PAUSEBED_GRAFANA_PORT", 3000)],
            // Every user of this host may look. Without an account there is no default password.
            "environment": {
                "GF_AUTH_ANONYMOUS_ENABLED": "true",
                "GF_AUTH_BASIC_ENABLED": "false",
                "GF_AUTH_DISABLE_LOGIN_FORM": "true",
                "GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION": "true",
            },
            "volumes": [
                self.mounted(SOURCE, &format!("{PROVISIONING}/datasources")),
                self.mounted(PROVIDER, &format!("{PROVISIONING}/dashboards")),
                self.mounted(DASHBOARD, DASHBOARDS),
            ],
        });
        [(PROMETHEUS.to_owned(), prometheus), (GRAFANA.to_owned(), grafana)]
    }

    /// A file of the folder as a volume.
    fn mounted(&self, file: &str, to: &str) -> String {
        literal(&format!("{}:{to}/{file}:ro", self.folder.join(file).display()))
    }
}

/// A port at loopback, which an environment variable can change.
fn published(variable: &str, port: u16) -> String {
    format!("127.0.0.1:${{{variable}:-{port}}}:{port}")
}

fn scraping(services: &[String], token: &Token) -> Value {
    let targets: Vec<String> = services.iter().map(|service| target(service)).collect();
    json!({
        "global": { "scrape_interval": SCRAPE_INTERVAL },
        "scrape_configs": [{
            "job_name": "pausebed",
            "authorization": { "type": "Bearer", "credentials": token.read_only().text() },
            "static_configs": [{ "targets": targets }],
        }],
    })
}

fn source() -> Value {
    let url = format!("http://{PROMETHEUS}:{PROMETHEUS_PORT}");
    let source = json!({ "name": "pausebed", "type": "prometheus", "access": "proxy", "url": url });
    json!({ "apiVersion": 1, "datasources": [source] })
}

fn provider() -> Value {
    let provider = json!({ "name": "pausebed", "type": "file", "options": { "path": DASHBOARDS } });
    json!({ "apiVersion": 1, "providers": [provider] })
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// Writes a file that only this user can read.
pub(super) fn secret(file: &Path, text: &str) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = fs::File::options().write(true).create_new(true).mode(0o600).open(file)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn the_configuration_names_every_daemon_and_only_this_user_can_read_the_token() {
        let folder = tempfile::tempdir().expect("a folder");
        let monitoring =
            Monitoring { folder: folder.path().join("monitoring"), image: image(), user: (7, 7) };
        let services = ["nicd-0".to_owned(), "s0".to_owned()];
        for token in ["first", "second"] {
            let token = Token::new(token);
            monitoring.write(&services, &token, b"{}").expect("a folder");
        }
        let file = monitoring.folder.join(CONFIG);
        assert_eq!(fs::metadata(&file).expect("it is there").mode() & 0o777, 0o600);
        let text = fs::read_to_string(&file).expect("it is there");
        let config: Value = serde_json::from_str(&text).expect("JSON");
        let job = &config["scrape_configs"][0];
        assert_eq!(job["static_configs"][0]["targets"], json!(["nicd-0:4701", "s0:4701"]));
        let reads = Token::new("second").read_only();
        assert_eq!(job["authorization"]["credentials"], reads.text(), "Prometheus changes nothing");
        let source = fs::read_to_string(monitoring.folder.join(SOURCE)).expect("it is there");
        assert!(source.contains("http://prometheus:9090"), "{source}");
        assert_eq!(fs::read(monitoring.folder.join(DASHBOARD)).expect("it is there"), b"{}");
    }
}

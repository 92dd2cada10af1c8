//! Who watches a lab of containers: a Prometheus that asks every daemon, and Grafana with the board.
//!
//! ```text
//!   daemons ◀── /metrics, with the lab's token ── prometheus ◀── grafana (if its profile is asked for)
//! ```
//!
//! What both read lies in a folder of this host, which the Compose file mounts. JSON is YAML.

use super::file::{Engine, Lab, begin_service, quoted};
use daemon::token::Token;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The service that scrapes.
pub const PROMETHEUS: &str = "prometheus";
/// The service that draws, and the profile that asks for it.
pub const GRAFANA: &str = "grafana";
/// Where a daemon answers in the lab's network.
const ADMIN_PORT: u16 = 4701;
/// Where Prometheus does.
const PROMETHEUS_PORT: u16 = 9090;
/// Runs last seconds to minutes.
const EVERY: &str = "1s";

const CONFIG: &str = "prometheus.yml";
const SOURCE: &str = "datasource.yml";
const PROVIDER: &str = "provider.yml";
const DASHBOARD: &str = "pausebed.json";
/// Where Grafana finds the board.
const DASHBOARDS: &str = "/var/lib/grafana/dashboards";
/// Where Grafana looks for what it is to know.  Source: its documentation, "Provision Grafana".
const PROVISIONING: &str = "/etc/grafana/provisioning";

/// Those who watch a lab.
#[derive(Clone, Debug)]
pub struct Board {
    /// The folder with what they read; its path has no relative part.
    pub folder: PathBuf,
    /// The image of Prometheus.
    pub image: String,
    /// Whose folder it is: user and group.
    pub user: (u32, u32),
}

/// The image of Prometheus that docker/prometheus.sh makes.
pub fn image() -> String {
    format!("pausebed-prometheus:{}", env!("CARGO_PKG_VERSION"))
}

/// What Prometheus asks of the daemon in a service, and how the daemon knows that it is meant.
pub fn target(service: &str) -> String {
    format!("{service}:{ADMIN_PORT}")
}

impl Board {
    /// Writes what both read: whom to ask with which token, where the answers are, and the board itself.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(&self, services: &[String], token: &Token, dashboard: &[u8]) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let public = |name: &str, text: &[u8]| fs::write(self.folder.join(name), text);
        public(SOURCE, pretty(&source()).as_bytes())?;
        public(PROVIDER, pretty(&provider()).as_bytes())?;
        public(DASHBOARD, dashboard)?;
        secret(&self.folder.join(CONFIG), &pretty(&scraping(services, token)))
    }

    /// The services of a Compose file.
    pub(super) fn services(&self, text: &mut String, lab: &Lab<'_>) {
        let words = [
            format!("--config.file=/etc/{CONFIG}"),
            "--storage.tsdb.path=/data".to_owned(),
            // It lies in memory.
            "--storage.tsdb.retention.size=256MB".to_owned(),
        ];
        begin_service(text, lab, Engine::Compose, PROMETHEUS, &self.image, &words);
        let (user, group) = self.user;
        let _ = write!(
            text,
            "    user: \"{user}:{group}\"\n    ports: [{}]\n    volumes:\n      \
             - type: tmpfs\n        target: /data\n      - {}\n",
            published("PAUSEBED_PROMETHEUS_PORT", PROMETHEUS_PORT),
            self.mounted(CONFIG, "/etc"),
        );
        let _ = write!(
            text,
            "  {GRAFANA}:\n    image: \"grafana/grafana\"\n    profiles: [\"{GRAFANA}\"]\n    \
             networks: [\"fabric\"]\n    ports: [{}]\n    environment:\n      \
             GF_AUTH_ANONYMOUS_ENABLED: \"true\"\n    volumes:\n      - {}\n      - {}\n      - {}\n",
            published("PAUSEBED_GRAFANA_PORT", 3000),
            self.mounted(SOURCE, &format!("{PROVISIONING}/datasources")),
            self.mounted(PROVIDER, &format!("{PROVISIONING}/dashboards")),
            self.mounted(DASHBOARD, DASHBOARDS),
        );
    }

    /// A file of the folder in a folder of a container.
    fn mounted(&self, file: &str, to: &str) -> String {
        quoted(&format!("{}:{to}/{file}:ro", self.folder.join(file).display()))
    }
}

/// A port of loopback that the environment may change: two labs cannot share one.
fn published(variable: &str, port: u16) -> String {
    format!("\"127.0.0.1:${{{variable}:-{port}}}:{port}\"")
}

fn scraping(services: &[String], token: &Token) -> Value {
    let targets: Vec<String> = services.iter().map(|service| target(service)).collect();
    json!({
        "global": { "scrape_interval": EVERY },
        "scrape_configs": [{
            "job_name": "pausebed",
            "authorization": { "type": "Bearer", "credentials": token.text() },
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
    let mut text = serde_json::to_string_pretty(value).expect("plain data");
    text.push('\n');
    text
}

/// Writes a file that only this user reads.
fn secret(file: &Path, text: &str) -> io::Result<()> {
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
    fn what_is_written_asks_every_daemon_with_the_token_and_is_this_users_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let board = Board { folder: folder.path().join("board"), image: image(), user: (7, 7) };
        let services = ["nicd-0".to_owned(), "s0".to_owned()];
        for token in ["first", "second"] {
            let token = Token::told(token);
            board.write(&services, &token, b"{}").expect("a folder");
        }
        let file = board.folder.join(CONFIG);
        assert_eq!(fs::metadata(&file).expect("it is there").mode() & 0o777, 0o600);
        let text = fs::read_to_string(&file).expect("it is there");
        let config: Value = serde_json::from_str(&text).expect("JSON");
        let job = &config["scrape_configs"][0];
        assert_eq!(job["static_configs"][0]["targets"], json!(["nicd-0:4701", "s0:4701"]));
        assert_eq!(job["authorization"]["credentials"], "second");
        let source = fs::read_to_string(board.folder.join(SOURCE)).expect("it is there");
        assert!(source.contains("http://prometheus:9090"), "{source}");
        assert_eq!(fs::read(board.folder.join(DASHBOARD)).expect("it is there"), b"{}");
    }
}

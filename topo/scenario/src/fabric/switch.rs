//! `[fabric.switch]`: what all switches have in common.

use crate::fabric::domain;
use crate::keyfile::fields::Fields;
use crate::keyfile::problem::{Complaint, Problems};
use crate::topology::Topology;
use emulation::wiring::End;
use proto::params::{Key, KeyTable, Kind, Params, Variants};
use proto::technology::Technology;
use proto::units::{Bytes, Instant};
use switchd::config::{
    MacTableParams, MemoryConfig, Read, RoutingConfig, ServiceConfig, WatchdogConfig,
};
use switchd::memory::models::{self, MODELS};
use switchd::routing::policies::{POLICIES, Policy};

/// What all switches have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Switch {
    /// Memory model, reading discipline and the model's numbers.
    pub memory: MemoryConfig,
    /// Input buffer of one port; of all together where they share a pool.
    pub buffer: Bytes,
    /// How addresses are learned and frames flooded; Ethernet only.
    pub routing: RoutingConfig,
    /// Watches for priorities that are paused for ever.
    pub watchdog: Option<WatchdogConfig>,
}

/// The keys of `[fabric.switch]`. Memory models and routing policies bring the tables of their parameters.
pub static KEYS: KeyTable = KeyTable {
    about: "every switch",
    keys: &[
        Key::new("memory", Kind::Word(memories), "per-input", "memory model"),
        Key::new(
            "buffer",
            Kind::Size,
            "36 mtu",
            "input buffer of one port; a shared pool has a size instead",
        ),
        Key::new("read", Read::KIND, "multi", "how many outputs may read one input at a time"),
    ],
    variants: &[
        Variants {
            by: "technology",
            rows: || vec![("infiniband", Vec::new()), ("ethernet", ETHERNET.iter().collect())],
        },
        Variants {
            by: "memory",
            rows: || MODELS.iter().map(|row| (row.name, Vec::from_iter(row.section))).collect(),
        },
        Variants {
            by: "routing",
            rows: || POLICIES.iter().map(|row| (row.name, Vec::from_iter(row.section))).collect(),
        },
    ],
    open: false,
};

fn memories() -> Vec<&'static str> {
    MODELS.iter().map(|model| model.name).collect()
}

static ETHERNET: [Key; 6] = [
    Key::new(
        "headroom",
        Kind::Size,
        "0 B",
        "octets that may still come in after a neighbour was paused: a share of each \
                input's buffer; in a pool for each port and lossless priority",
    ),
    Key::new(
        "jitter",
        Kind::Time,
        "2 mtu",
        "time that a neighbour may go on sending beyond its cable's delay, live or not; headroom \
                must cover it",
    ),
    Key::optional(
        "watchdog",
        Kind::Table(&WATCHDOG),
        "gives up priorities that are paused for ever; none if left out",
    ),
    Key::new("table", Kind::Table(&TABLE), "{}", "the MAC table"),
    Key::optional(
        "cn",
        Kind::Table(&domain::KEYS),
        "the domain of congestion notification; if left out all priorities are in it",
    ),
    Key::new(
        "service",
        Kind::Tables(&SERVICE),
        "[]",
        "outputs that serve their data slower than their line: hot spots that a port makes",
    ),
];

static SERVICE: KeyTable = KeyTable::new(
    "an output that serves its data slower than its line",
    &[
        Key::required(
            "at",
            Kind::Either(&[Kind::Text, Kind::List(&Kind::Text)]),
            "which ports of switches, \"s0:1\"",
        ),
        Key::required("rate", Kind::Rate, "the rate of its data frames, DA to FCS"),
        Key::new("start", Kind::Time, "0 mtu", "from when on"),
        Key::optional("stop", Kind::Span, "up to when; to the end of the run if left out"),
    ],
);

static WATCHDOG: KeyTable =
    KeyTable::new("when a priority that is paused for ever is given up", WatchdogConfig::KEYS);

static TABLE: KeyTable = KeyTable::new("addresses that no route plans", MacTableParams::KEYS);

/// Reads `[fabric.switch]`; `policy` is the fabric's routing policy.
pub fn read(
    fields: &Fields<'_>,
    technology: Technology,
    policy: &Policy,
    problems: &mut Problems,
) -> Option<Switch> {
    let kind = fields.text("memory")?.to_owned();
    let model = models::find(&kind)?;
    if !model.technologies.contains(&technology) {
        let fits = MODELS.iter().filter(|model| model.technologies.contains(&technology));
        let hint = fits.map(|model| model.name).collect::<Vec<_>>().join(", ");
        let message = format!("{kind:?} does not work on {technology}: it needs links with pause");
        fields.report(problems, "memory", Complaint::new(message, format!("one of {hint}")));
    }
    let params = section(fields, model.section);
    let size = (model.size)(&params);
    if size.is_some() && fields.is_written("buffer") {
        let message = format!("memory = {kind:?} has one size for all ports");
        fields.report(problems, "buffer", Complaint::new(message, "pool.size"));
    }
    let default = RoutingConfig::default();
    Some(Switch {
        buffer: size.or(fields.get("buffer"))?,
        memory: MemoryConfig {
            kind,
            read: fields.get("read")?,
            headroom: fields.get("headroom").unwrap_or_default(),
            jitter: fields.get("jitter").unwrap_or_default(),
            params,
        },
        routing: RoutingConfig {
            table: fields.table("table").and_then(|table| table.params()).unwrap_or(default.table),
            params: section(fields, policy.section),
            ..default
        },
        watchdog: fields.table("watchdog").and_then(|watchdog| watchdog.params()),
    })
}

/// The parameters that are written in a section.
fn section(fields: &Fields<'_>, key: Option<&'static Key>) -> toml::Table {
    let table = key.and_then(|key| fields.table(key.name));
    table.map(|table| table.written(&[])).unwrap_or_default()
}

/// Reads `fabric.switch.service`.
pub fn read_services(
    fields: &Fields<'_>,
    topology: &Topology,
    problems: &mut Problems,
) -> Vec<(End, ServiceConfig)> {
    let mut services = Vec::new();
    for service in fields.tables("service") {
        let (Some(rate), Some(start)) = (service.rate("rate"), service.instant("start")) else {
            continue;
        };
        let stop = service.instant("stop").unwrap_or(Instant::NEVER);
        if start >= stop {
            let complaint = Complaint::new("it stops before it starts", "start before stop");
            service.report(problems, "stop", complaint);
        }
        for (text, place) in service.texts("at") {
            match domain::switch_ports(topology, text) {
                Ok(ends) => {
                    let config = ServiceConfig { rate, start, stop };
                    services.extend(ends.into_iter().map(|end| (end, config)));
                }
                Err(complaint) => problems.report(place, format!("{}.at", service.path), complaint),
            }
        }
    }
    services
}

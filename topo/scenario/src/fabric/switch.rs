//! `[fabric.switch]`: what all switches have in common.

use crate::fabric::domain;
use crate::keyfile::fields::{Fields, TEXTS, Texts};
use crate::topology::Topology;
use emulation::wiring::End;
use proto::params::{Key, KeyTable, Kind, Params, Variants};
use proto::technology::Technology;
use proto::units::{BitRate, Bytes, Duration, Instant};
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
    /// Detection of priorities that are paused for ever.
    pub watchdog: Option<WatchdogConfig>,
}

/// The keys of `[fabric.switch]`. Memory models and routing policies bring the tables of their parameters.
pub static KEYS: KeyTable = KeyTable {
    about: "every switch",
    keys: Common::KEYS,
    variants: &[
        Variants {
            by: "technology",
            rows: || {
                let ethernet = EthernetMemory::KEYS.iter().chain(&TABLES).collect();
                vec![("infiniband", Vec::new()), ("ethernet", ethernet)]
            },
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

proto::params! {
    /// The keys of both technologies.
    pub struct Common {
        /// Memory model.
        memory: String = Word(|| MODELS.iter().map(|model| model.name).collect()), Default("per-input");
        /// Input buffer of one port; a shared pool has a size instead.
        buffer: Bytes = Size, Default("36 mtu");
        /// How many outputs may read one input at a time.
        read: Read = Read::KIND, Default("multi");
    }
}

proto::params! {
    /// The numbers of a memory on Ethernet.
    pub struct EthernetMemory {
        /// Octets that may still come in after a neighbour was paused: a share of each input's buffer; in a pool for each port and lossless priority.
        headroom: Bytes = Size, Default("0 B") => Not("link.pause", "none");
        /// Time that a neighbour may go on sending beyond its cable's delay, live or not; headroom must cover it.
        jitter: Duration = Time, Default("2 mtu") => Not("link.pause", "none");
    }
}

static TABLES: [Key; 4] = [
    Key::optional(
        "watchdog",
        Kind::Table(&WATCHDOG),
        "Gives up priorities that are paused for ever; none if left out.",
    ),
    Key::new("table", Kind::Table(&TABLE), "{}", "The MAC table."),
    Key::optional(
        "cn",
        Kind::Table(&domain::KEYS),
        "The domain of congestion notification; if left out all priorities are in it.",
    ),
    Key::new(
        "service",
        Kind::Tables(&SERVICE),
        "[]",
        "Outputs that serve their data slower than their line: hot spots that a port makes.",
    ),
];

static SERVICE: KeyTable =
    KeyTable::new("an output that serves its data slower than its line", Slow::KEYS);

proto::params! {
    /// One `[[fabric.switch.service]]` as written.
    pub struct Slow {
        /// Which ports of switches, "s0:1".
        at: Texts = TEXTS, Required;
        /// The rate of its data frames, DA to FCS.
        rate: BitRate = Rate, Required;
        /// From when on.
        start: Instant = Time, Default("0 mtu");
        /// Up to when; to the end of the run if left out.
        stop: Option<Instant> = Span, Optional;
    }
}

static WATCHDOG: KeyTable =
    KeyTable::new("when a priority that is paused for ever is given up", WatchdogConfig::KEYS);

static TABLE: KeyTable = KeyTable::new("addresses that no route plans", MacTableParams::KEYS);

/// Reads `[fabric.switch]`; `policy` is the fabric's routing policy.
pub fn read(fields: &Fields<'_>, technology: Technology, policy: &Policy) -> Option<Switch> {
    let Common { memory: kind, buffer, read } = fields.params()?;
    let model = models::find(&kind)?;
    if !model.technologies.contains(&technology) {
        let fits = MODELS.iter().filter(|model| model.technologies.contains(&technology));
        let hint = fits.map(|model| model.name).collect::<Vec<_>>().join(", ");
        let message = format!("{kind:?} does not work on {technology}: it needs links with pause");
        fields.error("memory", message, format!("one of {hint}"));
    }
    let params = section(fields, model.section);
    let size = (model.size)(&params);
    if size.is_some() && fields.is_written("buffer") {
        let message = format!("memory = {kind:?} has one size for all ports");
        fields.error("buffer", message, "pool.size");
    }
    let ethernet = fields.params::<EthernetMemory>();
    let (headroom, jitter) = ethernet.map(|e| (e.headroom, e.jitter)).unwrap_or_default();
    let default = RoutingConfig::default();
    Some(Switch {
        buffer: size.unwrap_or(buffer),
        memory: MemoryConfig { kind, read, headroom, jitter, params },
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
pub fn read_services(fields: &Fields<'_>, topology: &Topology) -> Vec<(End, ServiceConfig)> {
    let mut services = Vec::new();
    for (service, Slow { at, rate, start, stop }) in fields.each("service") {
        let stop = stop.unwrap_or(Instant::NEVER);
        if start >= stop {
            service.error("stop", "it stops before it starts", "start before stop");
        }
        let ends = service.gather("at", &at, |text| domain::switch_ports(topology, text));
        let config = ServiceConfig { rate, start, stop };
        services.extend(ends.into_iter().flatten().map(|end| (end, config)));
    }
    services
}

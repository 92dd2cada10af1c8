//! `[fabric.switch]`: what all switches have in common.

use crate::fabric::{adaptive, domain};
use crate::frames::TECHNOLOGIES;
use crate::keyfile::fields::Fields;
use crate::keyfile::keys::{Key, KeyTable, Kind, Need, Variants, words};
use crate::keyfile::problem::{Complaint, Problems};
use crate::topology::Topology;
use emulation::wiring::End;
use proto::technology::Technology;
use proto::units::{Bytes, Duration, Instant};
use switchd::config::{
    MemoryConfig, PoolConfig, Read, RoutingConfig, ServiceConfig, StormAction, Threshold,
    WatchdogConfig,
};
use switchd::memory::models;

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

const READS: [(&str, Read); 2] = [("multi", Read::Multi), ("single", Read::Single)];
const ACTIONS: [(&str, StormAction); 3] =
    [("drop", StormAction::Drop), ("forward", StormAction::Forward), ("alert", StormAction::Alert)];
/// The model with numbers of its own.
const POOL_MODEL: &str = "shared-pool";

/// The keys of `[fabric.switch]`.
pub static KEYS: KeyTable = KeyTable {
    about: "every switch",
    keys: &[
        Key {
            name: "memory",
            kind: Kind::Word(|| models::MODELS.iter().map(|model| model.name).collect()),
            need: Need::Default("\"per-input\""),
            about: "memory model; InfiniBand has per-input alone",
        },
        Key {
            name: "buffer",
            kind: Kind::Size,
            need: Need::Default("\"36 mtu\""),
            about: "input buffer of one port; a shared pool has a size instead",
        },
        Key {
            name: "read",
            kind: Kind::Word(|| words(&READS)),
            need: Need::Default("\"multi\""),
            about: "how many outputs may read one input at a time",
        },
    ],
    variants: Some(Variants {
        by: "technology",
        rows: || vec![("infiniband", &[]), ("ethernet", &ETHERNET)],
    }),
    open: false,
};

static ETHERNET: [Key; 8] = [
    Key {
        name: "headroom",
        kind: Kind::Size,
        need: Need::Default("\"0 B\""),
        about: "what may still come in after a neighbour was told to be silent: a share of each \
                input's buffer; in a pool for each port and lossless priority",
    },
    Key {
        name: "jitter",
        kind: Kind::Time,
        need: Need::Default("\"2 mtu\""),
        about: "how much later than its cable a neighbour may fall silent, live or not; headroom \
                must cover it",
    },
    Key {
        name: "pool",
        kind: Kind::Table(&POOL),
        need: Need::Optional,
        about: "the numbers of a shared pool",
    },
    Key {
        name: "watchdog",
        kind: Kind::Table(&WATCHDOG),
        need: Need::Optional,
        about: "watches for priorities that are paused for ever; none if left out",
    },
    Key {
        name: "table",
        kind: Kind::Table(&TABLE),
        need: Need::Default("{}"),
        about: "the MAC table",
    },
    Key {
        name: "cn",
        kind: Kind::Table(&domain::KEYS),
        need: Need::Optional,
        about: "the domain of congestion notification; if left out all priorities are in it",
    },
    Key {
        name: "adaptive",
        kind: Kind::Table(&adaptive::KEYS),
        need: Need::Default("{}"),
        about: "how adaptive routing forgets congestion",
    },
    Key {
        name: "service",
        kind: Kind::Tables(&SERVICE),
        need: Need::Default("[]"),
        about: "outputs that serve their data slower than their line: hot spots that a port makes",
    },
];

static SERVICE: KeyTable = KeyTable {
    about: "an output that serves its data slower than its line",
    keys: &[
        Key {
            name: "at",
            kind: Kind::Either(&[Kind::Text, Kind::List(&Kind::Text)]),
            need: Need::Required,
            about: "which ports of switches, \"s0:1\"",
        },
        Key {
            name: "rate",
            kind: Kind::Rate,
            need: Need::Required,
            about: "the rate of its data frames, DA to FCS",
        },
        Key {
            name: "start",
            kind: Kind::Time,
            need: Need::Default("\"0 mtu\""),
            about: "from when on",
        },
        Key {
            name: "stop",
            kind: Kind::Span,
            need: Need::Optional,
            about: "up to when; to the end of the run if left out",
        },
    ],
    variants: None,
    open: false,
};

static POOL: KeyTable = KeyTable {
    about: "one memory for all ports",
    keys: &[
        Key {
            name: "size",
            kind: Kind::Size,
            need: Need::Default("\"9 MB\""),
            about: "the whole memory: reserves, headroom, and what all share",
        },
        Key {
            name: "reserve",
            kind: Kind::Size,
            need: Need::Default("\"4 KiB\""),
            about: "what each port and priority has for itself",
        },
        Key {
            name: "threshold",
            kind: Kind::Either(&[Kind::Whole(0, 16), Kind::Size]),
            need: Need::Default("1"),
            about: "how much of the shared part one port and priority may take before its \
                    neighbour falls silent: what is free divided by 2 to this power, or a size",
        },
        Key {
            name: "hysteresis",
            kind: Kind::Size,
            need: Need::Default("\"3 KiB\""),
            about: "how far below the threshold it must fall until its neighbour speaks again",
        },
        Key {
            name: "headroom_pool",
            kind: Kind::Size,
            need: Need::Optional,
            about: "headroom of all together; without it each has its own",
        },
        Key {
            name: "lossy_queue",
            kind: Kind::Size,
            need: Need::Optional,
            about: "the most that may stand at an output in one lossy priority",
        },
    ],
    variants: None,
    open: false,
};

static WATCHDOG: KeyTable = KeyTable {
    about: "when a priority that is paused for ever is given up",
    keys: &[
        Key {
            name: "detection",
            kind: Kind::Span,
            need: Need::Default("\"200 ms\""),
            about: "how long a queue stands still, paused, until it is a storm",
        },
        Key {
            name: "restoration",
            kind: Kind::Span,
            need: Need::Default("\"200 ms\""),
            about: "how long no pause is in force until the storm is over",
        },
        Key {
            name: "poll",
            kind: Kind::Span,
            need: Need::Default("\"200 ms\""),
            about: "how often it looks",
        },
        Key {
            name: "action",
            kind: Kind::Word(|| words(&ACTIONS)),
            need: Need::Default("\"drop\""),
            about: "what is done about a storm",
        },
    ],
    variants: None,
    open: false,
};

static TABLE: KeyTable = KeyTable {
    about: "what a switch does with addresses nobody planned",
    keys: &[
        Key {
            name: "learned_max",
            kind: Kind::Whole(0, 1 << 20),
            need: Need::Default("8192"),
            about: "how many it learns",
        },
        Key {
            name: "age",
            kind: Kind::Span,
            need: Need::Default("\"300 s\""),
            about: "after how long without a frame from it one is forgotten",
        },
        Key {
            name: "flood_gap",
            kind: Kind::Time,
            need: Need::Default("\"10 us\""),
            about: "one frame in so much time may be flooded by a port, on average",
        },
        Key {
            name: "flood_burst",
            kind: Kind::Whole(1, 1 << 20),
            need: Need::Default("1024"),
            about: "how many frames a port may flood at once after a pause",
        },
    ],
    variants: None,
    open: false,
};

/// Reads `[fabric.switch]`.
pub fn read(
    fields: &Fields<'_>,
    technology: Technology,
    problems: &mut Problems,
) -> Option<Switch> {
    let kind = fields.text("memory")?.to_owned();
    let model = models::find(&kind)?;
    if technology == Technology::Infiniband && !model.with_credits {
        let (infiniband, _) = TECHNOLOGIES[0];
        let message = format!("{kind:?} needs links that can be paused, {infiniband} has credits");
        fields.report(problems, "memory", Complaint::new(message, "\"per-input\""));
    }
    let pool = fields.table("pool");
    if let Some(pool) = pool.as_ref().filter(|_| kind != POOL_MODEL) {
        let complaint = Complaint::new(
            format!("memory = {kind:?} has no pool"),
            format!("memory = {POOL_MODEL:?}, or leave it out"),
        );
        problems.report(pool.place, &pool.path, complaint);
    }
    let pool = pool.map_or(Some(PoolConfig::default()), |pool| read_pool(&pool))?;
    let memory = MemoryConfig {
        kind,
        read: fields.word("read", &READS)?,
        headroom: fields.size("headroom").unwrap_or(Bytes::ZERO),
        jitter: fields.time("jitter").unwrap_or(Duration::ZERO),
        pool,
    };
    Some(Switch {
        buffer: if memory.kind == POOL_MODEL { pool.size } else { fields.size("buffer")? },
        memory,
        routing: fields
            .table("table")
            .map_or(Some(RoutingConfig::default()), |table| read_table(&table))?,
        watchdog: match fields.table("watchdog") {
            Some(watchdog) => Some(read_watchdog(&watchdog)?),
            None => None,
        },
    })
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

fn read_pool(fields: &Fields<'_>) -> Option<PoolConfig> {
    let threshold = match fields.whole("threshold") {
        Some(shift) => Threshold::Shift(shift),
        None => Threshold::Octets(fields.size("threshold")?),
    };
    Some(PoolConfig {
        size: fields.size("size")?,
        reserve: fields.size("reserve")?,
        threshold,
        hysteresis: fields.size("hysteresis")?,
        headroom_pool: fields.size("headroom_pool"),
        lossy_queue: fields.size("lossy_queue"),
    })
}

fn read_watchdog(fields: &Fields<'_>) -> Option<WatchdogConfig> {
    Some(WatchdogConfig {
        detection: fields.time("detection")?,
        restoration: fields.time("restoration")?,
        poll: fields.time("poll")?,
        action: fields.word("action", &ACTIONS)?,
    })
}

fn read_table(fields: &Fields<'_>) -> Option<RoutingConfig> {
    Some(RoutingConfig {
        learned_max: fields.whole("learned_max")?,
        age: fields.time("age")?,
        flood_gap: fields.time("flood_gap")?,
        flood_burst: fields.whole("flood_burst")?,
        ..RoutingConfig::default()
    })
}

//! `[fabric.link]`: the default link, of either technology.

use crate::keyfile::fields::Fields;
use crate::keyfile::fields::words;
use crate::keyfile::problem::{Complaint, Problems};
use proto::ids::Priority;
use proto::link::{
    ArbitrationConfig, CreditConfig, EtsConfig, FlowControlConfig, PauseConfig, PauseMode,
    Selection,
};
use proto::params::{Key, KeyTable, Kind, Variants};
use proto::technology::Technology;
use proto::units::{BitRate, Bytes, Duration};
use proto::wire::classify::PriorityMap;
use std::num::NonZero;

/// The default link.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Data rate.
    pub rate: BitRate,
    /// Time of flight.
    pub delay: Duration,
    /// What keeps it lossless; the address of a pausing port is not settled yet.
    pub control: FlowControlConfig,
}

impl Link {
    /// Lanes over which a buffer is split: on Ethernet all priorities share it.
    pub fn shares(&self) -> u8 {
        match &self.control {
            FlowControlConfig::Credit(credits) => credits.data_lanes,
            FlowControlConfig::Pause(_) => 1,
        }
    }
}

const MODES: [(&str, PauseMode); 3] =
    [("none", PauseMode::None), ("pause", PauseMode::Global), ("pfc", PauseMode::Pfc)];
const MAPS: [(&str, PriorityMap); 2] =
    [("dscp", PriorityMap::BY_DSCP), ("pcp", PriorityMap::BY_PCP)];
/// The word that stands among weights.
const STRICT: &str = "strict";

/// The keys of `[fabric.link]`.
pub static KEYS: KeyTable = KeyTable {
    about: "the default link",
    keys: &[
        Key::optional(
            "rate",
            Kind::Rate,
            "data rate; if left out 8 Gbps on InfiniBand, 40 Gbps on Ethernet",
        ),
        Key::new("delay", Kind::Time, "0.125 mtu", "time of flight each way"),
    ],
    variants: &[Variants {
        by: "technology",
        rows: || {
            let (infiniband, ethernet) = (INFINIBAND.iter().collect(), ETHERNET.iter().collect());
            vec![("infiniband", infiniband), ("ethernet", ethernet)]
        },
    }],
    open: false,
};

static INFINIBAND: [Key; 3] = [
    Key::new(
        "lanes",
        Kind::Whole(1, 12),
        "4",
        "physical lanes: with the rate they give the symbol time",
    ),
    Key::new(
        "vls",
        Kind::Whole(1, 15),
        "1",
        "operational data lanes, over which buffers are split",
    ),
    Key::optional(
        "arbitration",
        Kind::Table(&ARBITRATION),
        "who goes first among lanes; all equal if left out",
    ),
];

static ETHERNET: [Key; 10] = [
    Key::new(
        "pause",
        Kind::Word(|| words(&MODES)),
        "pfc",
        "how ends silence each other: not at all, by PAUSE, or by PFC for each priority",
    ),
    Key::new("lossless", Kind::List(&Kind::Whole(0, 7)), "[3]", "priorities for which PFC is sent"),
    Key::new(
        "obeyed",
        Kind::List(&Kind::Whole(0, 7)),
        "[0, 1, 2, 3, 4, 5, 6, 7]",
        "priorities for which a received PFC is obeyed",
    ),
    Key::new(
        "response",
        Kind::Time,
        "0 mtu",
        "from a pause's arrival until it is obeyed; switches need headroom for it",
    ),
    Key::new(
        "pause_time",
        Kind::Whole(1, 65_535),
        "65535",
        "how long a pause that is sent holds, in quanta of 512 bit times",
    ),
    Key::new(
        "refresh",
        Kind::Whole(1, 100),
        "25",
        "percent of the pause time after which a pause still wanted is sent again",
    ),
    Key::new(
        "priorities",
        Kind::Word(|| words(&MAPS)),
        "dscp",
        "what gives a frame its priority: upper three bits of the DSCP, or the tag's PCP",
    ),
    Key::new(
        "classes",
        Kind::List(&Kind::Whole(0, 7)),
        "[0, 1, 2, 3, 4, 5, 6, 7]",
        "traffic class of each of the eight priorities",
    ),
    Key::new(
        "scheduling",
        Kind::List(&Kind::Either(&[Kind::Word(|| vec![STRICT]), Kind::Whole(1, 255)])),
        "[1, 1, 1, 1, 1, 1, 1, 1]",
        "for each of the eight traffic classes: \"strict\", the highest first, or its weight",
    ),
    Key::new(
        "overhead",
        Kind::Octets,
        "0 B",
        "what a frame takes of the line beyond DA to FCS; preamble and gap are \"20 B\"",
    ),
];

static ARBITRATION: KeyTable = KeyTable::new(
    "the tables of the VL arbiter",
    &[
        Key::new(
            "high",
            Kind::List(&Kind::List(&Kind::Whole(0, 255))),
            "[]",
            "high-priority table: [lane, weight in 64 octets]",
        ),
        Key::new("low", Kind::List(&Kind::List(&Kind::Whole(0, 255))), "[]", "low-priority table"),
        Key::new(
            "high_limit",
            Kind::Whole(0, 255),
            "0",
            "4096 octets the high table may send before the low one; 0 a packet, 255 any",
        ),
    ],
);

/// Reads `[fabric.link]`.
pub fn read(
    fields: &Fields<'_>,
    technology: Technology,
    rate: BitRate,
    problems: &mut Problems,
) -> Option<Link> {
    Some(Link {
        rate: fields.rate("rate").unwrap_or(rate),
        delay: fields.time("delay")?,
        control: match technology {
            Technology::Infiniband => FlowControlConfig::Credit(credits(fields, problems)?),
            Technology::Ethernet => FlowControlConfig::Pause(pause(fields, problems)?),
        },
    })
}

fn credits(fields: &Fields<'_>, problems: &mut Problems) -> Option<CreditConfig> {
    let data_lanes = fields.whole("vls")?;
    let arbitration = match fields.table("arbitration") {
        Some(tables) => arbitration(&tables, data_lanes, problems),
        None => ArbitrationConfig::default(),
    };
    Some(CreditConfig { lanes: fields.whole("lanes")?, data_lanes, arbitration })
}

fn arbitration(fields: &Fields<'_>, vls: u8, problems: &mut Problems) -> ArbitrationConfig {
    let mut table = |key: &str| {
        let pairs = fields.pairs::<u8>(key);
        let sound = |pair: &Option<(u8, u8)>| pair.is_some_and(|(lane, _)| lane < vls);
        if !pairs.iter().all(sound) {
            let message = format!("entries are [lane, weight], lanes 0 to {}", vls - 1);
            fields.report(problems, key, Complaint::new(message, "for example [[0, 4], [1, 8]]"));
        }
        pairs.into_iter().flatten().collect()
    };
    let (high, low) = (table("high"), table("low"));
    ArbitrationConfig { high, low, high_limit: fields.whole("high_limit").unwrap_or(0) }
}

fn pause(fields: &Fields<'_>, problems: &mut Problems) -> Option<PauseConfig> {
    Some(PauseConfig {
        mode: fields.word("pause", &MODES)?,
        lossless: priorities(fields, "lossless"),
        obeyed: priorities(fields, "obeyed"),
        response: fields.time("response")?,
        pause_time: NonZero::new(fields.whole("pause_time")?)?,
        refresh: NonZero::new(fields.whole("refresh")?)?,
        priorities: fields.word("priorities", &MAPS)?,
        scheduling: scheduling(fields, problems),
        overhead: fields.size("overhead").unwrap_or(Bytes::ZERO),
        ..PauseConfig::default()
    })
}

/// A list of priorities as a set: bit n is priority n.
pub fn priorities(fields: &Fields<'_>, key: &str) -> u8 {
    fields.wholes::<u8>(key).iter().fold(0, |set, priority| set | 1 << priority)
}

fn scheduling(fields: &Fields<'_>, problems: &mut Problems) -> EtsConfig {
    let classes: Vec<Priority> =
        fields.wholes("classes").into_iter().map(Priority::truncate).collect();
    let selection: Vec<Selection> = fields
        .alternatives::<u8>("scheduling")
        .into_iter()
        .map(|weight| weight.and_then(NonZero::new))
        .map(|weight| weight.map_or(Selection::Strict, Selection::Weighted))
        .collect();
    let mut eight = |key, given: usize| {
        let complaint = Complaint::new(format!("{given} entries"), "one for each, 0 to 7");
        fields.report(problems, key, complaint);
    };
    let mut ets = EtsConfig::default();
    match classes.try_into() {
        Ok(classes) => ets.classes = classes,
        Err(other) => eight("classes", other.len()),
    }
    match selection.try_into() {
        Ok(selection) => ets.selection = selection,
        Err(other) => eight("scheduling", other.len()),
    }
    ets
}

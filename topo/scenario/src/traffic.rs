//! `[[traffic]]`: sender, receivers, rate and time of each traffic item.

use crate::fabric::FabricSettings;
use crate::frames::{self, ETHERNET_MIN};
use crate::keyfile::fields::{Fields, words};
use crate::keyfile::problem::{Complaint, Problems, did_you_mean};
use crate::names;
use crate::refuse_duplicates;
use crate::repeat::{REPEATS_MAX, Repeat, repeat};
use crate::topology::Topology;
use classes::Classes;
use nicd::config::{Arrivals, ClassConfig, Operation, Transport};
use proto::ids::ServiceLevel;
use proto::link::FlowControlConfig;
use proto::params::{Key, KeyTable, Kind};
use proto::units::{BitRate, Bytes, Instant};
use proto::wire::classify::PriorityMap;
use replayed::Replay;

pub(super) mod classes;
mod demands;
pub mod replayed;

/// Everything that is sent, and the connection classes it takes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The items, in the order of the file.
    pub items: Vec<Traffic>,
    /// The classes that items refer to by index.
    pub classes: Vec<ClassConfig>,
}

impl Plan {
    /// The items' names, by number.
    pub fn names(&self) -> Vec<String> {
        self.items.iter().map(|item| item.name.clone()).collect()
    }
}

/// One `[[traffic]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// Its name.
    pub name: String,
    /// The sending adapters.
    pub from: Vec<usize>,
    /// The receivers.
    pub to: Receivers,
    /// How much each source offers.
    pub offer: Offer,
    /// When messages are posted.
    pub arrivals: Arrivals,
    /// Octets of one message.
    pub size: Bytes,
    /// Index into [`Plan::classes`].
    pub class: u8,
    /// First instant at which a message may be posted.
    pub start: Instant,
    /// From here on none is.
    pub stop: Instant,
    /// Post at most this many messages a source; 0 is no limit.
    pub messages: u64,
}

/// To whom a source sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Receivers {
    /// To any adapter but itself, each message anew.
    Uniform,
    /// To one partner, another for every source, chosen once by the seed.
    Permutation,
    /// To any of these but itself, each message anew.
    Nodes(Vec<usize>),
    /// To one of these, always the same: they are dealt out to the sources in turn.
    Dealt(Vec<usize>),
    /// As a trace says.
    Script(Replay),
}

/// How much a source offers, in octets of data frames, LRH to VCRC or DA to FCS.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Offer {
    /// A share of its link's rate.
    Load(f64),
    /// A rate.
    Rate(BitRate),
    /// Always one message more than can be sent.
    Backlog,
}

const ARRIVALS: [(&str, Arrivals); 4] = [
    ("poisson", Arrivals::Poisson),
    ("bernoulli", Arrivals::Bernoulli),
    ("paced", Arrivals::Paced),
    ("backlog", Arrivals::Backlog),
];
/// The words for transports.
pub const TRANSPORTS: [(&str, Transport); 4] = [
    ("rc", Transport::Rc),
    ("uc", Transport::Uc),
    ("ud", Transport::Ud),
    ("test", Transport::Test),
];
/// Whether each source is dealt one of the receivers.
const CHOICES: [(&str, bool); 2] = [("any", false), ("dealt", true)];
/// Whether an item has connections of its own.
const CONNECTIONS: [(&str, bool); 2] = [("shared", false), ("own", true)];
const OPERATIONS: [(&str, Operation); 2] = [("send", Operation::Send), ("write", Operation::Write)];

/// A message is at most 2 GiB. Source: IBTA Vol 1, 9.4.
const MESSAGE_MAX: u64 = 1 << 31;

/// The keys of `[[traffic]]`.
pub static KEYS: KeyTable = KeyTable::new(
    "messages of one kind",
    &[
        Key::required("name", Kind::Text, "its name in results"),
        Key::required("from", Kind::Either(&[Kind::Text, Kind::List(&Kind::Text)]), "sending NICs"),
        Key::required(
            "to",
            Kind::Either(&[Kind::Text, Kind::List(&Kind::Text)]),
            "\"uniform\", \"permutation\", or NICs",
        ),
        Key::new(
            "choice",
            Kind::Word(|| words(&CHOICES)),
            "any",
            "each message to any of the receivers, or each source to one, dealt out in turn",
        ),
        Key::optional(
            "load",
            Kind::Real(0.0, 100.0),
            "what each source offers, as a share of its link; or rate",
        ),
        Key::optional("rate", Kind::Rate, "what each source offers; or load"),
        Key::new(
            "arrivals",
            Kind::Word(|| words(&ARRIVALS)),
            "poisson",
            "when messages are posted",
        ),
        Key::optional(
            "size",
            Kind::Octets,
            "octets of one message, one MTU if left out; of a test frame the whole, DA to FCS, \
                    a full frame if left out",
        ),
        Key::new(
            "transport",
            Kind::Word(|| words(&TRANSPORTS)),
            "rc",
            "transport service; test: frames without any, on Ethernet with a tag",
        ),
        Key::new("operation", Kind::Word(|| words(&OPERATIONS)), "send", "SEND or RDMA WRITE"),
        Key::new("sl", Kind::Whole(0, 15), "0", "service level"),
        Key::new(
            "connections",
            Kind::Word(|| words(&CONNECTIONS)),
            "shared",
            "shared with other items of the same service, or queue pairs of its own",
        ),
        Key::new(
            "messages",
            Kind::Whole(0, i64::MAX),
            "0",
            "post at most this many a source; 0 is no limit",
        ),
        Key::new("start", Kind::Time, "0 mtu", "when it starts"),
        Key::optional(
            "stop",
            Kind::Span,
            "when it stops and what is unsent is withdrawn; the run's end if left out",
        ),
        Key::new(
            "times",
            Kind::Whole(1, REPEATS_MAX),
            "1",
            "how often it comes, as items of their own: burst.1, burst.2, …",
        ),
        Key::optional("every", Kind::Span, "for times: from one start to the next"),
    ],
);

/// Reads every `[[traffic]]`.
pub fn read(
    root: &Fields<'_>,
    fabric: Option<&FabricSettings>,
    (seed, end): (u64, Option<Instant>),
    problems: &mut Problems,
) -> Plan {
    let list = root.tables("traffic");
    let named: Vec<Fields<'_>> = list.iter().cloned().chain(root.tables("trace")).collect();
    refuse_duplicates(&named, "traffic items", problems);
    let mut plan = Plan::default();
    let mut classes = Classes::default();
    for fields in &list {
        let repeat = repeat(fields, end, problems);
        let owns = fields.word("connections", &CONNECTIONS) == Some(true);
        if let Some((item, class)) = item(fields, fabric, end, problems) {
            for item in repeated(&item, repeat) {
                let index = if owns { classes.own(class) } else { classes.shared(class) };
                plan.items.extend(index.map(|class| Traffic { class, ..item }));
            }
        }
    }
    plan.items.extend(replayed::read(root, fabric, (seed, end), &mut classes, problems));
    plan.classes = classes.list;
    plan
}

/// The item as often as it comes, each time with a name of its own.
fn repeated(item: &Traffic, repeat: Option<Repeat>) -> Vec<Traffic> {
    let Some(Repeat { times, every }) = repeat else { return vec![item.clone()] };
    let one = |n: u32| Traffic {
        name: format!("{}.{}", item.name, n + 1),
        start: item.start + every * u64::from(n),
        stop: item.stop + every * u64::from(n),
        ..item.clone()
    };
    (0..times).map(one).collect()
}

fn item(
    fields: &Fields<'_>,
    fabric: Option<&FabricSettings>,
    end: Option<Instant>,
    problems: &mut Problems,
) -> Option<(Traffic, ClassConfig)> {
    let arrivals = fields.word("arrivals", &ARRIVALS)?;
    let offer = offer(fields, arrivals, problems);
    let window = window(fields, end, problems);
    let class = ClassConfig {
        transport: fields.word("transport", &TRANSPORTS)?,
        operation: fields.word("operation", &OPERATIONS)?,
        service_level: ServiceLevel::new(fields.whole("sl")?).ok()?,
    };
    let fabric = fabric?;
    check_operation(fields, class, fabric, problems);
    let size = size(fields, class.transport, fabric, problems);
    let from = gather(fields, "from", &fabric.topology, problems);
    let to = receivers(fields, &fabric.topology, problems);
    if let (Some(from), Some(to)) = (&from, &to) {
        check_pairs(fields, from, to, &fabric.topology, problems);
    }
    let (start, stop) = window?;
    let item = Traffic {
        name: fields.text("name")?.to_owned(),
        from: from?,
        to: to?,
        offer: offer?,
        arrivals,
        size: size?,
        class: 0,
        start,
        stop,
        messages: fields.whole("messages")?,
    };
    Some((item, class))
}

fn offer(fields: &Fields<'_>, arrivals: Arrivals, problems: &mut Problems) -> Option<Offer> {
    let named = (fields.has("load"), fields.has("rate"));
    match (arrivals, named) {
        (Arrivals::Backlog, (false, false)) => Some(Offer::Backlog),
        (Arrivals::Backlog, (load, _)) => {
            let key = if load { "load" } else { "rate" };
            let complaint = Complaint::new("a backlog offers all it can", "leave it out");
            fields.report(problems, key, complaint);
            None
        }
        (_, (true, false)) => fields.real("load").map(Offer::Load),
        (_, (false, true)) => fields.rate("rate").map(Offer::Rate),
        (_, (true, true)) => {
            let complaint = Complaint::new("load and rate together", "leave one of them out");
            fields.report(problems, "rate", complaint);
            None
        }
        // A wrong one has been reported and taken away; then this would be its echo.
        (_, (false, false)) => {
            let echo = problems.iter().any(|problem| {
                [format!("{}.load", fields.path), format!("{}.rate", fields.path)]
                    .contains(&problem.path)
            });
            if !echo {
                let complaint =
                    Complaint::new("how much is sent?", "load = 0.5, or rate = \"2 Gbps\"");
                fields.report(problems, "load", complaint);
            }
            None
        }
    }
}

fn window(
    fields: &Fields<'_>,
    end: Option<Instant>,
    problems: &mut Problems,
) -> Option<(Instant, Instant)> {
    let (start, end) = (fields.instant("start")?, end?);
    let stop = fields.instant("stop").unwrap_or(end);
    if stop > end {
        let message = format!("it stops {} after the run", fields.in_frames(stop.since(end)));
        let hint = "see run.duration; leave stop out to send to the end";
        fields.report(problems, "stop", Complaint::new(message, hint));
    } else if start >= stop {
        let complaint = Complaint::new("it stops before it starts", "start must be before stop");
        fields.report(problems, "start", complaint);
    }
    Some((start, stop))
}

fn check_operation(
    fields: &Fields<'_>,
    class: ClassConfig,
    fabric: &FabricSettings,
    problems: &mut Problems,
) {
    if class.transport == Transport::Test {
        if let Err((message, hint)) = test_frames(fabric) {
            fields.report(problems, "transport", Complaint::new(message, hint));
        } else if class.operation == Operation::Write {
            let complaint = Complaint::new("test frames write no memory", "operation = \"send\"");
            fields.report(problems, "operation", complaint);
        }
    }
    if class.transport == Transport::Ud && class.operation == Operation::Write {
        let complaint = Complaint::new("datagrams know no RDMA WRITE", "operation = \"send\"");
        fields.report(problems, "operation", complaint);
    }
}

/// Whether links of this fabric tell test frames' priorities.
fn test_frames(fabric: &FabricSettings) -> Result<(), (&'static str, &'static str)> {
    let FlowControlConfig::Pause(pause) = &fabric.link.control else {
        return Err(("test frames are frames of Ethernet", "technology = \"ethernet\""));
    };
    match pause.priorities {
        PriorityMap::Pcp { .. } => Ok(()),
        PriorityMap::Dscp { .. } => {
            Err(("test frames have no DSCP to tell their priority", "link.priorities = \"pcp\""))
        }
    }
}

fn size(
    fields: &Fields<'_>,
    transport: Transport,
    fabric: &FabricSettings,
    problems: &mut Problems,
) -> Option<Bytes> {
    let (mtu, is_test) = (fabric.mtu, transport == Transport::Test);
    let full = if is_test { fabric.full_frame() } else { mtu };
    let size = fields.size("size").unwrap_or(full);
    let (least, most) = (ETHERNET_MIN, mtu.get() + frames::TEST);
    let fault = match size.get() {
        octets if is_test && !(least..=most).contains(&octets) => Complaint::new(
            format!("a test frame of {octets} B"),
            format!("from {least} B to {most} B: MAC header, mtu and FCS"),
        ),
        0 => Complaint::new("a message of nothing", "at least \"1 B\""),
        octets if octets > MESSAGE_MAX => Complaint::new("larger than 2 GiB", "no message may be"),
        octets if transport == Transport::Ud && octets > mtu.get() => Complaint::new(
            format!("a datagram of {octets} B does not fit one packet of {} B", mtu.get()),
            "ud carries at most one MTU; take rc or uc, or a smaller size",
        ),
        _ => return Some(size),
    };
    fields.report(problems, "size", fault);
    None
}

fn receivers(
    fields: &Fields<'_>,
    topology: &Topology,
    problems: &mut Problems,
) -> Option<Receivers> {
    let dealt = fields.word("choice", &CHOICES)?;
    match fields.text("to") {
        Some(word @ ("uniform" | "permutation")) if dealt => {
            let complaint = Complaint::new(format!("{word:?} is a choice already"), "leave it out");
            fields.report(problems, "choice", complaint);
            None
        }
        Some("uniform") => Some(Receivers::Uniform),
        Some("permutation") => Some(Receivers::Permutation),
        Some(word) if topology.find(word).is_none() && is_near_keyword(word) => {
            let message = format!("{word:?} is neither a keyword nor a node");
            let hint = did_you_mean(word, KEYWORDS.into_iter());
            fields.report(problems, "to", Complaint::new(message, hint));
            None
        }
        _ => {
            let nodes = gather(fields, "to", topology, problems)?;
            Some(if dealt { Receivers::Dealt(nodes) } else { Receivers::Nodes(nodes) })
        }
    }
}

const KEYWORDS: [&str; 2] = ["uniform", "permutation"];

fn is_near_keyword(word: &str) -> bool {
    KEYWORDS.iter().any(|keyword| strsim::jaro_winkler(word, keyword) > 0.85)
}

/// The adapters named by `key`, in node order, each once.
fn gather(
    fields: &Fields<'_>,
    key: &str,
    topology: &Topology,
    problems: &mut Problems,
) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    let mut sound = true;
    for (text, place) in fields.texts(key) {
        match names::adapters(topology, text) {
            Ok(found) => all.extend(found),
            Err(complaint) => {
                problems.report(place, format!("{}.{key}", fields.path), complaint);
                sound = false;
            }
        }
    }
    all.sort_unstable();
    all.dedup();
    (sound && !all.is_empty()).then_some(all)
}

/// Everybody who sends must have somebody else to send to.
fn check_pairs(
    fields: &Fields<'_>,
    from: &[usize],
    to: &Receivers,
    topology: &Topology,
    problems: &mut Problems,
) {
    let lonely = match to {
        Receivers::Uniform => (topology.adapters() < 2).then(|| from[0]),
        Receivers::Script(_) => None,
        Receivers::Permutation => (from.len() < 2).then(|| from[0]),
        Receivers::Nodes(to) => from.iter().copied().find(|source| to == &[*source]),
        Receivers::Dealt(to) => {
            let mut pairs = from.iter().zip(to.iter().cycle());
            pairs.find_map(|(source, to)| (source == to).then_some(*source))
        }
    };
    if let Some(node) = lonely {
        let message = format!("{} would send to itself alone", topology.nodes[node].name);
        fields.report(problems, "to", Complaint::new(message, "name another receiver"));
    }
}

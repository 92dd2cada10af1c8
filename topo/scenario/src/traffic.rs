//! `[[traffic]]`: sender, receivers, rate and time of each traffic item.

use crate::fabric::FabricSettings;
use crate::foreign;
use crate::frames::{self, ETHERNET_MIN};
use crate::keyfile::fields::{Fields, TEXTS, Texts};
use crate::keyfile::problem::did_you_mean;
use crate::names;
use crate::refuse_duplicates;
use crate::repeat::{REPEATS_MAX, Repeat, repeat};
use crate::topology::Topology;
use classes::Classes;
use frame_size::check_frame;
use nicd::config::{Arrivals, ClassConfig, Operation, Transport};
use proto::ids::ServiceLevel;
use proto::link::FlowControlConfig;
use proto::params::{KeyTable, Params};
use proto::units::{BitRate, Bytes, Duration, Instant};
use proto::wire::classify::PriorityMap;
use replayed::Replay;

pub(super) mod classes;
mod demands;
mod frame_size;
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
    /// Post at most this many messages a source; 0 means no limit.
    pub messages: u64,
    /// The port of the connection manager at foreign hosts.
    pub port: u16,
}

/// The destinations of a source.
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
    /// To the members of this multicast group: an index of `FabricSettings::groups`.
    Group(usize),
    /// To any of these foreign hosts, each message anew: indexes of `FabricSettings::foreign`.
    Foreign(Vec<usize>),
    /// The messages of a trace.
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

/// A message is at most 2 GiB. Source: IBTA Vol 1, 9.4.
pub const MESSAGE_MAX: u64 = 1 << 31;

/// The keys of `[[traffic]]`.
pub static KEYS: KeyTable = KeyTable::new("messages of one kind", Written::KEYS);

proto::params! {
    /// One `[[traffic]]` as written.
    pub struct Written {
        /// Its name in results.
        name: String = Text, Required;
        /// Sending NICs.
        from: Texts = TEXTS, Required;
        /// "uniform", "permutation", NICs, a multicast group, or foreign hosts.
        to: Texts = TEXTS, Required;
        /// Each message to any of the receivers, or each source to one, dealt out in turn.
        choice: Choice = Choice::KIND, Default("any");
        /// What each source offers, as a share of its link; or rate.
        load: Option<f64> = Real(0.0, 100.0), Optional;
        /// What each source offers; or load.
        rate: Option<BitRate> = Rate, Optional;
        /// When messages are posted.
        arrivals: Arrivals = Arrivals::KIND, Default("poisson");
        /// Octets of one message, one MTU if left out; of a test frame the whole, DA to FCS, a full frame if left out.
        size: Option<Bytes> = Octets, Optional;
        /// Transport service; test: frames without any, on Ethernet with a tag.
        transport: Transport = Transport::KIND, Default("rc");
        /// SEND or RDMA WRITE.
        operation: Operation = Operation::KIND, Default("send");
        /// Service level.
        sl: u8 = Whole(0, 15), Default("0");
        /// Shared with other items of the same service, or queue pairs of its own.
        connections: Connections = Connections::KIND, Default("shared");
        /// Post at most this many a source; 0 means no limit.
        messages: u64 = Whole(0, i64::MAX), Default("0");
        /// The port of the connection manager at a foreign host.
        port: Option<u16> = Whole(1, 65_535), Else("7471, for foreign hosts");
        /// When it starts.
        start: Instant = Time, Default("0 mtu");
        /// When it stops and what is unsent is withdrawn; the run's end if left out.
        stop: Option<Instant> = Span, Optional;
        /// How often it comes, as items of their own: burst.1, burst.2, ….
        times: u32 = Whole(1, REPEATS_MAX), Default("1");
        /// For times: from one start to the next.
        every: Option<Duration> = Span, Optional;
    }
}

proto::words! {
    /// Which receivers a source has.
    pub enum Choice {
        /// Any of them for each message.
        Any = "any",
        /// One of them, dealt out in turn.
        Dealt = "dealt",
    }
}

proto::words! {
    /// The owner of the queue pairs that an item uses.
    pub enum Connections {
        /// Those of all items of the same service.
        Shared = "shared",
        /// Its own.
        Own = "own",
    }
}

/// What traffic depends on beside its own keys.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// What the scenario runs on.
    pub fabric: &'a FabricSettings,
    /// The seed of the run.
    pub seed: u64,
    /// The end of the run.
    pub end: Instant,
}

/// Reads every `[[traffic]]` and every `[[trace]]`.
pub fn read(root: &Fields<'_>, context: Context<'_>) -> Plan {
    let named = [root.tables("traffic"), root.tables("trace")].concat();
    refuse_duplicates(&named, "traffic items");
    let mut plan = Plan::default();
    let mut classes = Classes::default();
    for (fields, written) in root.each::<Written>("traffic") {
        let own = written.connections == Connections::Own || written.names_foreign(context.fabric);
        let (times, window) = ((written.times, written.every), (written.start, written.stop));
        let window = (window.0, window.1.unwrap_or(context.end));
        let repeat = repeat(&fields, times, window, context.end);
        if let Some((item, class)) = item(&fields, written, context) {
            for item in repeated(&item, repeat) {
                let index = if own { classes.own(class) } else { classes.shared(class) };
                plan.items.extend(index.map(|class| Traffic { class, ..item }));
            }
        }
    }
    plan.items.extend(replayed::read(root, context, &mut classes));
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
    written: Written,
    Context { fabric, end, .. }: Context<'_>,
) -> Option<(Traffic, ClassConfig)> {
    let topology = &fabric.topology;
    let offer = offer(fields, &written);
    let (start, stop) = (written.start, written.stop.unwrap_or(end));
    if stop > end {
        let message = format!("it stops {} after the run", fields.in_frames(stop.since(end)));
        fields.error("stop", message, "see run.duration; leave stop out to send to the end");
    } else if start >= stop {
        fields.error("start", "it stops before it starts", "start must be before stop");
    }
    let class = ClassConfig {
        transport: written.transport,
        operation: written.operation,
        service_level: ServiceLevel::new(written.sl).ok()?,
    };
    check_operation(fields, class, fabric);
    let size = size(fields, &written, fabric);
    let from = gather(fields, "from", &written.from, topology);
    let to = receivers(fields, &written, fabric);
    if let (Some(from), Some(to)) = (&from, &to) {
        check_pairs(fields, from, to, topology);
    }
    let item = Traffic {
        name: written.name,
        from: from?,
        to: to?,
        offer: offer?,
        arrivals: written.arrivals,
        size: size?,
        class: 0,
        start,
        stop,
        messages: written.messages,
        port: written.port.unwrap_or(foreign::PORT),
    };
    Some((item, class))
}

fn offer(fields: &Fields<'_>, written: &Written) -> Option<Offer> {
    match (written.arrivals, written.load, written.rate) {
        (Arrivals::Backlog, None, None) => Some(Offer::Backlog),
        (Arrivals::Backlog, load, _) => {
            let key = if load.is_some() { "load" } else { "rate" };
            fields.refuse(key, "a backlog offers all it can", "leave it out")
        }
        (_, Some(load), None) => Some(Offer::Load(load)),
        (_, None, Some(rate)) => Some(Offer::Rate(rate)),
        (_, Some(_), Some(_)) => {
            fields.refuse("rate", "load and rate together", "leave one of them out")
        }
        // A wrong value has been reported and removed; this error would repeat that one.
        (_, None, None) if fields.has_error("load") || fields.has_error("rate") => None,
        (_, None, None) => {
            let hint = "load = 0.5, or rate = \"2 Gbps\"";
            fields.refuse("load", "neither load nor rate is given", hint)
        }
    }
}

fn check_operation(fields: &Fields<'_>, class: ClassConfig, fabric: &FabricSettings) {
    let writes = class.operation == Operation::Write;
    let (send, ethernet) = ("operation = \"send\"", "technology = \"ethernet\"");
    match (class.transport, &fabric.link.control) {
        (Transport::Test, FlowControlConfig::Credit(_)) => {
            fields.error("transport", "test frames are frames of Ethernet", ethernet);
        }
        (Transport::Test, FlowControlConfig::Pause(pause))
            if matches!(pause.priorities, PriorityMap::Dscp { .. }) =>
        {
            let message = "test frames have no DSCP for their priority";
            fields.error("transport", message, "link.priorities = \"pcp\"");
        }
        (Transport::Test, _) if writes => {
            fields.error("operation", "test frames write no memory", send);
        }
        (Transport::Ud, _) if writes => {
            fields.error("operation", "datagrams have no RDMA WRITE", send);
        }
        _ => {}
    }
}

fn size(fields: &Fields<'_>, written: &Written, fabric: &FabricSettings) -> Option<Bytes> {
    let (mtu, is_test) = (fabric.mtu, written.transport == Transport::Test);
    let full = if is_test { fabric.full_frame() } else { mtu };
    let size = written.size.unwrap_or(full);
    let (least, most) = (ETHERNET_MIN, mtu.get() + frames::TEST);
    match size.get() {
        octets if is_test && !(least..=most).contains(&octets) => {
            let hint = format!("from {least} B to {most} B: MAC header, mtu and FCS");
            fields.refuse("size", format!("a test frame of {octets} B"), hint)
        }
        0 => fields.refuse("size", "a message of nothing", "at least \"1 B\""),
        octets if octets > MESSAGE_MAX => {
            fields.refuse("size", "larger than 2 GiB", "no message may be")
        }
        octets if written.transport == Transport::Ud && octets > mtu.get() => {
            let message =
                format!("a datagram of {octets} B does not fit one packet of {} B", mtu.get());
            let hint = "ud carries at most one MTU; take rc or uc, or a smaller size";
            fields.refuse("size", message, hint)
        }
        octets => {
            let Written { transport, operation, .. } = *written;
            let octets = Bytes::new(octets);
            check_frame(fields, "size", octets, (transport, operation), fabric).map(|()| size)
        }
    }
}

impl Written {
    /// Whether a receiver is a foreign host.
    fn names_foreign(&self, fabric: &FabricSettings) -> bool {
        fabric.foreign.iter().any(|host| self.to.0.contains(&host.name))
    }
}

/// The foreign hosts that `to` names.
fn foreign_hosts(
    fields: &Fields<'_>,
    written: &Written,
    fabric: &FabricSettings,
) -> Option<Receivers> {
    let find = |text: &String| fabric.foreign.iter().position(|host| host.name == *text);
    let found: Option<Vec<usize>> = written.to.0.iter().map(find).collect();
    let Some(found) = found else {
        let hint = "an item for each";
        return fields.refuse("to", "NICs and foreign hosts in one item", hint);
    };
    if written.choice == Choice::Dealt {
        return fields.refuse("choice", "foreign hosts are not dealt out", "leave it out");
    }
    if written.transport != Transport::Rc {
        let message = "connections to foreign hosts are reliable";
        return fields.refuse("transport", message, "transport = \"rc\"");
    }
    Some(Receivers::Foreign(found))
}

fn receivers(fields: &Fields<'_>, written: &Written, fabric: &FabricSettings) -> Option<Receivers> {
    let topology = &fabric.topology;
    if written.names_foreign(fabric) {
        return foreign_hosts(fields, written, fabric);
    }
    if fields.is_written("port") {
        return fields.refuse("port", "only foreign hosts have a port", "leave it out");
    }
    let dealt = written.choice == Choice::Dealt;
    match fields.text("to") {
        Some(word) if dealt && KEYWORDS.contains(&word) => {
            fields.refuse("choice", format!("{word:?} is a choice already"), "leave it out")
        }
        Some("uniform") => Some(Receivers::Uniform),
        Some("permutation") => Some(Receivers::Permutation),
        Some(word) if let Some(group) = group(word, fabric) => {
            if written.transport != Transport::Ud || dealt {
                let message = "a multicast group takes datagrams, each for all members";
                return fields.refuse("transport", message, "transport = \"ud\", and no choice");
            }
            Some(Receivers::Group(group))
        }
        Some(word) if topology.find(word).is_none() && is_near_keyword(word) => {
            let message = format!("{word:?} is neither a keyword nor a node");
            fields.refuse("to", message, did_you_mean(word, KEYWORDS.into_iter()))
        }
        _ => {
            let nodes = gather(fields, "to", &written.to, topology)?;
            Some(if dealt { Receivers::Dealt(nodes) } else { Receivers::Nodes(nodes) })
        }
    }
}

/// The index of the multicast group of this name.
fn group(name: &str, fabric: &FabricSettings) -> Option<usize> {
    fabric.groups.iter().position(|group| group.name == name)
}

const KEYWORDS: [&str; 2] = ["uniform", "permutation"];

fn is_near_keyword(word: &str) -> bool {
    KEYWORDS.iter().any(|keyword| strsim::jaro_winkler(word, keyword) > 0.85)
}

/// The adapters named by `key`, in node order, each once.
fn gather(
    fields: &Fields<'_>,
    key: &str,
    texts: &Texts,
    topology: &Topology,
) -> Option<Vec<usize>> {
    let mut all = fields.gather(key, texts, |text| names::adapters(topology, text))?;
    all.sort_unstable();
    all.dedup();
    (!all.is_empty()).then_some(all)
}

/// Each sender needs a receiver other than itself.
fn check_pairs(fields: &Fields<'_>, from: &[usize], to: &Receivers, topology: &Topology) {
    let alone = match to {
        Receivers::Uniform => (topology.adapters() < 2).then(|| from[0]),
        Receivers::Script(_) | Receivers::Foreign(_) | Receivers::Group(_) => None,
        Receivers::Permutation => (from.len() < 2).then(|| from[0]),
        Receivers::Nodes(to) => from.iter().copied().find(|source| to == &[*source]),
        Receivers::Dealt(to) => {
            let mut pairs = from.iter().zip(to.iter().cycle());
            pairs.find_map(|(source, to)| (source == to).then_some(*source))
        }
    };
    if let Some(node) = alone {
        let message = format!("{} would send to itself alone", topology.nodes[node].name);
        fields.error("to", message, "name another receiver");
    }
}

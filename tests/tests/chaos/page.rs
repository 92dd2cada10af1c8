//! docs/reliability.md, made from the ledgers of the campaigns.

use super::{faults, frames, increments, proofs};
use pausebed_fuzz::{Kind, TARGETS};
use pausebed_tests::ledger::{self, Line};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

const HEAD: &str = "# Reliability: what was attacked, and what held

This page is made from the ledgers in [tests/ledgers](../tests/ledgers): `PAUSEBED_REWRITE_SNAPSHOTS=1 cargo test --profile quick -p pausebed-tests --test chaos page`.
A ledger has a line for each part of a campaign, with the commit (`+`: and changes since), a hash of the code under proof, and the result. The schedule of a part
comes from its seed. After each part the test compares processes, network namespaces, interfaces, sockets and files with those before it.

* `./test.sh --slow chaos` runs what is due: parts that are not done, that found a fault, or whose code under proof has changed since.
* `PAUSEBED_CHAOS=\"kills/seed 7\" ./test.sh --slow chaos` repeats one part, and writes no ledger.
* A fault is *open* if its part has not been run without a fault since. Of a part only the last line counts as reached.

Times are wall time on the shared virtual machine of [performance](../docs/performance.md), beside builds and other tests.

";

/// The last line of each part of a campaign, and what its ledger says of all.
struct Reached {
    last: BTreeMap<String, Line>,
    commits: Vec<String>,
    found: usize,
}

impl Reached {
    fn of(text: &str) -> Reached {
        let (mut last, mut commits, mut seen) = (BTreeMap::new(), Vec::new(), BTreeSet::new());
        let lines = Line::all(text);
        let found = lines.iter().filter(|line| line.has_found()).count();
        for line in lines {
            if seen.insert(line.commit.clone()) {
                commits.push(format!("`{}`", line.commit));
            }
            last.insert(line.part.clone(), line);
        }
        Reached { last, commits, found }
    }

    /// Results of parts that found nothing.
    fn good(&self) -> impl Iterator<Item = (&str, &str)> {
        let good = self.last.values().filter(|line| !line.has_found());
        good.map(|line| (line.part.as_str(), line.result.as_str()))
    }

    fn row(&self, attack: &str, target: &str, reached: &str, test: &str) -> String {
        self.row_by(attack, target, reached, &format!("./test.sh --slow {test}"))
    }

    fn row_by(&self, attack: &str, target: &str, reached: &str, repeat: &str) -> String {
        let open = self.last.values().filter(|line| line.has_found()).count();
        let (found, commits) = (self.found, self.commits.join(" "));
        format!(
            "| {attack} | {target} | {reached} | {found}, open {open} | {commits} | `{repeat}` |\n"
        )
    }
}

/// The lines of a ledger whose parts begin with this word.
fn of_kind(text: &str, kind: &str) -> String {
    let of_kind = text
        .lines()
        .filter(|line| line.starts_with(kind) && line[kind.len()..].starts_with([' ', '\t']));
    of_kind.map(|line| format!("{line}\n")).collect()
}

/// The number with which a result begins.
fn count(result: &str) -> u64 {
    result.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// The value below which `thousandths` of the sorted values lie.
fn quantile(sorted: &[u64], thousandths: usize) -> u64 {
    let place = (sorted.len() * thousandths).div_ceil(1000).max(1) - 1;
    sorted.get(place).copied().unwrap_or(0)
}

fn kills(text: &str) -> String {
    let reached = Reached::of(text);
    let total: u64 = reached.good().map(|(_, result)| count(result)).sum();
    let mut ms: Vec<u64> = reached
        .good()
        .filter_map(|(_, result)| result.split_once("; ms "))
        .flat_map(|(_, times)| times.split_whitespace().filter_map(|time| time.parse().ok()))
        .collect();
    ms.sort_unstable();
    let [p50, p99] = [500, 990].map(|thousandths| quantile(&ms, thousandths));
    let target = "1 000; recovery p99 below 2 s";
    let now = format!(
        "{total} in {} labs; {} daemons replaced, p50 {p50} ms, p99 {p99} ms",
        reached.good().count(),
        ms.len()
    );
    let attack = "kill -9 of a random process at a random moment: keeper, daemons, captures, `serve`, launcher and daemons of a run";
    reached.row(attack, target, &now, "chaos_kills_leave")
}

fn machines(text: &str) -> String {
    let reached = Reached::of(text);
    let results = || reached.good().map(|(_, result)| result);
    let now = format!(
        "{} in {} labs, {} while `up` ran",
        results().map(count).sum::<u64>(),
        results().count(),
        results().filter(|result| result.contains(" of up")).count()
    );
    let attack = "kill -9 of QEMU, a host in a virtual machine, while its lab starts or its hosts talk: the lab shows how the host ended and goes on, its balance closes, and `up` names the host that did not start";
    reached.row(attack, "a sample of 20 labs", &now, "chaos_kills_of_machines")
}

fn steps(text: &str) -> String {
    let reached = Reached::of(text);
    let mut by_role: BTreeMap<&str, usize> = BTreeMap::new();
    let mut complete = BTreeSet::new();
    for (part, result) in reached.good() {
        let (role, _) = part.rsplit_once(' ').unwrap_or((part, ""));
        *by_role.entry(role).or_default() += usize::from(result.starts_with("killed"));
        if result.starts_with("no such step") {
            complete.insert(role);
        }
    }
    let total: usize = by_role.values().sum();
    let all = |role: &str| if complete.contains(role) { "all" } else { "the first" };
    let each: Vec<String> =
        by_role.iter().map(|(role, count)| format!("{role}: {} {count}", all(role))).collect();
    let attack = "`up` and `down` of a lab, where `up`, the keeper or `down` is killed at the entry of each system call that changes something";
    let now = format!("{total} ({})", each.join("; "));
    reached.row(attack, "every step", &now, "chaos_crashes")
}

fn plain(text: &str, attack: &str, target: &str, repeat: &str) -> String {
    let reached = Reached::of(text);
    let now = reached.good().count().to_string();
    reached.row(attack, target, &now, repeat)
}

fn host_faults(text: &str) -> String {
    const ATTACKS: [(&str, &str); 7] = [
        ("stop", "SIGSTOP of a process of a lab for 0.1 to 5 s"),
        ("disk", "little or no room for a lab, a run with captures, a capture"),
        ("descriptors", "3 to 64 descriptors for `up`, `run`, or a process of a lab under way"),
        ("memory", "address space for the same that suffices to start, or up to 64 MiB more"),
        ("interface", "an interface of a lab removed, or off and on"),
        ("mtu", "the MTU of an interface of a lab changed, half of them back"),
        (
            "clock",
            "the calendar clock of all programs of a lab, or of one daemon, stepped again and again by 1 ms to 9 h forwards and back, on bare cables, cables with stamps and UDP",
        ),
    ];
    let attack = |kind: &str| ATTACKS.iter().find(|(name, _)| *name == kind).expect("a row").1;
    let row = |kind: &str| {
        let reached = Reached::of(&of_kind(text, kind));
        let good: Vec<&str> = reached.good().map(|(_, result)| result).collect();
        let done = good.iter().filter(|result| **result != "skipped").count();
        let balanced = good.iter().filter(|result| result.contains("balanced at down")).count();
        let ended = good.iter().filter(|result| result.contains("ended: ")).count();
        // The balance closed while the lab was up; there was no room to write the last one.
        let unwritten = good.iter().filter(|result| result.contains("no account at down")).count();
        let others = done - balanced - ended - unwritten;
        let lossless = good.iter().filter(|result| result.contains("none dropped")).count();
        let lossless = match lossless {
            0 => String::new(),
            count => format!("; {count} labs dropped no frame"),
        };
        let now = format!(
            "{done}: {balanced} labs balanced to the end, {unwritten} but for the last account, {ended} ended with a reason; {others} commands alone, each with its code{lossless}"
        );
        reached.row(attack(kind), "100", &now, "chaos_faults")
    };
    faults::KINDS.iter().map(|(kind, _)| row(kind)).collect()
}

fn hostile_frames(text: &str) -> String {
    let row = |(kind, name): &(&str, &str)| {
        let reached = Reached::of(&of_kind(text, kind));
        let attacks = || reached.good().filter(|(part, _)| !part.ends_with(" cost"));
        let sum = |words: &str| -> u64 {
            attacks().filter_map(|(_, result)| before(result, words)).sum()
        };
        let total: u64 = attacks().map(|(_, result)| count(result)).sum();
        let cost = reached.good().find(|(part, _)| part.ends_with(" cost"));
        let highest = cost.map_or(0, |(_, result)| count(result));
        let now = format!(
            "{total}, each in a counter ({} rejected at the socket, {} outdated, {} at the port); none of {} messages of the neighbours lost; cost at most {}.{:02}",
            sum(" rejected at"),
            sum(" outdated"),
            sum(" at the port;"),
            sum(" messages,"),
            highest / 100,
            highest % 100,
        );
        let attack = format!(
            "hostile frames beside a lossless flow, half of them valid but for one field: port {name}"
        );
        let target =
            "10^6; the neighbours lose none; median cost at most 3 times that of a good frame";
        reached.row(&attack, target, &now, "chaos_hostile")
    };
    frames::PORTS.iter().map(row).collect()
}

fn http(text: &str) -> String {
    let reached = Reached::of(text);
    let decided: Vec<&str> = reached
        .good()
        .map(|(_, result)| result)
        .filter(|result| !result.starts_with(super::http::INCONCLUSIVE))
        .collect();
    let sum =
        |after: &str| -> u64 { decided.iter().filter_map(|result| before(result, after)).sum() };
    let late = |after: &str| -> Vec<u64> {
        let mut late: Vec<u64> =
            decided.iter().filter_map(|result| before(result, after)).collect();
        late.sort_unstable();
        late
    };
    let (with, without) = (late(" with,"), late(" without"));
    let now = format!(
        "{}, {} malformed, {} slow, in {} labs; p99 of lateness in thousandths of a frame time, median and highest: {} and {} with, {} and {} without; {} inconclusive",
        sum(" requests answered"),
        sum(" malformed"),
        sum(" slow"),
        decided.len(),
        quantile(&with, 500),
        quantile(&with, 1000),
        quantile(&without, 500),
        quantile(&without, 1000),
        reached.good().count() - decided.len()
    );
    let attack = "requests, slow connections and nonsense to the HTTP servers of the daemons of a lab and of `serve`";
    let target = "10^5 requests, 10^4 malformed, 1 000 slow connections; p99 of lateness below 0.10, and at most 0.02 above that of the same lab without requests";
    reached.row(attack, target, &now, "chaos_http")
}

/// The number in front of these words of a result.
fn before(result: &str, words: &str) -> Option<u64> {
    let (front, _) = result.split_once(words)?;
    front.rsplit(' ').next()?.parse().ok()
}

fn all_proofs(text: &str) -> String {
    let row = |(name, shown, _): &(&str, &str, fn() -> u64)| {
        let reached = Reached::of(&of_kind(text, name));
        let now = reached.good().next().map_or("none", |(_, result)| result).to_owned();
        reached.row(&format!("proof: {shown}"), "all cases", &now, "chaos_proofs")
    };
    proofs::PROOFS.iter().chain(&proofs::SLOW).map(row).collect()
}

fn soak(text: &str) -> String {
    let reached = Reached::of(text);
    let now = reached.good().next().map_or("none", |(_, result)| result).to_owned();
    let attack = "two labs, one by UDP and one in namespaces, with faults of links on and off: losses, duplicates, delays, damage, other rates, links that are down";
    let target = "2 hours, accounts that close, descriptors constant, memory of each process below +1 MiB an hour after ten minutes";
    reached.row(attack, target, &now, "chaos_soak")
}

/// Executions add up over all runs.
fn fuzzing(text: &str) -> String {
    let row = |kind: Kind, attack: &str, target: &str| {
        let names = TARGETS.iter().filter(|target| target.kind == kind).map(|target| target.name);
        let of_each: Vec<(&str, String)> = names.map(|name| (name, of_kind(text, name))).collect();
        let sum = |text: &str, how: &str| -> u64 {
            let lines = Line::all(text).into_iter().filter(|line| line.result.contains(how));
            lines.filter_map(|line| before(&line.result, " executions")).sum()
        };
        let all: String = of_each.iter().map(|(_, text)| text.as_str()).collect();
        let each: Vec<String> =
            of_each.iter().map(|(name, text)| format!("{name} {}", sum(text, ""))).collect();
        let now = format!(
            "{}, of which {} guided by coverage and with the address sanitizer ({})",
            sum(&all, ""),
            sum(&all, "guided, address sanitizer"),
            each.join(", ")
        );
        Reached::of(&all).row_by(attack, target, &now, "./fuzz.sh")
    };
    [
        row(Kind::Decoder, "fuzzing: inputs of decoders", "10^9 executions"),
        row(Kind::Engine, "fuzzing: sequences of operations on devices, with every scheme", "10^7"),
    ]
    .concat()
}

/// The part of the ledger of counters that says how many mutants there are.
pub const MUTANTS: &str = "mutants";

/// Mutants that were killed, all that were judged, and those that unit tests of the crate, cases and other tests killed.
pub fn killed(text: &str) -> [u64; 5] {
    let reached = Reached::of(text);
    let results = || reached.last.values().map(|line| line.result.as_str());
    [" of ", " killed,", " by unit tests,", " by cases,", " by others"]
        .map(|words| results().filter_map(|result| before(result, words)).sum())
}

fn counters(text: &str) -> String {
    let [killed, total, units, cases, others] = killed(text);
    let tenths = killed * 1000 / total.max(1);
    let reached = Reached::of(text);
    let all = reached.last.get(MUTANTS).map_or(0, |line| count(&line.result));
    let now = format!(
        "{killed} of {total} judged ({}.{} %), of {all} there are: {units} by unit tests of the crate, {cases} by conformance cases, {others} by other tests; {} statements that grow are exempt as no counters",
        tenths / 10,
        tenths % 10,
        increments::all().1
    );
    let attack = "mutation: each increment of a counter deleted, each drop reason exchanged for the next one (tests/tests/mutants/increments.rs)";
    reached.row(attack, "98 % found", &now, "chaos_counters")
}

/// The classes of faults that cost most and least, by kind of port.
fn costs(text: &str) -> String {
    let mut table = "
## The cost of hostile frames

Median time of the processor from the system call that receives the frame to the last action of the switch, over that of a good frame which is received and forwarded
beside it. Random octets on Ethernet cost most, because the switch floods frames to unknown addresses.

| port | classes of faults | cost most | cost least |
|---|---|---|---|
".to_owned();
    for (kind, name) in frames::PORTS {
        let reached = Reached::of(&of_kind(text, kind));
        let Some((_, result)) = reached.good().find(|(part, _)| part.ends_with(" cost")) else {
            continue;
        };
        let shown = |one: &&str| {
            let (percent, class) = one.split_once(' ').unwrap_or((one, ""));
            let percent: u64 = percent.parse().unwrap_or(0);
            format!("{class} {}.{:02}", percent / 100, percent % 100)
        };
        let all: Vec<&str> = result.split(", ").collect();
        let most: Vec<String> = all.iter().take(4).map(shown).collect();
        let least: Vec<String> = all.iter().rev().take(3).map(shown).collect();
        writeln!(table, "| {name} | {} | {} | {} |", all.len(), most.join(", "), least.join(", "))
            .expect("a string takes all");
    }
    table
}

/// The page, from the text of each ledger.
fn page(ledger: impl Fn(&str) -> String) -> String {
    let mut page = HEAD.to_owned();
    let races = "two or three of `up` and `down` of one name that begin within 300 ms";
    let containers = "kill -9 of the launcher of a run in containers within its first 6 s; containers, networks and volumes are compared too";
    let rows = [
        kills(&ledger("kills")),
        machines(&ledger("machines")),
        steps(&ledger("steps")),
        plain(&ledger("races"), races, "200", "chaos_commands"),
        plain(&ledger("containers"), containers, "a sample of 20", "chaos_kills_in_containers"),
        host_faults(&ledger("faults")),
        hostile_frames(&ledger("frames")),
        http(&ledger("http")),
        soak(&ledger("soak")),
        all_proofs(&ledger("proofs")),
        counters(&ledger("counters")),
        fuzzing(&ledger("fuzz")),
    ];
    page += "| attack | to reach | reached | faults found | commits | repeat |\n|---|---|---|---|---|---|\n";
    let costs = costs(&ledger("frames"));
    write!(page, "{}{costs}", rows.concat()).expect("a string takes all");
    page
}

#[test]
fn the_page_is_made_from_the_ledgers() {
    let made = page(|campaign| {
        let file = |front: &str| ledger::kept().join(format!("pausebed-{front}{campaign}.ledger"));
        let text = fs::read_to_string(file("chaos-")).or_else(|_| fs::read_to_string(file("")));
        text.unwrap_or_default()
    });
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reliability.md");
    if std::env::var_os("PAUSEBED_REWRITE_SNAPSHOTS").is_some() {
        fs::write(&file, &made).expect("docs can be written");
    }
    assert_eq!(fs::read_to_string(&file).unwrap_or_default(), made, "see the head of the page");
}

#[test]
fn only_the_last_line_of_a_part_counts_and_open_faults_are_counted() {
    let kills = kills(
        "seed 1\ta\t1\t9 kills on udp: daemon 9; ms 100 300\nseed 2\ta\t1\tFOUND x\n\
         seed 2\tb\t2\t10 kills on udp: daemon 10; ms 200\nseed 3\tb\t2\tFOUND y\n",
    );
    assert!(kills.contains("19 in 2 labs; 3 daemons replaced, p50 200 ms, p99 300 ms"), "{kills}");
    assert!(kills.contains("| 2, open 1 | `a` `b` |"), "{kills}");
    let steps = steps("udp up 1\ta\t1\tkilled before x\nudp up 2\ta\t1\tno such step: 1 steps\n");
    assert!(steps.contains("| 1 (udp up: all 1) |"), "{steps}");
}

#[test]
fn executions_add_up_over_runs() {
    let made = fuzzing(
        "packet\ta\t1\t5 executions, 1 s, random\npacket\tb\t2\t7 executions, 1 s, guided, address sanitizer\n\
         nic\tb\t2\tFOUND a panic: 3 executions, 1 s, random\n",
    );
    let decoders = "| 12, of which 7 guided by coverage and with the address sanitizer (packet 12, link_packet 0,";
    assert!(made.contains(decoders), "{made}");
    assert!(
        made.contains("| 3, of which 0 guided") && made.contains("| 1, open 1 | `b` |"),
        "{made}"
    );
}

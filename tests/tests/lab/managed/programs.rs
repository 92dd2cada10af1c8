//! Programs of infiniband-diags, and what their output must be on a fabric under OpenSM.
//!
//! All run beside h1, with OpenSM beside h0. Nodes have the LIDs of the plan.

use super::Managed;
use super::oracle::{self, Node, field, hex_after, number_after};
use std::collections::BTreeSet;

/// A program and its oracle.
pub struct Program {
    /// The command line; words with `@` stand for the LID of that node.
    pub words: &'static str,
    /// The exit code.
    pub code: i32,
    /// Part of the quick suite.
    pub is_quick: bool,
    /// Compares its output with the plan.
    pub check: fn(&Managed, &str),
}

const fn program(words: &'static str, check: fn(&Managed, &str)) -> Program {
    Program { words, code: 0, is_quick: false, check }
}

const fn quick(words: &'static str, check: fn(&Managed, &str)) -> Program {
    Program { is_quick: true, ..program(words, check) }
}

const fn fails(words: &'static str, code: i32, check: fn(&Managed, &str)) -> Program {
    Program { code, ..program(words, check) }
}

/// The program says that the node does not have the attribute.
fn is_refused(said: &str) {
    assert!(said.contains("iberror: failed: "), "{said}");
}

/// Programs for any fabric.
pub const PROGRAMS: &[Program] = &[
    quick("ibnetdiscover", |lab, said| {
        let found = oracle::discovered(said);
        assert_eq!(found.len(), 2 * lab.oracle.cables.len(), "every cable has two ends");
        assert_eq!(BTreeSet::from_iter(found), lab.oracle.cables);
    }),
    quick("iblinkinfo", |lab, said| {
        let active = said.lines().filter(|line| line.contains("Active/  LinkUp")).count();
        assert_eq!(active, 2 * lab.oracle.cables.len(), "{said}");
    }),
    program("ibhosts", |lab, said| listed(said, lab.oracle.nics())),
    program("ibswitches", |lab, said| listed(said, lab.oracle.switches())),
    program("ibnodes", |lab, said| listed(said, lab.oracle.nodes.iter())),
    program("ibrouters", |_, said| assert_eq!(said, "")),
    quick("ibstat", |lab, said| {
        let own = lab.oracle.node(lab.beside);
        assert_eq!(hex_after(said, "Port GUID: "), Some(own.guid + 1));
        assert_eq!(number_after(said, "Base lid:"), Some(own.lid.into()));
        assert!(
            said.contains("State: Active") && said.contains("Physical state: LinkUp"),
            "{said}"
        );
    }),
    program("ibaddr", |lab, said| {
        let lid = lab.oracle.node(lab.beside).lid;
        assert!(said.contains(&format!("LID start 0x{lid:x} end 0x{lid:x}")), "{said}");
    }),
    quick("ibtracert @h1 @h3", |lab, said| {
        let traced = oracle::traced(said);
        assert!(traced.len() >= 2, "{said}");
        traced.iter().for_each(|cable| assert!(lab.oracle.cables.contains(cable), "{said}"));
        let ends = ["h1", "h3"].map(|name| lab.oracle.node(name).guid);
        assert_eq!(
            traced[0]
                .iter()
                .chain(&traced[traced.len() - 1])
                .filter(|(guid, _)| ends.contains(guid))
                .count(),
            2
        );
    }),
    program("ibroute @s0", |lab, said| {
        let tables = oracle::tables(said);
        assert_eq!(tables[&lab.oracle.node("s0").guid].len(), lab.oracle.nodes.len());
    }),
    quick("dump_fts", |lab, said| {
        let tables = oracle::tables(said);
        let pairs = lab.oracle.nics().flat_map(|a| lab.oracle.nics().map(move |b| (a, b)));
        for (from, to) in pairs.filter(|(from, to)| from.guid != to.guid) {
            lab.oracle.route(&tables, from, to);
        }
        let whole = tables.values().all(|table| table.len() == lab.oracle.nodes.len());
        assert!(whole && tables.len() == lab.oracle.switches().count(), "{said}");
    }),
    program("dump_lfts", |lab, said| {
        assert_eq!(oracle::tables(said).len(), lab.oracle.switches().count());
    }),
    program("dump_mfts", |lab, said| {
        let empty = said.lines().filter(|line| line.starts_with("0 valid mlids")).count();
        assert_eq!(empty, lab.oracle.switches().count(), "{said}");
    }),
    quick("smpquery nodeinfo @s1", |lab, said| is_node(lab, said, "s1")),
    quick("smpquery -D nodeinfo 0", |lab, said| is_node(lab, said, "h1")),
    program("smpquery -D nodeinfo 0,1", |lab, said| {
        let own = lab.oracle.node("h1");
        let (switch, port) = lab.oracle.far((own.guid, 1));
        assert_eq!(hex(said, "Guid"), switch);
        assert_eq!(field(said, "LocalPort"), port.to_string());
    }),
    program("smpquery -c nodeinfo @s0 0,1", |lab, said| {
        let far = lab.oracle.far((lab.oracle.node("s0").guid, 1));
        assert_eq!(
            (hex(said, "Guid"), field(said, "LocalPort")),
            (far.0, far.1.to_string().as_str())
        );
    }),
    program("smpquery nodedesc @h2", |_, said| assert_eq!(field(said, "Node Description"), "h2")),
    program("smpquery portinfo @h2", |lab, said| {
        assert_eq!(field(said, "Lid"), lab.oracle.node("h2").lid.to_string());
        assert_eq!(field(said, "SMLid"), lab.oracle.node("h0").lid.to_string());
        assert_eq!(field(said, "LinkState"), "Active");
    }),
    program("smpquery switchinfo @s0", |lab, said| {
        let top = lab.oracle.nodes.iter().map(|node| node.lid).max();
        assert_eq!(field(said, "LinearFdbTop").parse().ok(), top);
    }),
    program("smpquery pkeys @h2", |_, said| assert!(said.contains("0xffff"), "{said}")),
    program("smpquery guidinfo @h2", |lab, said| {
        let guid = format!("0x{:016x}", lab.oracle.node("h2").guid + 1);
        assert!(said.contains(&guid), "{said}");
    }),
    program("smpquery sl2vl @h2", |_, said| {
        assert!(said.contains("ports: in  0, out  0"), "{said}")
    }),
    program("smpquery vlarb @h2", |_, said| assert!(said.contains("WEIGHT"), "{said}")),
    program("smpdump @s0 0x11", |lab, said| {
        let guid = format!("{:016x}", lab.oracle.node("s0").guid);
        let digits: String = said.split_whitespace().collect();
        assert_eq!(digits[24..40], guid, "{said}");
    }),
    quick("sminfo", |lab, said| {
        let manager = lab.oracle.node("h0");
        assert_eq!(hex_after(said, "sm guid "), Some(manager.guid + 1));
        assert_eq!(number_after(said, "sm lid "), Some(manager.lid.into()));
        assert!(said.contains("SMINFO_MASTER"), "{said}");
    }),
    quick("saquery NR @h2", |lab, said| {
        assert_eq!(hex(said, "node_guid"), lab.oracle.node("h2").guid);
        assert_eq!(said.matches("NodeRecord dump").count(), 1, "{said}");
    }),
    program("saquery PIR @h2", |lab, said| {
        assert_eq!(said.matches("PortInfoRecord dump").count(), 1, "{said}");
        assert_eq!(field_of_dots(said, "EndPortLid"), lab.oracle.node("h2").lid.to_string());
    }),
    program("saquery --src-to-dst @h1:@h2", |lab, said| {
        let [from, to] = ["h1", "h2"].map(|name| lab.oracle.node(name).lid);
        assert_eq!(field_of_dots(said, "slid"), from.to_string());
        assert_eq!(field_of_dots(said, "dlid"), to.to_string());
    }),
    program("saquery -s", |lab, said| {
        let lid = lab.oracle.node("h0").lid.to_string();
        assert_eq!(field_of_dots(said, "base_lid"), lid);
    }),
    program("saquery SMIR", |_, said| assert_eq!(field_of_dots(said, "SMState"), "3")),
    program("saquery SWIR @s0", |lab, said| {
        let top = lab.oracle.nodes.iter().map(|node| u64::from(node.lid)).max();
        assert_eq!(hex_after(field_of_dots(said, "LinearFDBTop"), ""), top);
    }),
    program("saquery LFTR @s0/0", |lab, said| {
        assert_eq!(field_of_dots(said, "LID"), lab.oracle.node("s0").lid.to_string());
    }),
    program("saquery GIR @h2/0", |lab, said| {
        let guid = format!("0x{:016x}", lab.oracle.node("h2").guid + 1);
        assert!(said.contains(&guid), "{said}");
    }),
    program("saquery MCMR", |_, said| assert_eq!(field_of_dots(said, "mlid"), "0xc000")),
    program("saquery -c", |_, said| assert!(said.contains("SA ClassPortInfo"), "{said}")),
    quick("perfquery -x @s0 1", |_, said| {
        // At least the requests of this program have passed there.
        assert!(field(said, "PortXmitPkts").parse::<u64>().is_ok_and(|count| count > 10), "{said}");
    }),
    program("perfquery @h2 1", |_, said| assert_eq!(field(said, "VL15Dropped"), "0")),
    program("perfquery -a @s0", |_, said| assert_eq!(field(said, "PortSelect"), "255")),
    program("perfquery --rcvcc @h2 1", |_, said| assert_eq!(field(said, "PortPktRcvFECN"), "0")),
    program("perfquery -X @h2 1", |_, said| assert!(numbers(said, "XmtDataSL")[0] > 0, "{said}")),
    program("perfquery -S @s0 1", |_, said| assert!(numbers(said, "RcvDataSL")[0] > 0, "{said}")),
    // PortInactiveDiscards may be above 0: while links come up, the traffic of the lab has begun.
    program("perfquery -D @s0 1", |_, said| {
        assert_eq!(field(said, "PortNeighborMTUDiscards"), "0")
    }),
    program("perfquery -E @s0 1", |_, said| assert_eq!(field(said, "PortMalformedPktErrors"), "0")),
    program("perfquery --flowctlcounters @h2 1", |_, said| {
        assert!(
            ["PortXmitFlowPkts", "PortRcvFlowPkts"].iter().all(|name| field(said, name) != "0")
        );
    }),
    program("perfquery --vlxmitcounters @h2 1", |_, said| are_zero(said, "PortVLXmitWait")),
    program("perfquery --swportvlcong @s0 1", |_, said| are_zero(said, "SWPortVLCongestion")),
    program("perfquery --slrcvfecn @h2 1", |_, said| are_zero(said, "PortSLRcvFECN")),
    program("perfquery --slrcvbecn @h2 1", |_, said| are_zero(said, "PortSLRcvBECN")),
    program("perfquery --xmitcc @h2 1", |_, said| assert_eq!(field(said, "PortXmitTimeCong"), "0")),
    program("perfquery --vlxmittimecc @h2 1", |_, said| are_zero(said, "PortVLXmitTimeCong")),
    // What needs counters by opcode, faster links, or sampling.
    fails("perfquery --oprcvcounters @h2 1", 255, |_, said| is_refused(said)),
    fails("perfquery --vloppackets @h2 1", 255, |_, said| is_refused(said)),
    fails("perfquery --vlopdata @h2 1", 255, |_, said| is_refused(said)),
    fails("perfquery --vlxmitflowctlerrors @h2 1", 255, |_, said| is_refused(said)),
    fails("perfquery -T @h2 1", 255, |_, said| is_refused(said)),
    fails("perfquery -c @h2 1", 255, |_, said| is_refused(said)),
    // Those of the other kind of node.
    fails("perfquery --swportvlcong @h2 1", 255, |_, said| is_refused(said)),
    fails("perfquery --xmitcc @s0 1", 255, |_, said| is_refused(said)),
    quick("ibportstate @s0 1", |_, said| {
        assert!(said.contains("Peer PortInfo"), "{said}");
        assert_eq!(
            said.matches("Active").count(),
            2 + said.matches("LinkSpeedActive").count() + said.matches("LinkWidthActive").count(),
            "{said}"
        );
    }),
    program("sh -c ibqueryerrors || true", |lab, said| {
        let nodes = lab.oracle.nodes.len() as u64;
        assert_eq!(number_after(said, "## Summary:"), Some(nodes), "{said}");
        assert!(!said.contains("PMA query failures"), "{said}");
    }),
    program(
        "sh -c dump_lfts > l 2>/dev/null; ibnetdiscover --cache c >/dev/null; check_lft_balance -l l -i c",
        |_, said| {
            // A line for each switch whose ports have unequal numbers of LIDs.
            assert!(said.lines().all(|line| line.is_empty() || line.contains("0x")), "{said}");
        },
    ),
    program("ibidsverify", |_, said| assert!(!said.contains("ERR"), "{said}")),
    program("ibccquery CongestionInfo @s0", |_, said| {
        assert_eq!(field(said, "ControlTableCap"), "2")
    }),
    program("ibccconfig SwitchCongestionSetting @s0 0x1F 0x1FF 0x0 0xF 8 0 0:0 1", |_, _| {}),
    program("ibccquery SwitchCongestionSetting @s0", |_, said| {
        assert_eq!(
            (field(said, "Threshold"), field(said, "Marking_Rate")),
            ("0x0f", "1"),
            "{said}"
        );
    }),
    program("ibccconfig CACongestionSetting @h2 0 0x3 150 1 0 0", |_, _| {}),
    program("ibccquery CACongestionSetting @h2", |_, said| assert!(said.contains("150"), "{said}")),
    fails("vendstat -N @s0", 255, |_, said| assert!(said.contains("failed"), "{said}")),
    fails("ibping -c 1 @h0", 0, |_, said| assert!(said.contains("0 received"), "{said}")),
    // The manager lives on.
    program("sminfo", |_, said| assert!(said.contains("SMINFO_MASTER"), "{said}")),
];

/// The numbers of lines `Name0:.....number`, `Name1:.....number` and so on. Programs print fifteen or sixteen.
pub fn numbers(said: &str, name: &str) -> Vec<u64> {
    let is_there = |at: &usize| said.contains(&format!("\n{name}{at}:"));
    let number = |at| field(said, &format!("{name}{at}")).parse().expect("a number");
    let all: Vec<u64> = (0..).take_while(is_there).map(number).collect();
    assert!((15..=16).contains(&all.len()), "{said}");
    all
}

fn are_zero(said: &str, name: &str) {
    assert!(numbers(said, name).iter().all(|number| *number == 0), "{said}");
}

/// The list of nodes is that of the plan.
fn listed<'a>(said: &str, nodes: impl Iterator<Item = &'a Node>) {
    let line = |line: &str| {
        let name = line.split('"').nth(1).unwrap_or_default().to_owned();
        (hex_after(line, ": "), number_after(line, " ports "), name)
    };
    let found: BTreeSet<_> = said.lines().map(line).collect();
    let expected = nodes.map(|node| (Some(node.guid), Some(node.ports.into()), node.name.clone()));
    assert_eq!(found, expected.collect());
}

fn hex(said: &str, name: &str) -> u64 {
    let value = if said.contains(&format!("{name}:")) {
        field(said, name)
    } else {
        field_of_dots(said, name)
    };
    hex_after(value, "").unwrap_or_else(|| panic!("{name}: {value}"))
}

/// The value of a line `name.....value`.
fn field_of_dots<'a>(said: &'a str, name: &str) -> &'a str {
    let line =
        said.lines().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix('.'));
    line.unwrap_or_else(|| panic!("no {name} in {said}")).trim_start_matches('.')
}

fn is_node(lab: &Managed, said: &str, name: &str) {
    let node = lab.oracle.node(name);
    assert_eq!(hex(said, "Guid"), node.guid);
    assert_eq!(field(said, "NumPorts"), node.ports.to_string());
    assert_eq!(field(said, "NodeType"), if node.is_switch { "Switch" } else { "Channel Adapter" });
}

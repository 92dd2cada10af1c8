//! Partitions and service levels that a manager sets: what adapters and switches drop, count and report, and the lanes of
//! paths.

use super::*;
use management::attribute::Field;
use management::attribute::subnet::{notice, port_info};
use management::partitions::PartitionTable;

/// Limited members of the default partition, but the manager's node, in two partitions: h1 and h3, h2 and h4.
const KEYS: [&[u16]; ADAPTERS] =
    [&[0xffff, 0x8001], &[0x7fff, 0x8002], &[0x7fff, 0x8001], &[0x7fff, 0x8002]];
/// 4.096 us times 256: the least time between two sendings of a trap.
const DISTANCE: u64 = 1_049;

fn table(keys: &[u16]) -> PartitionTable {
    let mut block = [0; 64];
    let field = subnet::p_key_table::P_KEY;
    keys.iter().enumerate().for_each(|(at, key)| field.set_at(at, &mut block, (*key).into()));
    PartitionTable::new(&block)
}

fn path(manager: &Manager, node: usize) -> Vec<u8> {
    manager.fabric.node(guid(node)).expect("it was found").path.clone()
}

/// Gives the adapters their keys, in the tables and in the paths.
fn divide(manager: &mut Manager) {
    for (node, keys) in KEYS.into_iter().enumerate() {
        let path = path(manager, node);
        manager.set_partitions(&path, 0, keys, (false, false));
    }
    let keys = KEYS.into_iter().enumerate().map(|(node, keys)| (lid(node), table(keys))).collect();
    manager.administration.keys = keys;
}

/// Asks for PortInfo of a port.
fn ask_port(manager: &mut Manager, node: usize, port: u32) {
    let path = path(manager, node);
    manager.ask_along(&path, method::GET, 0x15, port, &[]);
}

fn dropped(run: &Run, node: usize, number: u8) -> u64 {
    run.readings[node].ports[usize::from(number) - 1].drops.get(DropReason::PartitionKey)
}

fn violations(answer: &Datagram) -> u64 {
    port_info::P_KEY_VIOLATIONS.get(answer.data())
}

/// Details of the first trap of a number, by octet and width.
fn details(run: &Run, number: u64, places: &[(usize, usize)]) -> Vec<u64> {
    let manager = run.manager();
    let is_its = |trap: &&Datagram| notice::TRAP.get(trap.data()) == number;
    let data = manager.traps.iter().find(is_its).expect("a trap").data().to_vec();
    let read = |(octet, octets): &(usize, usize)| {
        data[*octet..octet + octets].iter().fold(0, |value, it| value << 8 | u64::from(*it))
    };
    places.iter().map(read).collect()
}

#[test]
fn an_adapter_takes_only_packets_of_its_partitions() {
    let inside = [Stream::new(0, 2, 100), Stream::new(1, 3, 100), Stream::new(3, 1, 100)];
    let across = Stream { start: us(1_200), ..Stream::new(2, 1, 20) };
    let streams = [&inside[..], &[across]].concat();
    let run = run(&streams, us(6_000), |beside| {
        beside.at(us(800), divide).at(us(5_800), |manager| ask_port(manager, 1, 1))
    });
    assert_eq!((run.received(2), run.received(3)), (100, 100));
    assert_eq!(run.received(1), 100, "of h4, and nothing of h3");
    let refused = dropped(&run, 1, 1);
    assert!(refused > 20, "h3 sends again: {refused}");
    assert_eq!(run.drops(DropReason::PartitionKey), refused, "nowhere else");
    let manager = run.manager();
    assert_eq!(violations(&manager.answers[0]), refused);
    let traps = manager.count_traps(257) as u64;
    assert!((1..=4_800 / DISTANCE + 1).contains(&traps), "{traps} traps, {refused} packets");
    drop(manager);
    let found = details(&run, 257, &[(6, 2), (12, 2), (14, 2), (16, 4), (20, 1)]);
    let [h3, h2] = [lid(2), lid(1)].map(|lid| u64::from(lid.get()));
    assert_eq!(found, [h2, h3, h2, 0x7fff, 0]);
}

#[test]
fn a_switch_enforces_partitions_where_its_manager_says_so() {
    for is_out in [true, false] {
        // The output to h2, or the input from h3.
        let (node, number, peer) = if is_out { (S1, 2, 1) } else { (S2, 1, 2) };
        let across = Stream { start: us(1_200), ..Stream::new(2, 1, 20) };
        let streams = [Stream::new(0, 2, 100), Stream::new(3, 1, 100), across];
        let run = run(&streams, us(6_000), |beside| {
            beside
                .at(us(800), move |manager| {
                    divide(manager);
                    let path = path(manager, node);
                    let keys = if is_out { KEYS[peer] } else { &KEYS[peer][1..] };
                    manager.set_partitions(&path, number, keys, (!is_out, is_out));
                })
                .at(us(5_800), move |manager| {
                    ask_port(manager, node, number.into());
                    let class = datagram::PERFORMANCE;
                    let mut request = Datagram::request(class, method::GET, 0x12, 0, 0);
                    request.data_mut()[1] = number;
                    let lid = manager.fabric.node(guid(node)).expect("it was found").lid;
                    manager.ask(lid, request);
                })
        });
        assert_eq!((run.received(2), run.received(1)), (100, 100));
        let refused = dropped(&run, node, number);
        assert!(refused > 20, "{refused}");
        assert_eq!(run.drops(DropReason::PartitionKey), refused, "before h2 sees any");
        let manager = run.manager();
        assert_eq!(violations(&manager.answers[0]), refused);
        use performance::port_counters::*;
        let constraints = |field: Field| field.get(manager.answers[1].data());
        let counted = [XMIT_CONSTRAINT_ERRORS, RCV_CONSTRAINT_ERRORS].map(constraints);
        let most = XMIT_CONSTRAINT_ERRORS.max();
        let expected = refused.min(most);
        assert_eq!(counted, if is_out { [expected, 0] } else { [0, expected] });
        let traps = manager.count_traps(259) as u64;
        assert!((1..=4_800 / DISTANCE + 1).contains(&traps), "{traps} traps, {refused} packets");
        assert_eq!(manager.count_traps(257), 0);
        let switch = u64::from(manager.fabric.node(guid(node)).expect("it was found").lid.get());
        drop(manager);
        let found = details(&run, 259, &[(10, 2), (12, 2), (14, 2), (16, 2), (58, 2), (60, 1)]);
        // The path from h1 to h3 is in the default partition, so h3 acknowledges in it.
        let [from, to] = [2, usize::from(is_out)].map(|node| u64::from(lid(node).get()));
        assert_eq!(found, [0xf400, from, to, 0x7fff, switch, number.into()]);
    }
}

#[test]
fn a_queue_pair_takes_the_service_level_of_its_path() {
    // Messages wait when the answers come. Class 1 has a level of its own.
    let flood = |from, class| Stream {
        class,
        gap: Duration::from_ns(2_100),
        start: us(500),
        ..Stream::new(from, 3, 500)
    };
    let streams = [flood(1, 0), flood(2, 0), flood(0, 1)];
    let run = run(&streams, us(7_000), |beside| {
        beside
            .at(Instant::ZERO, |manager| {
                manager.administration.level = 2;
            })
            .at(us(400), |manager| {
                let mut lanes = [0; 16];
                lanes[2] = 1;
                for node in manager.fabric.nodes.clone() {
                    let ports = if node.is_switch { PORTS as u8 } else { 0 };
                    let pairs = (0..=ports).flat_map(|from| (0..=ports).map(move |to| (from, to)));
                    let is_cabled = |(from, to): &(u8, u8)| ports == 0 || from.min(to) > &0;
                    for pair in pairs.filter(is_cabled) {
                        manager.set_lanes(&node.path, pair, lanes);
                    }
                }
            })
    });
    assert_eq!((run.received(3), run.all_drops()), (1_500, 0));
    for node in [1, 2] {
        let lanes = [0, 1].map(|lane| run.sent_on(node, 1, lane));
        assert!(lanes[1] > 300, "adapter {node} sends {lanes:?}");
        let waits =
            |lane: usize| run.readings[node].ports[0].lanes[lane].counters.source_queue.value;
        assert_eq!([waits(0), waits(1)], [0, 0], "nothing waits any more");
    }
    assert_eq!(run.sent_on(0, 1, 1), 0, "class 1 keeps level 1");
}

#[test]
fn a_queue_pair_sends_by_the_path_bits_of_its_path() {
    let run = run(&[Stream::new(1, 3, 50)], us(4_000), |beside| {
        beside.at(Instant::ZERO, |manager| {
            manager.lid_mask_bits = 1;
            manager.lids = (0..ADAPTERS).map(|node| (guid(node), base(node))).collect();
            manager.administration.path_bits = 1;
        })
    });
    assert_eq!((run.received(3), run.all_drops()), (50, 0));
    let second = |node: usize| Lid::new(base(node).get() + 1);
    let ends = [(second(1), second(3)), (second(3), second(1))];
    assert_eq!(run.ends, ends.into_iter().collect(), "data and acknowledgements");
    // Odd LIDs take the second trunk.
    assert_eq!(run.sent(S1, TRUNKS[1]) - run.general(S2, TRUNKS[1]), 50);
}

/// The first of two LIDs of an adapter.
fn base(node: usize) -> Lid {
    Lid::new(10 + 2 * node as u16)
}

//! Multicast groups that adapters join through subnet administration: which ports get their packets, and along which
//! multicast LID.
//!
//! h1 and h3 are members, h4 only sends, h2 has nothing to do with the group.

use super::*;
use nicd::config::GroupConfig;

/// As a receiver of a stream: the group, whose number in the plan is the first multicast LID.
const GROUP: usize = 0xbfff;
const MEMBERS: [usize; 2] = [0, 2];
/// The class of datagrams.
const DATAGRAMS: u8 = 2;
/// The time by which all have joined, and the switches have their routes.
const JOINED: u64 = 5_000;

/// The groups of an adapter, where streams lead to one.
pub fn groups(node: usize, streams: &[Stream]) -> Vec<GroupConfig> {
    let sends = |stream: &Stream| stream.to == GROUP && stream.from == node;
    let is_member = MEMBERS.contains(&node);
    let belongs =
        streams.iter().any(sends) || is_member && streams.iter().any(|stream| stream.to == GROUP);
    let (name, mgid) = ("all".to_owned(), "ff12::1".parse().expect("an address"));
    let group = GroupConfig { name, lid: lid(GROUP), mgid, is_member };
    if belongs { vec![group] } else { Vec::new() }
}

fn to_group(from: usize, messages: u64, start: u64) -> Stream {
    Stream { class: DATAGRAMS, start: us(start), ..Stream::new(from, GROUP, messages) }
}

fn named(run: &Run, node: usize, name: &str) -> u64 {
    let named = &run.readings[node].ports[0].named;
    named.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("no {name}")).1
}

/// Sender and receiver of packets to the group.
fn ends(run: &Run) -> Vec<(u16, u16)> {
    let ends = run.ends.iter().map(|(from, to)| (from.get(), to.get()));
    ends.filter(|(_, to)| *to >= 0xc000).collect()
}

#[test]
fn data_of_any_sender_reach_the_members_and_no_other() {
    let streams = [to_group(3, 100, JOINED), to_group(0, 40, JOINED), Stream::new(3, 1, 20)];
    let run = run(&streams, us(9_000), |beside| {
        beside.at(Instant::ZERO, |manager| {
            manager.administration.next_group = 5;
            manager.administration.group_keys = Some((0xb1b, 0xffff));
            manager.administration.level = 1;
        })
    });
    // h1 gets no copy of its own packets.
    let received = [0, 1, 2, 3].map(|node| run.received(node));
    assert_eq!((received, run.all_drops()), ([100, 20, 140, 0], 0));
    assert_eq!(ends(&run), [(1, 0xc005), (4, 0xc005)], "the multicast LID of the answer");
    // 140 packets of LRH, GRH, BTH, DETH, payload and checks.
    let octets = run.readings[2].ports[0].lanes[0].counters.rx_bytes;
    assert!(octets >= 140 * (8 + 40 + 12 + 8 + 2048 + 4 + 2), "{octets}");
    let mlids = [0, 2, 3].map(|node| named(&run, node, "multicast_lid_all"));
    assert_eq!(mlids, [0xc005; 3]);
    let manager = run.manager();
    let states = manager.administration.groups[0].members.clone();
    assert_eq!(states, BTreeMap::from([(guid(0), 1), (guid(2), 1), (guid(3), 4)]));
    // h4 asks again until a member has created the group; members never do.
    let refused = [0, 2, 3].map(|node| named(&run, node, "multicast_join_refusals"));
    let joins =
        |node: usize| manager.administration.joins.iter().filter(move |it| it.0 == guid(node));
    assert_eq!((refused[0], refused[1]), (0, 0));
    assert_eq!([joins(0).count(), joins(2).count()], [1, 1]);
    assert_eq!(joins(3).count() as u64, refused[2] + 1);
}

#[test]
fn a_port_that_has_not_joined_drops_the_packets_and_counts_them() {
    let run = run(&[to_group(3, 100, JOINED)], us(9_000), |beside| {
        beside.at(us(4_500), |manager| {
            // A third port of s1: that of h2.
            let mask = 1u16 << 1 | 1 << 2 | 1 << TRUNKS[0];
            manager.ask_along(TO_S1, method::SET, 0x1b, 0, &mask.to_be_bytes());
        })
    });
    assert_eq!(run.manager().answers[0].status(), 0);
    assert_eq!([0, 1, 2].map(|node| run.received(node)), [100, 0, 100]);
    let dropped = run.readings[1].ports[0].drops.get(DropReason::NotForUs);
    assert_eq!((dropped, run.readings[1].balance.delivered > 0), (100, true));
}

#[test]
fn members_join_again_when_they_must_register_again_and_follow_another_lid() {
    let streams = [to_group(3, 100, JOINED), to_group(3, 80, 12_000)];
    let run = run(&streams, us(14_000), |beside| {
        beside.at(us(7_000), |manager| {
            // Another manager knows nothing of the group, and gives it another LID.
            manager.administration.groups.clear();
            manager.administration.next_group = 9;
            manager.set_addresses(true);
        })
    });
    assert_eq!([0, 1, 2, 3].map(|node| run.received(node)), [180, 0, 180, 0]);
    assert_eq!((ends(&run), run.all_drops()), (vec![(4, 0xc000), (4, 0xc009)], 0));
    assert_eq!(named(&run, 2, "multicast_lid_all"), 0xc009);
}

#[test]
fn packets_have_the_partition_of_their_group() {
    // The partition is that of h1 and h4.
    let streams = [to_group(3, 50, JOINED)];
    let run = run(&streams, us(9_000), |beside| {
        let created = |manager: &mut Manager| {
            manager.administration.group_keys = Some((0xb1b, 0x8001));
        };
        beside.at(Instant::ZERO, created).at(us(800), |manager| {
            for (node, keys) in
                [(0, [0xffff, 0x8001]), (2, [0x7fff, 0x8002]), (3, [0xffff, 0x8001])]
            {
                let path = manager.fabric.node(guid(node)).expect("it was found").path.clone();
                manager.set_partitions(&path, 0, &keys, (false, false));
            }
        })
    });
    assert_eq!([0, 2].map(|node| run.received(node)), [50, 0]);
    let dropped = run.readings[2].ports[0].drops.get(DropReason::PartitionKey);
    assert_eq!((dropped, run.all_drops()), (50, 50));
    assert!(run.manager().count_traps(257) > 0);
}

#[test]
fn a_group_with_smaller_packets_than_the_link_is_not_joined() {
    let run = run(&[to_group(3, 50, JOINED)], us(9_000), |beside| {
        beside.at(Instant::ZERO, |manager| manager.administration.smaller = 1)
    });
    assert_eq!((run.received(0), run.received(2), ends(&run)), (0, 0, vec![]));
    for node in [0, 2, 3] {
        assert_eq!(named(&run, node, "multicast_lid_all"), 0);
        assert!(named(&run, node, "multicast_join_refusals") > 0);
    }
}

//! The update rule of the slides, the choice of ports, and the end of entries.

use super::*;

const TIMEOUT: Duration = Duration::from_us(250_000);
const D: Lid = Lid::new(4);

fn port(index: usize) -> PortNumber {
    PortNumber::from_index(index)
}

fn at(us: u64) -> Instant {
    Instant::ZERO + Duration::from_us(us)
}

fn entry(table: &CongestionTable, way: Way) -> Entry {
    table.entries[table.find(way).expect("the table has the entry")].1
}

fn table() -> CongestionTable {
    CongestionTable::new(TIMEOUT)
}

/// The vector of docs/spec/algorithms.md 10.6.
#[test]
fn three_remote_notifications_of_ten_make_a_count_of_three_and_a_feedback_of_sixty() {
    let mut table = table();
    for us in [1, 2, 3] {
        table.note((D, port(1)), 10, false, at(us));
    }
    let entry = entry(&table, (D, port(1)));
    assert_eq!((entry.feedback_count, entry.feedback, entry.local), (3, 60, false));
    assert_eq!(entry.expires, at(3) + TIMEOUT, "each notification starts the timer anew");
}

#[test]
fn a_local_entry_becomes_remote_by_a_word_from_outside_and_not_the_other_way_round() {
    let way = (D, port(1));
    for (first, second, local) in
        [(true, true, true), (true, false, false), (false, true, false), (false, false, false)]
    {
        let mut table = table();
        table.note(way, 5, first, at(0));
        assert_eq!(entry(&table, way).local, first, "a new entry is what its maker says");
        table.note(way, 5, second, at(7));
        let entry = entry(&table, way);
        assert_eq!((entry.local, entry.feedback), (local, 15));
        let expiry = if local { Instant::NEVER } else { at(7) + TIMEOUT };
        assert_eq!(table.next_expiry(), expiry);
        assert_eq!(table.local_ports().contains(port(1)), local);
    }
}

#[test]
fn the_first_free_port_is_taken_and_of_congested_ones_the_least_congested() {
    let (mut table, legal) = (table(), [port(2), port(0), port(1)]);
    assert_eq!(table.choose(D, &legal), port(2));
    table.note((D, port(2)), 1, false, at(0));
    assert_eq!(table.choose(D, &legal), port(0));
    assert_eq!(table.choose(Lid::new(3), &legal), port(2), "other destinations are not concerned");
    assert_eq!(table.choose(Lid::new(5), &legal), port(2));
    table.note((D, port(0)), 9, true, at(0));
    table.note((D, port(1)), 9, true, at(0));
    assert_eq!(table.choose(D, &legal), port(2));
    table.note((D, port(2)), 9, false, at(0));
    assert_eq!(table.choose(D, &legal), port(0), "among equals the preferred one");
}

#[test]
fn remote_entries_end_by_time_and_local_ones_by_their_queue() {
    let mut table = table();
    table.note((D, port(1)), 1, false, at(0));
    table.note((D, port(2)), 1, true, at(0));
    table.note((Lid::new(9), port(2)), 1, true, at(0));
    table.note((Lid::new(9), port(3)), 1, false, at(10));
    table.expire(at(249_999));
    assert_eq!(table.entries_of(port(1)), (1, 0));
    table.expire(at(250_000));
    assert!(!table.is_congested(D, port(1)));
    assert_eq!(table.next_expiry(), at(250_010));
    table.expire(at(99_000_000));
    assert_eq!(table.entries_of(port(2)), (0, 2), "time does not end local entries");
    table.clear_local(port(2));
    assert!(table.is_empty() && table.local_ports().is_empty());
}

#[test]
fn feedback_stays_at_its_greatest() {
    let mut table = table();
    table.note((D, port(1)), u32::MAX, false, at(0));
    table.note((D, port(1)), u32::MAX, false, at(0));
    assert_eq!(entry(&table, (D, port(1))).feedback, u32::MAX);
}

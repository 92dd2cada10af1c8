//! Order, waiting, groups, and the size of the heaps.

use super::*;

const LANE: VirtualLane = VirtualLane::ZERO;

fn at(ps: u64) -> Instant {
    Instant::from_ps(ps)
}

/// `n` queue pairs, each in its own group.
fn alone(n: u32) -> Scheduler {
    let mut scheduler = Scheduler::new(1);
    for group in 0..n {
        scheduler.add_group(LANE);
        scheduler.add_queue_pair();
        scheduler.assign_group(group, group);
    }
    scheduler
}

fn turn(scheduler: &mut Scheduler, now: u64) -> Option<u32> {
    scheduler.next_sender(LANE, at(now)).map(|turn| turn.queue_pair)
}

#[test]
fn the_lowest_key_sends_first_and_polling_changes_nothing() {
    let mut scheduler = alone(3);
    for (queue_pair, key) in [(0, 30), (1, 10), (2, 20)] {
        scheduler.set_key(queue_pair, Some(key), at(0));
    }
    assert_eq!([turn(&mut scheduler, 0), turn(&mut scheduler, 0)], [Some(1), Some(1)]);
    scheduler.on_frame_sent(1, Some(40), Permission::At(at(0)), at(0));
    assert_eq!(turn(&mut scheduler, 0), Some(2));
    scheduler.set_key(2, None, at(0));
    assert_eq!(turn(&mut scheduler, 0), Some(0));
    scheduler.set_key(0, None, at(0));
    assert_eq!(turn(&mut scheduler, 0), Some(1));
    scheduler.set_key(1, None, at(0));
    assert_eq!(turn(&mut scheduler, 0), None);
    assert!(!scheduler.is_ready(LANE));
}

#[test]
fn a_waiting_group_becomes_ready_at_its_instant_with_its_key() {
    let mut scheduler = alone(2);
    scheduler.set_key(0, Some(1), at(0));
    scheduler.set_key(1, Some(2), at(0));
    scheduler.set_permission(0, Permission::At(at(50)), at(0));
    assert_eq!(turn(&mut scheduler, 49), Some(1));
    assert_eq!(scheduler.next_permission(LANE), at(50));
    let first = scheduler.next_sender(LANE, at(60)).unwrap();
    assert_eq!((first.queue_pair, first.permitted_since), (0, at(50)));
}

#[test]
fn the_latest_permission_replaces_earlier_ones() {
    let mut scheduler = alone(1);
    scheduler.set_key(0, Some(1), at(0));
    scheduler.set_permission(0, Permission::At(at(50)), at(0));
    scheduler.set_permission(0, Permission::At(at(90)), at(0));
    assert_eq!(turn(&mut scheduler, 89), None);
    scheduler.set_permission(0, Permission::At(at(70)), at(0));
    assert_eq!(turn(&mut scheduler, 70), Some(0));
    scheduler.set_permission(0, Permission::Stopped, at(70));
    assert_eq!(turn(&mut scheduler, 1_000), None);
    scheduler.set_permission(0, Permission::At(at(0)), at(1_000));
    assert_eq!(turn(&mut scheduler, 1_000), Some(0));
}

#[test]
fn members_of_a_group_wait_together_and_send_in_order() {
    let mut scheduler = Scheduler::new(1);
    scheduler.add_group(LANE);
    scheduler.add_group(LANE);
    for (queue_pair, group) in [0, 0, 1].into_iter().enumerate() {
        scheduler.add_queue_pair();
        scheduler.assign_group(queue_pair as u32, group);
    }
    for (queue_pair, key) in [(0, 3), (1, 1), (2, 2)] {
        scheduler.set_key(queue_pair, Some(key), at(0));
    }
    assert_eq!(turn(&mut scheduler, 0), Some(1));
    scheduler.on_frame_sent(1, Some(4), Permission::At(at(10)), at(0));
    assert_eq!(turn(&mut scheduler, 5), Some(2));
    scheduler.on_frame_sent(2, None, Permission::At(at(5)), at(5));
    assert_eq!(turn(&mut scheduler, 9), None);
    assert_eq!(turn(&mut scheduler, 10), Some(0));
}

#[test]
fn stale_entries_do_not_accumulate() {
    let mut scheduler = alone(1023);
    for queue_pair in 0..1023 {
        scheduler.set_key(queue_pair, Some(u64::from(queue_pair)), at(0));
    }
    let mut now = 0;
    for frame in 0..100_000u64 {
        now = now.max(scheduler.next_permission(LANE).as_ps().min(now + 2));
        if let Some(queue_pair) = turn(&mut scheduler, now) {
            let gap = now + 1 + frame % 7 * 300;
            scheduler.on_frame_sent(
                queue_pair,
                Some(1023 + frame),
                Permission::At(at(gap)),
                at(now),
            );
        }
    }
    let lane = &scheduler.lanes[0];
    let entries = lane.ready.len() + lane.waiting.len();
    assert!(entries <= 3 * 1023, "{entries} entries for 1023 groups");
}

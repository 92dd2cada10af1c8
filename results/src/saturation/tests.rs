//! Trees of fabrics small enough to be drawn in a comment.

use super::*;

/// Outputs from (name, from, to) over nodes of these levels.
fn outputs(levels: &[u8], list: &[(&str, usize, usize)]) -> Outputs {
    let output = |(name, from, to): &(&str, usize, usize)| Output {
        name: (*name).to_owned(),
        from: *from,
        to: *to,
        level: levels[*from],
        far_level: levels[*to],
    };
    Outputs::new(list.iter().map(output).collect(), 100)
}

const ROOT: OutputState = OutputState { hold: 0.0, queue: 100.0, sent: 0.95 };
const HELD_ONE: OutputState = OutputState { hold: 0.10, queue: 0.0, sent: 0.1 };
const FREE: OutputState = OutputState { hold: 0.09, queue: 99.0, sent: 1.0 };

/// h0, h1 ─ s2 ─ s3 ─ h4: the root is s3's output to h4.
fn line() -> Outputs {
    outputs(
        &[0, 0, 1, 1, 0],
        &[("h0:1", 0, 2), ("h1:1", 1, 2), ("s2:3", 2, 3), ("s3:2", 3, 4), ("s3:1", 3, 2)],
    )
}

#[test]
fn a_line_waits_behind_its_root_one_after_another() {
    let outputs = line();
    let moment = outputs.trees(&[HELD_ONE, FREE, HELD_ONE, ROOT, FREE]);
    assert_eq!(moment.trees, BTreeMap::from([(3, vec![(2, 1), (0, 2)])]));
    assert_eq!(moment.strays, Vec::<usize>::new());
    let mut watch = TreeLog::new(&outputs);
    watch.enter(0, 10, &outputs.trees(&[FREE; 5]));
    watch.enter(10, 20, &moment);
    watch.enter(20, 25, &outputs.trees(&[FREE, FREE, FREE, ROOT, FREE]));
    let names = ["h0", "h1", "s2", "s3", "h4"];
    let found = watch.finish(|node| names[node]);
    let tree = Tree {
        root: "s3:2".into(),
        feeds: "h4".into(),
        first_ps: 10,
        last_ps: 25,
        bins: 2,
        size: 2,
        size_at_ps: 10,
        depth: 2,
        sources: 1,
    };
    assert_eq!(found.trees, [tree]);
}

#[test]
fn each_bound_of_a_root_counts() {
    let outputs = line();
    for not_quite in [
        OutputState { hold: 0.10, ..ROOT },
        OutputState { queue: 99.0, ..ROOT },
        OutputState { sent: 0.94, ..ROOT },
    ] {
        let moment = outputs.trees(&[HELD_ONE, FREE, HELD_ONE, not_quite, FREE]);
        assert!(moment.trees.is_empty(), "{not_quite:?}");
        assert!(moment.strays.contains(&0) && moment.strays.contains(&2), "{not_quite:?}");
    }
    // An adapter that sends all it can is not a root, and without a measure for queues nothing is.
    assert!(outputs.trees(&[ROOT, FREE, FREE, FREE, FREE]).trees.is_empty());
    let blind = Outputs::new(outputs.all.clone(), 0);
    assert!(blind.trees(&[FREE, FREE, FREE, ROOT, FREE]).trees.is_empty());
}

#[test]
fn of_two_roots_the_nearer_wins_then_the_smaller_name() {
    // h0 ─ s1 ─ h2, h3: both outputs of s1 are roots, as near to h0's.
    let both = outputs(&[0, 1, 0, 0], &[("h0:1", 0, 1), ("s1:9", 1, 2), ("s1:2", 1, 3)]);
    let moment = both.trees(&[HELD_ONE, ROOT, ROOT]);
    assert_eq!(moment.trees, BTreeMap::from([(1, vec![]), (2, vec![(0, 1)])]));
    // h0 ─ s1 ─ s2 ─ h3, and s1 ─ h4: s1's own root is nearer to h0 than that of s2.
    let near = outputs(
        &[0, 1, 1, 0, 0],
        &[("h0:1", 0, 1), ("s1:2", 1, 2), ("s2:2", 2, 3), ("s1:3", 1, 4)],
    );
    let moment = near.trees(&[HELD_ONE, HELD_ONE, ROOT, ROOT]);
    assert_eq!(moment.trees, BTreeMap::from([(2, vec![(1, 1)]), (3, vec![(0, 1)])]));
}

#[test]
fn a_circle_of_waiting_outputs_is_told_in_the_order_of_waiting() {
    // A ring of three switches, each feeding the next.
    let ring = outputs(&[1, 1, 1], &[("a:1", 0, 1), ("b:1", 1, 2), ("c:1", 2, 0)]);
    let moment = ring.trees(&[HELD_ONE; 3]);
    assert_eq!(moment.circle.len(), 3);
    for (place, output) in moment.circle.iter().enumerate() {
        let next = moment.circle[(place + 1) % 3];
        assert_eq!(ring.all[*output].to, ring.all[next].from, "each waits for the next");
    }
    assert_eq!(moment.strays, [0, 1, 2]);
    assert!(ring.trees(&[HELD_ONE, HELD_ONE, FREE]).circle.is_empty());
}

#[test]
fn what_goes_down_does_not_wait_for_what_goes_up() {
    // leaf0 and leaf1 below a spine, everything held both ways: no circle, since no route goes down
    // and up again.
    let levels = [1, 2, 1];
    let list = [("leaf0:1", 0, 1), ("spine:1", 1, 0), ("leaf1:1", 2, 1), ("spine:2", 1, 2)];
    let fabric = outputs(&levels, &list);
    let moment = fabric.trees(&[HELD_ONE; 4]);
    assert!(moment.circle.is_empty(), "{moment:?}");
    assert_eq!(moment.strays.len(), 4);
    assert_eq!(fabric.trees(&[FREE; 4]), BinTrees::default());
}

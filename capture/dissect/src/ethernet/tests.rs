//! Where a frame ends: lengths that agree, disagree and lie.

use super::*;

fn find(length: usize, named: [Option<usize>; 2], fcs: Fcs) -> (usize, usize) {
    let all = vec![0xa5; length];
    let Extent { end, fcs } = Extent::find(&all, 14, named, fcs);
    (end, fcs)
}

#[test]
fn four_octets_behind_the_end_are_an_fcs() {
    assert_eq!(find(104, [Some(100), Some(100)], Fcs::Auto), (100, 100));
    assert_eq!(find(100, [Some(100), Some(100)], Fcs::Auto), (100, 100));
    assert_eq!(find(104, [None, None], Fcs::Auto), (104, 104));
    assert_eq!(find(104, [None, None], Fcs::Yes), (100, 100));
    assert_eq!(find(104, [Some(100), None], Fcs::No), (100, 104));
}

#[test]
fn short_frames_have_padding_before_it() {
    assert_eq!(find(60, [Some(30), None], Fcs::Auto), (30, 60));
    assert_eq!(find(64, [Some(30), None], Fcs::Auto), (30, 60));
    assert_eq!(find(64, [None, None], Fcs::Auto), (60, 60));
}

#[test]
fn of_two_ends_the_one_that_fits_counts() {
    assert_eq!(find(104, [Some(60), Some(100)], Fcs::Auto), (100, 100));
    assert_eq!(find(100, [Some(60), Some(100)], Fcs::Auto), (100, 100));
    assert_eq!(find(104, [Some(100), Some(9000)], Fcs::Auto), (100, 100));
    assert_eq!(find(104, [Some(612), Some(9000)], Fcs::Auto), (104, 104));
}

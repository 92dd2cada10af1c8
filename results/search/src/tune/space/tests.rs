//! Grids, samples and steps.

use super::*;

fn scheme(params: &str) -> SchemeConfig {
    SchemeConfig { kind: "ib-cca".to_owned(), params: params.parse().expect("TOML") }
}

fn searched(name: &str, values: Values) -> Searched {
    Searched { name: name.to_owned(), values }
}

fn whole(dimension: &Dimension) -> Vec<i64> {
    dimension.levels.iter().filter_map(toml::Value::as_integer).collect()
}

#[test]
fn a_short_range_is_searched_whole_and_a_wide_one_by_its_logarithm() {
    let search = [
        searched("threshold", Values::Whole(1, 15)),
        searched("ccti_timer", Values::Whole(4, 1024)),
    ];
    let space = Space::new(&search, &scheme("threshold = 3\nccti_timer = 31"));
    assert_eq!(whole(&space.dimensions[0]), (1..=15).collect::<Vec<_>>());
    let timers = whole(&space.dimensions[1]);
    // 4 to 1024 is eight octaves: every fourth of 32 steps doubles; 31 is the file's own.
    assert!([4, 8, 16, 31, 32, 64, 512, 1024].iter().all(|n| timers.contains(n)), "{timers:?}");
    assert!(timers.is_sorted() && timers.len() <= LEVELS + 1);
    let own = space.own.as_ref().expect("both are on the grid");
    let settings: Vec<String> = space.settings(own).map(|(_, value)| value.to_string()).collect();
    assert_eq!(settings, ["3", "31"]);
}

#[test]
fn settings_outside_the_ranges_are_not_on_the_grid() {
    let search = [searched("ccti_timer", Values::Whole(100, 200))];
    assert_eq!(Space::new(&search, &scheme("ccti_timer = 31")).own, None);
    assert_eq!(Space::new(&search, &scheme("")).own, None);
}

#[test]
fn fractions_have_three_digits_and_lists_keep_their_order() {
    let list = ["enqueue", "head_wait"].map(|word| toml::Value::String(word.to_owned()));
    let search = [
        searched("sw_th_frac", Values::Real(0.1, 0.5)),
        searched("root_test", Values::Listed(list.to_vec())),
    ];
    let space = Space::new(&search, &scheme("sw_th_frac = 0.3\nroot_test = \"head_wait\""));
    let first: Vec<String> =
        space.dimensions[0].levels[..3].iter().map(|l| l.to_string()).collect();
    assert_eq!(first, ["0.1", "0.113", "0.125"]);
    assert_eq!(space.dimensions[1].levels, list);
    let applied = space.apply(&Point(vec![0, 0]), &scheme("marking_rate = 3"));
    let expected: toml::Table =
        "marking_rate = 3\nsw_th_frac = 0.1\nroot_test = \"enqueue\"".parse().expect("TOML");
    assert_eq!(applied.params, expected);
}

fn square(n: i64) -> Space {
    let search = [searched("a", Values::Whole(1, n)), searched("b", Values::Whole(1, n))];
    Space::new(&search, &scheme(""))
}

#[test]
fn samples_are_even_distinct_and_the_seeds_own() {
    let space = square(16);
    let points = space.sample(64, 7);
    assert_eq!(points.len(), 64);
    for quarter in 0..4 {
        for d in 0..2 {
            let there = points.iter().filter(|point| point.0[d] / 4 == quarter).count();
            assert!((14..=18).contains(&there), "{there} of 64 in quarter {quarter} of {d}");
        }
    }
    assert_eq!(points, space.sample(64, 7));
    assert_ne!(points, space.sample(64, 8));
    assert_eq!(square(2).sample(64, 7).len(), 4, "a small grid has no more points");
}

#[test]
fn neighbours_are_a_step_away_inside_the_grid_and_steps_shrink() {
    let space = square(16);
    let mut random = Random::stream(7, "tune", "refine");
    let corner = Point(vec![0, 15]);
    let near = space.around(&corner, 2, &mut random);
    assert!(near.contains(&Point(vec![4, 15])) && near.contains(&Point(vec![0, 11])));
    assert!(!near.contains(&corner));
    assert!(near.iter().all(|p| p.0[0] <= 4 && (11..=15).contains(&p.0[1])), "{near:?}");
    assert!(!space.is_finest(3) && space.is_finest(4));
}

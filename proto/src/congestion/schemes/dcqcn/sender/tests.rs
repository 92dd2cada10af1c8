//! Cuts, stages of recovery, pacing: exact traces.

use super::super::tests::{FRAME, LINE, place, settings, us};
use super::*;
use crate::congestion::{TransportNote, Travel};
use crate::units::{BitRate, Duration};

const CNP: Notification = Notification::becn(Travel::Cnp);
const MBPS: u64 = 1_000_000;

fn sender(text: &str) -> Sender {
    Sender::new(&place(40), settings(text, 40))
}

fn rates(sender: &Sender) -> (u64, u64) {
    (sender.current, sender.target)
}

/// ROCE-09, and the vector of docs/spec/algorithms.md 10.6: CNPs at 0 and 60 µs with α = 1 and g = 1/256.
#[test]
fn a_notification_halves_the_rate_while_alpha_is_one() {
    let mut sender = sender("");
    assert_eq!(sender.on_notification(&CNP, us(0)), Effect::Valid);
    assert_eq!(rates(&sender), (LINE / 2, LINE));
    assert_eq!(sender.alpha.get(), ONE);
    // One quiet interval ended at 55 µs, as did one of recovery: RC = (20 + 40) / 2.
    sender.on_notification(&CNP, us(60));
    let alpha = ONE - ONE / 256;
    assert_eq!(rates(&sender), (share(30_000 * MBPS, ONE - alpha / 2), 30_000 * MBPS));
    assert_eq!(sender.current, 15_058_593_750);
    let raised = u128::from(ONE) * 255 * 255 / 256 / 256 + u128::from(ONE / 256);
    assert!(u128::from(sender.alpha.get()).abs_diff(raised) <= 1);
}

#[test]
fn the_order_of_cut_and_alpha_is_a_variant_by_name() {
    let cut_rate = |text: &str| {
        let mut sender = sender(text);
        sender.on_notification(&CNP, us(0));
        sender.on_notification(&CNP, us(54 + 55 * 255));
        (sender.current, sender.target, sender.alpha.get())
    };
    let (first, target, alpha) = cut_rate("cnp_order = \"cut-alpha\"");
    let (second, same_target, same_alpha) = cut_rate("cnp_order = \"alpha-cut\"");
    assert_eq!((target, alpha), (same_target, same_alpha));
    assert!(second < first, "the α that has risen cuts deeper");
    assert_eq!(second, share(target, ONE - alpha / 2));
    assert_eq!(cut_rate(""), (first, target, alpha), "the paper's order is the default");
}

/// ROCE-11: five halvings of the gap, then R_AI; the byte counter is far behind.
#[test]
fn recovery_halves_the_gap_five_times_and_then_grows_additively() {
    let mut sender = sender("");
    // Two cuts, so that there is room above the target.
    sender.on_notification(&CNP, us(0));
    sender.on_notification(&CNP, us(1));
    assert_eq!(rates(&sender), (10_000 * MBPS, 20_000 * MBPS));
    let mut expected = (10_000 * MBPS, 20_000 * MBPS);
    for stage in 0..40 {
        let due = us(1 + 55 * (stage + 1));
        assert_eq!(sender.poll_timeout(), Some(due));
        sender.handle_timeout(due);
        if stage >= 5 {
            expected.1 += 40 * MBPS;
        }
        expected.0 = (expected.0 + expected.1).div_ceil(2);
        assert_eq!(rates(&sender), expected, "stage {stage}");
    }
    assert_eq!(expected.1, 20_000 * MBPS + 35 * 40 * MBPS);
}

#[test]
fn past_both_counters_the_target_grows_by_more_each_time() {
    let mut sender = sender("byte_reset = \"1 MB\"\nstages = 2");
    sender.on_notification(&CNP, us(0));
    sender.on_notification(&CNP, us(0));
    let mut targets = vec![sender.target];
    for stage in 1..=6 {
        let now = us(55 * stage);
        // The last bit of the frame that fills the counter leaves as the timer rings.
        sender.on_transmit(Bytes::new(1_000_000), now);
        sender.handle_timeout(now);
        targets.push(sender.target);
    }
    // Octets count before the timer; each sees the stages before its own. By octets and by time:
    // (0,0) (1,0) (1,1) (2,1) (2,2) (3,2) (3,3)→i=1 (4,3)→1 (4,4)→2 (5,4)→2 (5,5)→3 (6,5)→3
    let grown: Vec<u64> = targets.windows(2).map(|two| (two[1] - two[0]) / MBPS).collect();
    assert_eq!(grown, [0, 40, 80, 800, 1_600, 2_400]);
}

#[test]
fn a_notification_starts_recovery_anew() {
    let mut sender = sender("");
    sender.on_notification(&CNP, us(0));
    sender.on_transmit(Bytes::new(9_999_999), us(10));
    sender.handle_timeout(us(55 * 4));
    sender.on_notification(&CNP, us(230));
    let Recovery { by_time, by_bytes, octets, time_at, bytes_at } = sender.recovery;
    assert_eq!((by_time, by_bytes, octets), (0, 0, 0));
    assert_eq!((time_at, bytes_at), (us(230 + 55), Instant::NEVER));
}

#[test]
fn the_rate_comes_back_to_the_line_and_then_nobody_wakes() {
    let mut sender = sender("");
    sender.on_notification(&CNP, us(0));
    let mut wakes = 0;
    while let Some(due) = sender.poll_timeout() {
        assert!(sender.current < LINE && sender.target <= LINE);
        sender.handle_timeout(due);
        wakes += 1;
    }
    assert!(sender.is_released());
    assert_eq!(rates(&sender), (LINE, LINE));
    assert_eq!(wakes, 35, "a gap of 20 Gb/s is below a bit/s after so many halvings");
}

#[test]
fn no_cut_goes_below_the_least_rate() {
    let mut sender = sender("");
    for n in 0..100 {
        sender.on_notification(&CNP, us(n));
    }
    assert_eq!(sender.current, LINE / 400);
}

/// ROCE-12: what the first CNP does, by profile.
#[test]
fn a_first_notification_cuts_at_once_or_at_the_end_of_its_period() {
    let mut paper = sender("profile = \"paper\"");
    paper.on_notification(&CNP, us(3));
    assert_eq!(rates(&paper), (LINE / 2, LINE));

    for (profile, alpha) in [("hpcc", (255u64.pow(4), 256u64.pow(4))), ("cx", (1_004, 1_024))] {
        let mut sender = sender(&format!("profile = \"{profile}\""));
        sender.on_notification(&CNP, us(3));
        assert_eq!((rates(&sender), sender.alpha.get()), ((LINE, LINE), ONE));
        assert_eq!(sender.poll_timeout(), Some(us(7)), "the rate is kept for a period");
        sender.handle_timeout(us(7));
        // Four ticks of α without a CNP since the first.
        let half = (u128::from(alpha.0) << PLACES) / u128::from(alpha.1) / 2;
        let expected = share(LINE, ONE - half as u64);
        assert!(sender.current.abs_diff(expected) <= 1, "{} for {expected}", sender.current);
    }
    let mut set = sender("profile = \"cx\"\nfirst_cnp_rate = 0.25");
    set.on_notification(&CNP, us(3));
    assert_eq!(rates(&set), (LINE / 4, LINE / 4));
}

#[test]
fn several_notifications_of_one_period_cut_once() {
    let mut sender = sender("profile = \"hpcc\"");
    sender.on_notification(&CNP, us(0));
    sender.handle_timeout(us(4));
    let before = sender.current;
    for n in [4, 5, 6, 7] {
        sender.on_notification(&CNP, us(n));
    }
    assert_eq!((sender.current, sender.poll_timeout()), (before, Some(us(8))));
    sender.handle_timeout(us(8));
    assert!(sender.current < before);
    let after = sender.current;
    sender.handle_timeout(us(100));
    assert_eq!(sender.current, after, "periods without a CNP cut nothing");
}

#[test]
fn a_target_that_is_not_clamped_stays_until_there_was_an_increase() {
    let mut sender = sender("clamp_target = \"after-increase\"");
    sender.on_notification(&CNP, us(0));
    sender.on_notification(&CNP, us(1));
    assert_eq!(rates(&sender), (LINE / 4, LINE));
    sender.handle_timeout(us(56));
    let increased = sender.current;
    sender.on_notification(&CNP, us(57));
    assert_eq!(sender.target, increased);
}

#[test]
fn flat_growth_is_additive_once_and_then_hyper() {
    let mut sender = sender("profile = \"hpcc\"\nstages = 2");
    sender.on_notification(&CNP, us(0));
    sender.handle_timeout(us(4));
    sender.settings.clamp_target = ClampTarget::Always;
    sender.cut(us(4));
    let mut targets = vec![sender.target];
    for stage in 1..=6 {
        sender.handle_timeout(us(4 + 900 * stage));
        targets.push(sender.target);
    }
    let grown: Vec<u64> = targets.windows(2).map(|two| (two[1] - two[0]) / MBPS).collect();
    assert_eq!(grown, [0, 0, 50, 100, 100, 100]);
}

/// ROCE-13: octets in any window of length w are at most rate·w and one frame.
#[test]
fn no_window_holds_more_than_its_share_and_one_frame() {
    for part in [1, 10, 50] {
        let mut sender = sender("");
        sender.current = LINE * part / 100;
        let on_line = FRAME.time_at(BitRate::gbps(40));
        let (mut start, mut starts) = (Instant::ZERO, Vec::new());
        for n in 0..2_000u64 {
            starts.push(start);
            let end = start + on_line;
            sender.on_transmit(FRAME, end);
            let Permission::At(next) = sender.may_send_at(Some(end)) else { panic!("stopped") };
            // Now and then the flow has nothing to send, or is paused: that is not banked.
            start = next + Duration::from_us(if n % 50 == 49 { 17 } else { 0 });
        }
        let period = FRAME.time_at(BitRate::new(sender.current).unwrap());
        for (n, from) in starts.iter().enumerate() {
            for (m, to) in starts.iter().enumerate().skip(n) {
                // From the first bit of frame n to just after the first bit of frame m.
                let frames_but_one = (m - n) as u64;
                assert!(to.since(*from) >= period * frames_but_one);
                if m > n + 60 {
                    break;
                }
            }
        }
        let span = starts[49].since(starts[0]);
        assert_eq!(span, period * 49, "and no less than its share while it has something to send");
    }
}

#[test]
fn a_new_flow_starts_at_the_lines_rate() {
    let sender = sender("");
    assert_eq!(sender.may_send_at(Some(us(1))), Permission::At(us(1)));
    let state = sender.state();
    assert_eq!((state.rate.get(), state.gap, state.scalar), (LINE, Duration::ZERO, 1_000));
    assert!(sender.is_released() && sender.poll_timeout().is_none());
}

#[test]
fn a_notification_without_becn_says_nothing() {
    let mut sender = sender("");
    let silent = TransportNote { becn: false, ..TransportNote::becn(Travel::Cnp) };
    assert_eq!(sender.on_notification(&silent.into(), us(0)), Effect::Refused);
    assert!(sender.is_released());
}

#[test]
fn a_late_call_makes_up_for_what_it_missed_in_order() {
    let (mut late, mut prompt) = (sender(""), sender(""));
    for sender in [&mut late, &mut prompt] {
        sender.on_notification(&CNP, us(0));
    }
    for n in 1..=20 {
        prompt.handle_timeout(us(55 * n));
    }
    late.handle_timeout(us(55 * 20));
    assert_eq!(rates(&late), rates(&prompt));
    assert_eq!(late.alpha.get(), prompt.alpha.get());
}

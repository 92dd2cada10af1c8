//! The campaigns ([`pausebed_tests::campaign`]): long streams both ways.

use crate::bench::Bench;
use crate::laboratory::alone;
use crate::verbs_of_both::{MTU_1024, datagrams_each_way, ends, impair, length_of, one, patient};
use pausebed_tests::campaign::Campaign;
use testbed::verbs::stream::{Plan, SLOTS, VERBS, Verb, memory_for};
use testbed::verbs::{Fault, connect, datagrams};
use verbs::attributes::Service;

/// Messages of a part.
const PART: u64 = 20 * SLOTS as u64;

/// Streams of verbs, each with its number of messages, both ways.
fn campaign(name: &str, verbs: &[(Verb, u64)], length: u32, impaired: bool) {
    let _alone = alone();
    let mut campaign = Campaign::open(name);
    let Some(bench) = Bench::start(&[], MTU_1024) else { return };
    if impaired {
        impair(&bench, "h1:1");
        impair(&bench, "s1:1");
    }
    for way in 0..2 {
        for (verb, messages) in verbs {
            let parts = messages.div_ceil(PART);
            for part in 0..parts {
                let title = format!("{way} {verb:?} {part} of {parts}");
                campaign.part(&title, || {
                    let mut ends = ends(&bench, (Service::Rc, true), memory_for(length));
                    let [linux, nic] = &mut ends;
                    // Queue pairs are new for each part, and begin just before PSNs wrap.
                    connect(linux, nic, &patient(3)).unwrap_or_else(|Fault(why)| panic!("{why}"));
                    let (from, to) = if way == 0 { (linux, nic) } else { (nic, linux) };
                    let left = PART.min(messages - part * PART);
                    let messages = left.next_multiple_of(u64::from(SLOTS));
                    let length = length_of(*verb, length);
                    one(&Plan { verb: *verb, messages, length, first: 0 }, from, to);
                    format!("{messages} messages")
                });
            }
        }
    }
    bench.stop();
    campaign.end();
}

#[test]
#[ignore = "slow: a million messages each way"]
fn a_million_messages_pass_each_way() {
    campaign("million", &[(Verb::SendImmediate, 1_000_000)], 64, false);
}

#[test]
#[ignore = "slow: a hundred thousand messages for each verb and way"]
fn a_hundred_thousand_messages_of_each_verb_pass_each_way_with_losses() {
    let messages = |verb| if verb == Verb::Read { 10_000 } else { 100_000 };
    let verbs = VERBS.map(|verb| (verb, messages(verb)));
    campaign("losses", &verbs, 256, true);
}

#[test]
#[ignore = "slow: a hundred thousand datagrams each way"]
fn a_hundred_thousand_datagrams_are_counted_each_way_with_losses() {
    let _alone = alone();
    let mut campaign = Campaign::open("datagrams");
    let Some(bench) = Bench::start(&[], MTU_1024) else { return };
    bench.keep_neighbour();
    impair(&bench, "h1:1");
    impair(&bench, "s1:1");
    let parts = 10;
    for part in 0..parts {
        let title = format!("{part} of {parts}");
        campaign.part(&title, || {
            let mut ends = ends(&bench, (Service::Ud, true), datagrams::memory_for(1000));
            let [linux, nic] = &mut ends;
            datagrams::open([linux, nic]).unwrap_or_else(|Fault(why)| panic!("{why}"));
            datagrams_each_way(&bench, &mut ends, 10_112);
            "10112 datagrams each way".to_owned()
        });
    }
    bench.stop();
    campaign.end();
}

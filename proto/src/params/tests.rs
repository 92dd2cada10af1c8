//! Typed reading: defaults, defaults by a word, units, and every error at once.

use super::*;
use crate::units::{Bytes, Duration};

crate::words! {
    /// A profile.
    enum Profile {
        /// The first.
        Paper = "paper",
        /// The second.
        Firmware = "firmware",
    }
}

crate::params! {
    /// Numbers of a test.
    struct Numbers {
        /// Which set of defaults
        /// is in force.
        profile: Profile = Profile::KIND, Default("paper"), "a paper";
        /// A time.
        timer: Duration = Span, By("profile", &["55 us", "300 us"]);
        /// A share.
        share: Millionths = Real(0.0, 1.0), Default("0.5");
        /// A limit.
        limit: Option<Bytes> = Octets, Else("the buffer");
    }
}

fn table(text: &str) -> Table {
    text.parse().expect("TOML")
}

#[test]
fn a_missing_key_has_its_default_and_that_may_depend_on_a_word() {
    let paper: Numbers = defaults();
    let expected = (Profile::Paper, Duration::from_us(55), Millionths(500_000), None);
    assert_eq!((paper.profile, paper.timer, paper.share, paper.limit), expected);
    let other: Numbers = read(&table("profile = \"firmware\"\nlimit = \"1 KB\"")).expect("sound");
    assert_eq!((other.timer, other.limit), (Duration::from_us(300), Some(Bytes::new(1_000))));
}

#[test]
fn a_key_has_the_doc_comment_of_its_field_as_meaning() {
    let [profile, timer, ..] = Numbers::KEYS else { panic!("four keys") };
    assert_eq!((profile.name, profile.source), ("profile", "a paper"));
    assert_eq!(profile.about, "Which set of defaults is in force.");
    let groups = [Numbers::KEYS];
    assert_eq!(timer.default_in_words(&groups), "55 us (paper), 300 us (firmware)");
    assert_eq!(markdown(&groups).lines().count(), 2 + Numbers::KEYS.len());
}

#[test]
fn every_wrong_parameter_is_reported() {
    let table = table("profil = 1\ntimer = \"0 us\"\nshare = 2\nlimit = 5");
    let groups = [Numbers::KEYS];
    let mut reader = Reader::new(&table, &groups);
    let read = Numbers::read(&mut reader);
    let errors = reader.finish(read).expect_err("four errors");
    let keys: Vec<&str> = errors.iter().map(|error| error.key.as_str()).collect();
    assert_eq!(keys, ["limit", "profil", "share", "timer"]);
    assert_eq!(errors[1].to_string(), "profil: unknown key: did you mean \"profile\"?");
}

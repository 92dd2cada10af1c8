//! The pages of the documents that explain keys, commands and backends. Errors name them.

/// A key and all keys in it, a command, or a backend, and its page. The longest key that fits counts.
pub const PAGES: &[(&str, &str)] = &[
    ("fabric.nic", "docs/schemes.md"),
    ("fabric.route", "docs/reference/routing.md"),
    ("fabric.routing", "docs/reference/routing.md"),
    ("fabric.switch", "docs/schemes.md"),
    ("fabric.switch.watchdog", "docs/book/storms.md"),
    ("figure", "docs/reference/report.md"),
    ("foreign", "docs/tasks/hosts.md"),
    ("host", "docs/tasks/hosts.md"),
    ("lab.attach", "docs/tasks/netns.md"),
    ("lab.managed", "docs/tasks/manage.md"),
    ("run.capture", "docs/tasks/captures.md"),
    ("run.pace", "docs/book/ci.md"),
    ("say", "docs/reference/report.md"),
    ("scheme", "docs/schemes.md"),
    ("serve", "docs/tasks/hosts.md"),
    ("trace", "docs/reference/trace.md"),
    ("tune", "docs/tasks/tune.md"),
    ("--backend compose", "docs/book/containers.md"),
    ("--backend netns", "docs/book/testbed.md"),
    ("--backend remote", "docs/book/containers.md"),
    ("pausebed capture", "docs/tasks/captures.md"),
    ("pausebed check", "docs/book/device.md"),
    ("pausebed compose", "docs/book/containers.md"),
    ("pausebed console", "docs/tasks/hosts.md"),
    ("pausebed decode", "docs/book/encoder.md"),
    ("pausebed down", "docs/tasks/labs.md"),
    ("pausebed encode", "docs/book/encoder.md"),
    ("pausebed export", "docs/tasks/export.md"),
    ("pausebed fault", "docs/tasks/labs.md"),
    ("pausebed replay", "docs/tasks/captures.md"),
    ("pausebed serve", "docs/tasks/watch.md"),
    ("pausebed set", "docs/tasks/labs.md"),
    ("pausebed show", "docs/tasks/labs.md"),
    ("pausebed sweep", "docs/tasks/sweep.md"),
    ("pausebed traffic", "docs/tasks/labs.md"),
    ("pausebed tune", "docs/tasks/tune.md"),
    ("pausebed up", "docs/tasks/labs.md"),
    ("pausebed verify", "docs/book/encoder.md"),
    ("pausebed vm", "docs/tasks/vm.md"),
    ("pausebed wireshark", "docs/tasks/wireshark.md"),
];

/// The page of a command or a backend.
pub fn of(topic: &str) -> Option<&'static str> {
    PAGES.iter().find(|(known, _)| *known == topic).map(|(_, page)| *page)
}

/// The page of a key of a scenario.
pub fn of_key(key: &str) -> &'static str {
    let holds = |known: &str| {
        key.strip_prefix(known).is_some_and(|rest| matches!(rest.bytes().next(), None | Some(b'.')))
    };
    let rows = PAGES.iter().filter(|(known, _)| holds(known));
    rows.max_by_key(|(known, _)| known.len()).map_or("docs/reference/scenario.md", |(_, page)| page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_page_is_there_and_every_key_is_one() {
        let schema = crate::schema();
        for (topic, page) in PAGES {
            let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
            assert!(file.is_file(), "{page}");
            if topic.contains(' ') {
                continue;
            }
            let mut part = &schema;
            for key in topic.split('.') {
                part = &part["properties"][key];
                assert!(part.is_object(), "{topic}");
            }
        }
    }

    #[test]
    fn the_longest_key_counts() {
        for (key, page) in [
            ("fabric.switch.watchdog.detection", "docs/book/storms.md"),
            ("fabric.switch.memory", "docs/schemes.md"),
            ("fabric.switching", "docs/reference/scenario.md"),
            ("", "docs/reference/scenario.md"),
        ] {
            assert_eq!(of_key(key), page, "{key}");
        }
        assert_eq!(of("--backend netns"), Some("docs/book/testbed.md"));
    }
}

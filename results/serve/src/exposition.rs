//! Merges the metrics of all daemons of a lab into one page for Prometheus.
//!
//! In the format the comments of a family appear once, before all its samples, and a series appears once. If several
//! daemons export the same series, for example the build, the first one counts.
//! Source: Prometheus, "Exposition formats", text-based format.

use std::collections::{BTreeMap, BTreeSet};

/// A family: its comments and its samples.
#[derive(Default)]
struct Family<'a> {
    comments: Vec<&'a str>,
    samples: Vec<&'a str>,
    series: BTreeSet<&'a str>,
}

/// Merges pages; families are in the order of their names.
pub fn merge(pages: &[String]) -> String {
    let mut families: BTreeMap<&str, Family<'_>> = BTreeMap::new();
    for page in pages {
        let mut current = "";
        for line in page.lines().filter(|line| !line.is_empty()) {
            if let Some(comment) = line.strip_prefix("# ") {
                current = comment.split(' ').nth(1).unwrap_or_default();
                let family = families.entry(current).or_default();
                if !family.comments.contains(&line) {
                    family.comments.push(line);
                }
            } else {
                let family = families.entry(current).or_default();
                let series = line.rsplit_once(' ').map_or(line, |(series, _)| series);
                if family.series.insert(series) {
                    family.samples.push(line);
                }
            }
        }
    }
    let lines = families.values().flat_map(|family| family.comments.iter().chain(&family.samples));
    lines.flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_of_two_daemons_is_announced_once() {
        let page = |node: &str, value: u32| {
            format!(
                "# HELP b of both\n# TYPE b counter\nb{{node=\"{node}\"}} {value}\n\
                 # HELP {node} of one\n# TYPE {node} gauge\n{node}{{x=\"#\"}} 1\n"
            )
        };
        let expected = "# HELP b of both\n# TYPE b counter\nb{node=\"z\"} 1\nb{node=\"a\"} 2\n";
        let text = merge(&[page("z", 1), page("a", 2)]);
        assert!(text.contains(expected), "{text}");
        assert!(
            text.starts_with("# HELP a of one\n") && text.ends_with("z{x=\"#\"} 1\n"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 10);
        assert_eq!(merge(&[page("z", 1), page("z", 1)]), merge(&[page("z", 1)]));
        assert_eq!(merge(&[]), "");
    }
}

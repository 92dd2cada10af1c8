//! The scenario files in the program: every file below `topo/scenarios`, so that none needs the repository.

use scenario::keyfile::variant::{self, Resolved};
use std::path::{Path, PathBuf};

/// Name and text of each file, sorted by name. A name is the path below `topo/scenarios` without `.toml`.
pub static SCENARIOS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));

/// The text of the file `name`.
pub fn find(name: &str) -> Option<&'static str> {
    let index = SCENARIOS.binary_search_by_key(&name, |(name, _)| *name).ok()?;
    Some(SCENARIOS[index].1)
}

/// The file `name`, with the files that it varies.
pub fn resolve(name: &str) -> Option<Resolved> {
    let mut open = |file: &Path| {
        let name = file.with_extension("");
        let text = name.to_str().and_then(find).ok_or("there is no such scenario")?;
        Ok(text.to_owned())
    };
    let resolved = variant::resolve(find(name)?, &PathBuf::from(format!("{name}.toml")), &mut open);
    Some(resolved.unwrap_or_else(|faults| panic!("{name} is part of the program: {faults}")))
}

/// The files called `name`, or below the folder `name`, and those on which they are based.
pub fn below(name: &str) -> Vec<(&'static str, &'static str)> {
    let name = name.trim_end_matches('/');
    let is_below = |other: &str| {
        other.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let mut found: Vec<_> = SCENARIOS.iter().copied().filter(|(name, _)| is_below(name)).collect();
    let mut next = 0;
    while let Some((name, text)) = found.get(next) {
        let base = base(name, text);
        found.extend(SCENARIOS.iter().filter(|(name, _)| base.as_deref() == Some(name)));
        next += 1;
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The purpose of a file: its first sentence.
pub fn purpose(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix('#'));
    let comment = lines.map(str::trim).take_while(|line| !line.is_empty());
    let comment = comment.collect::<Vec<_>>().join(" ");
    let is_end = |at: &usize| comment[at + 2..].starts_with(char::is_uppercase);
    let end = comment.match_indices(". ").map(|(at, _)| at).find(is_end);
    comment[..end.unwrap_or(comment.len())].trim_end_matches('.').to_owned()
}

/// The name of the scenario on which another, or a sweep, is based.
fn base(name: &str, text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("base "))?;
    let base = line.split('"').nth(1)?.strip_suffix(".toml")?;
    let mut folders: Vec<&str> = Path::new(name).parent()?.to_str()?.split('/').collect();
    for part in base.split('/') {
        match part {
            ".." => drop(folders.pop()),
            part => folders.push(part),
        }
    }
    Some(folders.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_paths_without_an_ending() {
        assert!(SCENARIOS.len() > 100, "{} files", SCENARIOS.len());
        assert!(SCENARIOS.is_sorted_by(|(a, _), (b, _)| a < b));
        assert!(find("pfister/demo-none").is_some_and(|text| text.starts_with("# ")));
        assert_eq!(find("pfister/demo"), None);
    }

    #[test]
    fn a_sweep_comes_with_its_base_and_a_folder_with_its_files() {
        let names = |name| below(name).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        let all = ["case1-partitioned-bcn", "case1-shared-bcn", "case1-shared-none", "sweeps/w"];
        assert_eq!(names("zhb/sweeps/w"), all.map(|name| format!("zhb/{name}")));
        assert_eq!(names("pfister/demo-none"), ["pfister/demo-none"]);
        assert!(names("pfister/").contains(&"pfister/large/fat128x8-case4-none"));
        assert!(names("pfi").is_empty());
        let bases = SCENARIOS.iter().filter_map(|(name, text)| base(name, text));
        assert!(bases.clone().count() > 50 && bases.clone().all(|base| find(&base).is_some()));
    }

    #[test]
    fn a_purpose_is_the_first_sentence_of_the_file() {
        assert_eq!(purpose("# Fig. 1\n# two. Three.\n\nx = 1\n"), "Fig. 1 two");
        assert!(SCENARIOS.iter().all(|(_, text)| purpose(text).len() > 10));
    }
}

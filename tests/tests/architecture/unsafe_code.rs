//! Unsafe code says why it is sound, and names the test that executes it.

use super::{is_test, sources};
use std::collections::BTreeSet;

/// Lines between a comment and the unsafe code of its statement, at most.
const BETWEEN: usize = 4;

/// The name of the function that a line begins.
fn function(line: &str) -> Option<&str> {
    let (_, after) = line.split_once("fn ")?;
    after.split(['(', '<']).next()
}

/// The names of all tests of the repository.
fn tests() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (_, text) in sources() {
        let mut lines = text.lines();
        while lines.any(|line| line.trim() == "#[test]" || line.trim() == "#[tokio::test]") {
            names.extend(lines.find_map(function).map(str::to_owned));
        }
    }
    names
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

/// Whether a line of code begins an unsafe block, function or implementation.
fn is_unsafe(line: &str) -> bool {
    let begins = |after: &str| ["{", "fn ", "impl"].iter().any(|word| after.starts_with(word));
    !is_comment(line) && line.split("unsafe ").skip(1).any(begins)
}

/// Unsafe code of the product part of a file: the number of its line, and the comment above it.
fn unsafe_code(text: &str) -> Vec<(usize, String)> {
    let product = text.split("\nmod tests {").next().unwrap_or_default();
    let lines: Vec<&str> = product.lines().collect();
    let comment = |at: usize| {
        let above = (at.saturating_sub(BETWEEN + 1)..at).rev();
        let mut above = above.take_while(|above| !is_unsafe(lines[*above]));
        let Some(last) = above.find(|above| is_comment(lines[*above])) else {
            return String::new();
        };
        let first = (0..=last).rev().take_while(|above| is_comment(lines[*above])).last();
        let words = lines[first.unwrap_or(last)..=last].iter();
        words.map(|line| line.trim_start().trim_start_matches('/')).collect()
    };
    let found = (0..lines.len()).filter(|at| is_unsafe(lines[*at]));
    found.map(|at| (at + 1, comment(at))).collect()
}

#[test]
fn unsafe_code_names_the_test_that_executes_it() {
    let tests = tests();
    let (mut found, mut faults) = (0, Vec::new());
    for (name, text) in sources().into_iter().filter(|(name, _)| !is_test(name)) {
        for (line, comment) in unsafe_code(&text) {
            found += 1;
            let named = comment.split_once("Test: ").map(|(_, rest)| rest);
            let test = named.and_then(|rest| rest.split(['.', ' ']).next()).unwrap_or_default();
            if !(comment.contains("SAFETY: ") || comment.contains("# Safety")) {
                faults.push(format!("{name}:{line} does not say why it is safe"));
            } else if !tests.contains(test) {
                faults.push(format!("{name}:{line} names the test {test:?}, which does not exist"));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(found >= 100, "only {found} pieces of unsafe code were found");
}

#[test]
fn unsafe_code_is_found_with_its_comment() {
    let text = "// SAFETY: a. Test: one.\n//\n// b\nlet x =\n    unsafe { y };\nunsafe { z };\n\
                type F = unsafe extern \"C\" fn();\nfn f() {}\n// none\nunsafe impl Send for A {}\n\
                \nmod tests {\nunsafe { t }\n}";
    let found = unsafe_code(text);
    let lines: Vec<usize> = found.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [5, 6, 10]);
    assert_eq!(found[0].1, " SAFETY: a. Test: one. b");
    assert_eq!((found[1].1.as_str(), found[2].1.as_str()), ("", " none"));
    assert_eq!(function("    fn name<T>(a: T) {"), Some("name"));
}

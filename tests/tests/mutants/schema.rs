//! Drawn mutants in one build: a function that has mutants has its body once more for each, and the environment chooses.
//!
//! A build for each would take minutes; so all take one. Where a function returns an opaque type, the closure around the mutant
//! takes its place. Mutants without such a body need a build of their own.

use super::scratch::{Drawn, offset};
use std::collections::BTreeMap;
use std::ops::Range;

/// What stands before the body of a mutant.
const MARK: &str = "/*mutant ";

/// The mark of a mutant.
pub fn mark(number: usize) -> String {
    format!("{MARK}{number}*/ ")
}

/// What may stand before `fn`.
const WORDS: [&str; 7] = ["pub", "super", "crate", "const", "async", "unsafe", ""];

/// The body around the octets `within` of the innermost function, or closure, of which `begins` holds. It has no braces. The
/// text must be as rustfmt leaves it: a body ends with the first line that is a brace indented as the line of its beginning is.
fn body(text: &str, within: &Range<usize>, begins: fn(&str) -> bool) -> Option<Range<usize>> {
    let lines: Vec<(usize, &str)> = text
        .split_inclusive('\n')
        .scan(0, |at, line| {
            let begin = *at;
            *at += line.len();
            Some((begin, line.trim_end()))
        })
        .collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let above = lines.partition_point(|(begin, _)| *begin <= within.start);
    (0..above).rev().filter(|row| begins(lines[*row].1)).find_map(|row| {
        let margin = indent(lines[row].1);
        let mut rest = lines[row..].iter();
        let (begin, line) = rest.find(|(_, line)| indent(line) == margin && line.ends_with('{'))?;
        let (end, _) =
            rest.find(|(_, line)| indent(line) == margin && line.trim_start().starts_with('}'))?;
        let body = begin + line.len()..*end;
        (body.start <= within.start && within.end <= body.end).then_some(body)
    })
}

fn is_function(line: &str) -> bool {
    let before = line.split_once("fn ").map(|(before, _)| before.split(['(', ')', ' ']));
    before.is_some_and(|mut words| words.all(|word| WORDS.contains(&word)))
}

fn is_closure(line: &str) -> bool {
    line.ends_with("| {")
}

/// What is there twice for a mutant: the body of its function, or of its closure where the function returns an opaque type.
fn doubled(text: &str, within: &Range<usize>) -> Option<Range<usize>> {
    let function = body(text, within, is_function)?;
    let signature = text[..function.start].rfind("fn ").map_or("", |at| {
        let line = text[..at].rfind('\n').map_or(0, |line| line + 1);
        &text[line..function.start]
    });
    match (signature.contains("-> impl "), signature.contains("const fn ")) {
        (_, true) => None,
        (true, _) => body(text, within, is_closure).filter(|body| body.start > function.start),
        _ => Some(function),
    }
}

/// The text of a file with its mutants, each of which `FAULT(number)` switches on, and the numbers of those left out.
pub fn insert(text: &str, mutants: &[(usize, &Drawn)]) -> (String, Vec<usize>) {
    let mut bodies: BTreeMap<usize, (usize, String)> = BTreeMap::new();
    let mut left_out = Vec::new();
    for (number, mutant) in mutants {
        let place = mutant.place(text);
        let Some(body) = doubled(text, &place) else {
            left_out.push(*number);
            continue;
        };
        let mutated =
            [&text[body.start..place.start], &mutant.is, &text[place.end..body.end]].concat();
        let (_, before) = bodies.entry(body.start).or_insert((body.end, String::new()));
        *before += &format!("{}if FAULT({number}) {{ {mutated} }} else ", mark(*number));
    }
    let mut whole = text.to_owned();
    for (start, (end, before)) in bodies.into_iter().rev() {
        whole.replace_range(start..end, &format!(" {before} {{ {} }}\n", &text[start..end]));
    }
    (whole, left_out)
}

/// The mutants in which the compiler found errors, by number, with the first error of each. `said` has the place of an error in
/// a line ` --> FILE:LINE:COLUMN` below it.
pub fn blamed(said: &str, text_of: impl Fn(&str) -> String) -> BTreeMap<usize, String> {
    let mut found = BTreeMap::new();
    let mut error = None;
    for line in said.lines() {
        if line.starts_with("error") || line.starts_with("warning") {
            error = line.starts_with("error").then_some(line);
        }
        let Some(place) = line.trim_start().strip_prefix("--> ") else { continue };
        let Some(error) = error.take() else { continue };
        let mut parts = place.split(':');
        let (Some(file), Some(row)) = (parts.next(), parts.next()) else { continue };
        let text = text_of(file);
        let end = offset(&text, [row.parse::<usize>().expect("a line") + 1, 1]);
        let mark = text[..end].rfind(MARK).map(|mark| &text[mark + MARK.len()..]);
        if let Some(number) = mark.and_then(|mark| mark.split_once("*/")?.0.parse().ok()) {
            found.entry(number).or_insert_with(|| error.to_owned());
        }
    }
    found
}

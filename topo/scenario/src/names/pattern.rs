//! Patterns over names: `*`, `?`, and ranges of numbers in brackets.

use crate::keyfile::problem::Complaint;

/// A parsed pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Letter(char),
    AnyLetter,
    Anything,
    Numbers(Vec<(u64, u64)>),
}

impl Pattern {
    /// Parses `text`.
    ///
    /// # Errors
    /// If brackets do not close, or hold something else than numbers and ranges.
    pub fn parse(text: &str) -> Result<Pattern, Complaint> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(letter) = rest.chars().next() {
            rest = &rest[letter.len_utf8()..];
            pieces.push(match letter {
                '*' => Piece::Anything,
                '?' => Piece::AnyLetter,
                '[' => {
                    let (inside, after) = rest.split_once(']').ok_or_else(|| malformed(text))?;
                    rest = after;
                    Piece::Numbers(ranges(inside).ok_or_else(|| malformed(text))?)
                }
                other => Piece::Letter(other),
            });
        }
        if pieces.is_empty() { Err(malformed(text)) } else { Ok(Pattern(pieces)) }
    }

    /// Whether the whole of `name` fits.
    pub fn matches(&self, name: &str) -> bool {
        fits(&self.0, name)
    }

    /// The first name a plain range promises (`h[0-3]`) that is not among `names`.
    pub fn unmatched<'a>(&self, names: impl Iterator<Item = &'a str>) -> Option<String> {
        let known: std::collections::BTreeSet<&str> = names.collect();
        let mut promised = vec![String::new()];
        for piece in &self.0 {
            promised = match piece {
                Piece::Letter(letter) => {
                    promised.into_iter().map(|name| format!("{name}{letter}")).collect()
                }
                Piece::Numbers(ranges) => append_numbers(&promised, ranges, known.len()),
                Piece::AnyLetter | Piece::Anything => return None,
            };
        }
        promised.into_iter().find(|name| !known.contains(name.as_str()))
    }
}

/// Every name with every number after it, but no more than it takes to promise one node too many:
/// a range of billions costs nothing.
fn append_numbers(names: &[String], ranges: &[(u64, u64)], nodes: usize) -> Vec<String> {
    let numbers = || ranges.iter().flat_map(|(first, last)| *first..=*last);
    let all = names.iter().flat_map(|name| numbers().map(move |n| format!("{name}{n}")));
    all.take(nodes + 1).collect()
}

fn malformed(text: &str) -> Complaint {
    let hint = "a name, with *, ? or a range: \"h*\", \"h[0-30]\", \"h[0-3,8]\"";
    Complaint::new(format!("{text:?} is not a name or pattern"), hint)
}

fn ranges(inside: &str) -> Option<Vec<(u64, u64)>> {
    inside
        .split(',')
        .map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let range = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            (range.0 <= range.1).then_some(range)
        })
        .collect()
}

fn fits(pieces: &[Piece], name: &str) -> bool {
    let Some((piece, rest)) = pieces.split_first() else { return name.is_empty() };
    let ends = || name.char_indices().map(|(at, _)| at).chain([name.len()]);
    let mut letters = name.chars();
    match piece {
        Piece::Letter(letter) => letters.next() == Some(*letter) && fits(rest, letters.as_str()),
        Piece::AnyLetter => letters.next().is_some() && fits(rest, letters.as_str()),
        Piece::Anything => ends().any(|at| fits(rest, &name[at..])),
        Piece::Numbers(ranges) => ends().any(|at| {
            let number: Option<u64> = name[..at].parse().ok();
            let plain = number.is_some_and(|number| number.to_string() == name[..at]);
            let in_range =
                |n: u64| ranges.iter().any(|(first, last)| (*first..=*last).contains(&n));
            plain && number.is_some_and(in_range) && fits(rest, &name[at..])
        }),
    }
}

//! Finds every place of the product that adds to a counter, and every reason under which a frame is dropped.
//!
//! A statement is the increment of a counter if
//! * it adds with `+=` to a field, or through a reference, that only grows: its file nowhere takes from a field of this name
//!   (`-=`) nor sets it (`=`). An integer of a type of the same file that is serialized may be corrected;
//! * or it calls, for the effect alone, `count` with arguments, `count_…`, `record`, `merge`, `fetch_add`, or `add` of totals or
//!   tallies.
//!
//! So loop counters and sums are none, because they are local, and levels, credits and cursors are none, because they are taken
//! from or set. `counters.toml` names what grows and is no counter all the same, each with the reason.
//!
//! A drop reason is a value `DropReason::…`: not a pattern, not compared, not in a list, which is what a view adds up.

use super::laboratory::in_repository;
use super::schema;
use proto::counters::DropReason;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;

/// The folders of code with counters, and the libraries.
pub const FOLDERS: [(&str, &str); 7] = [
    ("proto/src", "proto"),
    ("proto/management/src", "management"),
    ("switchd/src", "switchd"),
    ("nicd/src", "nicd"),
    ("emulation/src", "emulation"),
    ("emulation/capture/src", "capture"),
    ("emulation/daemon/src", "daemon"),
];

/// A statement that grows and is no counter.
#[derive(Deserialize)]
struct Exempt {
    file: String,
    /// It begins so.
    statement: String,
}

#[derive(Deserialize)]
struct AllExempt {
    exempt: Vec<Exempt>,
}

/// A place, and the mutant of it.
#[derive(Clone, Debug)]
pub struct Mutant {
    pub file: String,
    pub range: Range<usize>,
    /// Line and column of its beginning, and its text.
    pub name: String,
    pub change: Change,
}

#[derive(Clone, Copy, Debug)]
pub enum Change {
    Delete,
    Exchange(DropReason),
}

/// The mutants of the product, by file. Also the number of statements in `counters.toml`.
pub fn all() -> (Vec<Mutant>, usize) {
    let text =
        fs::read_to_string(in_repository("tests/tests/chaos/counters.toml")).expect("a file");
    let AllExempt { exempt } = toml::from_str(&text).expect("rows");
    let mut files = Vec::new();
    FOLDERS.iter().for_each(|(folder, _)| below(folder, &mut files));
    files.sort();
    let mut mutants: Vec<Mutant> = files
        .iter()
        .flat_map(|file| {
            let text = fs::read_to_string(in_repository(file)).expect("a file of the product");
            of_text(file, &text)
        })
        .collect();
    let mut idle = Vec::new();
    for Exempt { file, statement } in &exempt {
        let before = mutants.len();
        mutants.retain(|one| one.file != *file || !one.statement().starts_with(statement));
        if mutants.len() == before {
            idle.push((file, statement));
        }
    }
    assert!(idle.is_empty(), "delete these rows of counters.toml: {idle:#?}");
    (mutants, exempt.len())
}

/// The files of the product below a folder.
fn below(folder: &str, files: &mut Vec<String>) {
    for entry in fs::read_dir(in_repository(folder)).expect("a folder").flatten() {
        let name = entry.file_name().into_string().expect("a name");
        let path = format!("{folder}/{name}");
        match entry.path().is_dir() {
            true if name == "tests" => {}
            true => below(&path, files),
            false if name == "tests.rs" || !name.ends_with(".rs") => {}
            false => files.push(path),
        }
    }
}

impl Mutant {
    /// What surrounds it in a build in which the environment chooses mutant `number`.
    fn around(&self, number: usize) -> [String; 2] {
        let mark = schema::mark(number);
        match self.change {
            Change::Delete => {
                // It returns what was before.
                let end = if self.name.contains(".fetch_add(") { "; }" } else { " }" };
                [format!("{mark}if !FAULT({number}) {{ "), end.to_owned()]
            }
            Change::Exchange(other) => [
                format!("({mark}if FAULT({number}) {{ DropReason::{other:?} }} else {{ "),
                " })".to_owned(),
            ],
        }
    }

    fn new(file: &str, text: &str, range: Range<usize>, change: Change) -> Mutant {
        let line = text[..range.start].matches('\n').count() + 1;
        let column = range.start - text[..range.start].rfind('\n').map_or(0, |at| at + 1) + 1;
        let statement = text[range.clone()].split_whitespace().collect::<Vec<_>>().join(" ");
        let name = format!("{line}:{column} {statement}");
        Mutant { file: file.to_owned(), range, name, change }
    }

    fn statement(&self) -> &str {
        self.name.split_once(' ').map_or("", |(_, statement)| statement)
    }

    /// Line and column.
    pub fn place(&self) -> &str {
        self.name.split_once(' ').map_or("", |(place, _)| place)
    }
}

/// The text of a file with mutants, each of which `FAULT(number)` switches on.
pub fn insert(text: &str, mutants: &[(usize, &Mutant)]) -> String {
    let mut inserts: Vec<(usize, String)> = Vec::new();
    for (number, mutant) in mutants {
        let [before, after] = mutant.around(*number);
        inserts.extend([(mutant.range.start, before), (mutant.range.end, after)]);
    }
    inserts.sort_by_key(|(at, _)| *at);
    let mut whole = text.to_owned();
    inserts.iter().rev().for_each(|(at, insert)| whole.insert_str(*at, insert));
    whole
}

/// The library that a file belongs to.
pub fn library(file: &str) -> &'static str {
    let is_in = |(folder, _): &&(&str, &str)| file.starts_with(&format!("{folder}/"));
    FOLDERS.iter().find(is_in).expect("a file of the product").1
}

/// The mutants of a file.
fn of_text(file: &str, text: &str) -> Vec<Mutant> {
    let code = product(text);
    let mut found: Vec<Mutant> = additions(&code)
        .into_iter()
        .chain(calls(&code))
        .map(|range| Mutant::new(file, text, range, Change::Delete))
        .collect();
    let reasons = reasons(&code).into_iter();
    found.extend(
        reasons.map(|(range, other)| Mutant::new(file, text, range, Change::Exchange(other))),
    );
    found.sort_by_key(|mutant| mutant.range.start);
    found
}

/// The text with blanks for comments and tests, so that offsets stay.
fn product(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut of_tests: Option<usize> = None;
    for line in text.split_inclusive('\n') {
        let (words, margin) = (line.trim(), line.len() - line.trim_start().len());
        if words == "#[cfg(test)]" {
            of_tests = Some(margin);
        }
        let kept = match (of_tests, line.find("//")) {
            (Some(_), _) => 0,
            (None, at) => at.unwrap_or(line.len()),
        };
        if of_tests == Some(margin) && words.ends_with(['}', ';']) {
            of_tests = None;
        }
        code.push_str(&line[..kept]);
        code.extend(line[kept..].bytes().map(|octet| if octet == b'\n' { '\n' } else { ' ' }));
    }
    code
}

/// Statements that add to a field which only grows.
fn additions(code: &str) -> Vec<Range<usize>> {
    const SIGN: &str = " += ";
    let corrected = serialized(code);
    let statement = |(at, _): (usize, &str)| {
        let begin = begin(code, at);
        let mut place = &code[begin..at];
        while place.ends_with([']', ')', '}']) {
            place = code[begin..back(code, begin + place.len() - 1, |_| false) - 1].trim_end();
        }
        let field = match (place.rfind('.'), place.starts_with('*')) {
            (Some(dot), _) => &place[dot..],
            (None, true) => place,
            (None, false) => return None,
        };
        let is_counter = corrected.contains(&field[1..]) || only_grows(code, field);
        let end = code[..ahead(code, at + SIGN.len(), b";,")].trim_end().len();
        is_counter.then_some(begin..end)
    };
    code.match_indices(SIGN).filter_map(statement).collect()
}

/// Calls that count.
fn calls(code: &str) -> Vec<Range<usize>> {
    let statement = |(dot, _): (usize, &str)| {
        let (method, _) = code[dot + 1..].split_once('(')?;
        if !method.bytes().all(|octet| octet == b'_' || octet.is_ascii_alphanumeric()) {
            return None;
        }
        let open = dot + 1 + method.len();
        let end = ahead(code, open + 1, &[]) + 1;
        let mut begin = begin(code, dot);
        if code[begin..].starts_with("return ") {
            begin += "return ".len();
        }
        let receiver = &code[begin..dot];
        let counts = match method {
            "count" => open + 2 < end,
            "record" | "merge" | "fetch_add" => true,
            "add" => receiver.ends_with("totals") || receiver.contains("tally."),
            _ => method.starts_with("count_"),
        };
        let for_effect = code[end..].trim_start().starts_with([';', ',', '}', ')'])
            && !code[..begin].trim_end().ends_with(['(', ',', '['])
            && ![" = ", "let ", "if ", "match "].iter().any(|word| receiver.contains(word));
        (counts && for_effect).then_some(begin..end)
    };
    code.match_indices('.').filter_map(statement).collect()
}

/// Drop reasons, each with the next one of the same kind.
fn reasons(code: &str) -> Vec<(Range<usize>, DropReason)> {
    const TYPE: &str = "DropReason::";
    let value = |(at, _): (usize, &str)| {
        let rest = &code[at + TYPE.len()..];
        let name = &rest[..rest.find(|octet: char| !octet.is_ascii_alphanumeric())?];
        let range = at..at + TYPE.len() + name.len();
        let is_it = |reason: &&DropReason| format!("{reason:?}") == name;
        let mut all = DropReason::ALL.iter().cycle();
        let reason = all.by_ref().take(DropReason::ALL.len()).find(is_it)?;
        let other = *all.find(|other| other.is_end_to_end() == reason.is_end_to_end())?;
        let (before, after) = (code[..at].trim_end(), code[range.end..].trim_start());
        let is_pattern =
            before.ends_with(" |") || after.starts_with("=>") || after.starts_with("| ");
        let is_compared = before.ends_with("==") || before.ends_with("!=");
        let is_listed = code[..back(code, at, |_| false)].ends_with('[');
        (!is_pattern && !is_compared && !is_listed).then_some((range, other))
    };
    code.match_indices(TYPE).filter_map(value).collect()
}

/// Integers of types that are serialized, by name.
fn serialized(code: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        if !(line.trim_start().starts_with("#[derive(") && line.contains("Serialize")) {
            continue;
        }
        for line in lines.by_ref().take_while(|line| !line.starts_with('}')) {
            let field = line.trim().trim_start_matches("pub ").split_once(": ");
            if let Some((name, "u64," | "u32," | "u128," | "usize,")) = field {
                names.insert(name);
            }
        }
    }
    names
}

/// Whether nothing takes from this field or sets it, but for a copy of a field of this name. It begins with a dot, or with a
/// star for what a reference names.
fn only_grows(code: &str, field: &str) -> bool {
    code.match_indices(field).all(|(at, _)| {
        let mut rest = at + field.len();
        if code[rest..].starts_with('[') {
            rest = ahead(code, rest + 1, &[]) + 1;
        }
        let after = code[rest..].trim_start();
        let value = after.strip_prefix("= ").map(|value| &value[..ahead(value, 0, b";,")]);
        let is_copy = |value: &str| {
            value.contains(field) && ![" - ", "_sub("].iter().any(|taken| value.contains(taken))
        };
        !after.starts_with("-= ") && value.is_none_or(is_copy)
    })
}

/// Where the expression that ends before `end` begins.
fn begin(code: &str, end: usize) -> usize {
    let end = code[..end].trim_end().len();
    let is_end = |before: &[u8]| {
        before.ends_with(b"=>")
            || before.last().is_some_and(|octet| b";,|".contains(octet))
            || before.ends_with(b"}") && before.len() < end
    };
    let begin = back(code, end, is_end);
    begin + code[begin..].len() - code[begin..].trim_start().len()
}

/// Goes back over whole pairs of brackets, to behind the bracket that encloses `end` or to where `is_end` holds.
fn back(code: &str, end: usize, is_end: impl Fn(&[u8]) -> bool) -> usize {
    let mut depth = 0;
    let mut at = end;
    while at > 0 && (depth > 0 || !is_end(&code.as_bytes()[..at])) {
        match code.as_bytes()[at - 1] {
            b')' | b']' | b'}' => depth += 1,
            b'(' | b'[' | b'{' if depth == 0 => break,
            b'(' | b'[' | b'{' => depth -= 1,
            _ => {}
        }
        at -= 1;
    }
    at
}

/// Goes on over whole pairs of brackets, to the bracket that encloses `from` or to one of `ends`.
fn ahead(code: &str, from: usize, ends: &[u8]) -> usize {
    let mut depth = 0;
    let is_end = |octet: &u8| {
        match octet {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' if depth == 0 => return true,
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
        depth == 0 && ends.contains(octet)
    };
    from + code.as_bytes()[from..].iter().position(is_end).unwrap_or(code.len() - from)
}

#[test]
fn an_increment_of_a_counter_is_told_from_other_additions() {
    let text = "
        #[derive(Serialize)]
        pub struct Counts {
            pub lost: u64,
}
        fn all(&mut self) {
            let mut sum = 0;
            for index in 0..3 {
                sum += 1; sizes[self.of(index)] += 1;
            }
            self.level += 1; self.level -= 1;
            self.counts[index].lost += u64::from(missing);
            self.counts.lost -= 1;
            each.for_each(|lane| self.rx[lane] += 1);
            *match error {
                Error::Magic => &mut self.magic,
            } += 1;
            match reason {
                DropReason::Mtu => self.totals.count(Total::Mtu),
                _ if reason == DropReason::Lane => return self.tally.full.add(),
                _ => {}
            }
            let number = sizes.iter().count();
            port.count_drop(DropReason::Vcrc, size); // self.bad += 1
            by_view(&[DropReason::Lane]);
        }
        #[cfg(test)]
        mod tests {
            fn a() { self.rx[lane] += 1; }
        }
";
    let found: Vec<String> = of_text("file", text)
        .into_iter()
        .map(|mutant| format!("{:?} {}", mutant.change, mutant.statement()))
        .collect();
    let expected = [
        "Delete self.counts[index].lost += u64::from(missing)",
        "Delete self.rx[lane] += 1",
        "Delete *match error { Error::Magic => &mut self.magic, } += 1",
        "Delete self.totals.count(Total::Mtu)",
        "Delete self.tally.full.add()",
        "Delete port.count_drop(DropReason::Vcrc, size)",
        "Exchange(Icrc) DropReason::Vcrc",
    ];
    assert_eq!(found, expected);
}

#[test]
fn the_product_has_mutants_and_what_is_exempt_is_there() {
    let (mutants, exempt) = all();
    mutants.iter().for_each(|one| println!("{} {} {:?}", one.file, one.name, one.change));
    println!("{} mutants, {exempt} rows of exempt statements", mutants.len());
    assert!(mutants.iter().any(|one| matches!(one.change, Change::Exchange(_))));
}

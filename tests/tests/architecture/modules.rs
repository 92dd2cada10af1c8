//! The modules of a crate and the imports between them, read from the source text.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A module's path from the crate root. The root has the empty path.
type Module = Vec<String>;

/// The modules of a crate, each with the modules that its product code names.
pub struct Graph {
    imports: BTreeMap<Module, BTreeSet<Module>>,
}

/// Reads the crate whose sources are in `src`.
pub fn of_crate(src: &Path) -> Graph {
    let mut files = Vec::new();
    collect(src, &mut Vec::new(), &mut files);
    assert!(!files.is_empty(), "{} contains no source file", src.display());
    let modules: BTreeSet<Module> = files.iter().map(|(module, _)| module.clone()).collect();
    let imports = files
        .into_iter()
        .map(|(module, text)| {
            let named =
                paths(&text).into_iter().filter_map(|path| resolve(&module, &path, &modules));
            let named = named.filter(|target| *target != module).collect();
            (module, named)
        })
        .collect();
    Graph { imports }
}

impl Graph {
    /// Number of imports between modules of this crate.
    pub fn arrows(&self) -> usize {
        self.imports.values().map(BTreeSet::len).sum()
    }

    /// Each circular import between modules of one folder, as `a -> b -> a` with their parent.
    pub fn circles(&self) -> Vec<String> {
        let mut siblings: BTreeMap<&[String], BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
        for (from, targets) in &self.imports {
            for to in targets {
                let depth = from.iter().zip(to).take_while(|(a, b)| a == b).count();
                if let (Some(a), Some(b)) = (from.get(depth), to.get(depth)) {
                    siblings.entry(&from[..depth]).or_default().entry(a).or_default().insert(b);
                }
            }
        }
        let mut found = Vec::new();
        for (parent, arrows) in siblings {
            if let Some(circle) = circle(&arrows) {
                found.push(format!("in `{}`: {}", parent.join("::"), circle.join(" -> ")));
            }
        }
        found
    }
}

/// One circle of the graph, with its first node repeated at the end; `None` if there is no circle.
fn circle<'a>(arrows: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Option<Vec<&'a str>> {
    fn visit<'a>(
        node: &'a str,
        arrows: &BTreeMap<&'a str, BTreeSet<&'a str>>,
        way: &mut Vec<&'a str>,
        done: &mut BTreeSet<&'a str>,
    ) -> Option<Vec<&'a str>> {
        if let Some(start) = way.iter().position(|seen| *seen == node) {
            let mut circle = way[start..].to_vec();
            circle.push(node);
            return Some(circle);
        }
        if !done.insert(node) {
            return None;
        }
        way.push(node);
        let found = arrows
            .get(node)
            .and_then(|next| next.iter().find_map(|next| visit(next, arrows, way, done)));
        way.pop();
        found
    }
    let mut done = BTreeSet::new();
    arrows.keys().find_map(|node| visit(node, arrows, &mut Vec::new(), &mut done))
}

fn collect(folder: &Path, module: &mut Module, files: &mut Vec<(Module, String)>) {
    for entry in fs::read_dir(folder).expect("a folder of sources can be read") {
        let path = entry.expect("its entries can be read").path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if stem == "tests" || stem == "main" {
            continue;
        }
        module.push(stem.clone());
        if path.is_dir() {
            collect(&path, module, files);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = fs::read_to_string(&path).expect("a source file can be read");
            let place = if stem == "lib" { Module::new() } else { module.clone() };
            files.push((place, text));
        }
        module.pop();
    }
}

/// Every path in product code that begins with `crate`, `super` or `self`, with groups expanded.
fn paths(text: &str) -> Vec<Vec<String>> {
    let product = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let code: String = product
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let mut found = Vec::new();
    for head in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(head) {
            let before = code[..at].chars().next_back().unwrap_or(' ');
            if !before.is_alphanumeric() && !"_:$".contains(before) {
                open(&code[at..], &mut Vec::new(), &mut found);
            }
        }
    }
    found
}

/// Reads one path from the beginning of `text`. A group becomes one path for each member.
fn open(text: &str, prefix: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> usize {
    let depth = prefix.len();
    let mut at = 0;
    loop {
        let word: String =
            text[at..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        at += word.len();
        if !word.is_empty() {
            prefix.push(word);
        }
        if !text[at..].starts_with("::") {
            break;
        }
        at += 2;
        if text[at..].starts_with('{') {
            at += 1;
            loop {
                at += text[at..].len() - text[at..].trim_start_matches([' ', '\n', ',']).len();
                match text[at..].chars().next() {
                    None => break,
                    Some('}') => {
                        at += 1;
                        break;
                    }
                    Some(c) if c.is_alphanumeric() || c == '_' => {
                        at += open(&text[at..], prefix, found);
                    }
                    Some(c) => at += c.len_utf8(),
                }
            }
            prefix.truncate(depth);
            return at;
        }
    }
    found.push(prefix.clone());
    prefix.truncate(depth);
    at
}

/// Resolves `path`, written in `module`, to a module; `None` if there is no such module.
fn resolve(module: &Module, path: &[String], modules: &BTreeSet<Module>) -> Option<Module> {
    let mut here: Module = match path.first()?.as_str() {
        "crate" => Module::new(),
        "super" => module[..module.len().checked_sub(1)?].to_vec(),
        _ => module.clone(),
    };
    for step in &path[1..] {
        if step == "super" {
            here.pop()?;
            continue;
        }
        here.push(step.clone());
        if !modules.contains(&here) {
            here.pop();
            break;
        }
    }
    Some(here)
}

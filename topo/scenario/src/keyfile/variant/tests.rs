//! Variants of files: what is merged, what is replaced, and where faults are placed.

use super::*;

const BASE: &str = r#"# What all have in common.
schema = 1
name = "base"

[fabric]
hosts = 4 # as in the paper
link = { rate = "8 Gbps", delay = "1 us" }

[scheme]
kind = "qcn"
gd = 0.5

[[traffic]]
name = "hot"
load = 0.5
to = "h0"

[[traffic]]
name = "cold"
load = 0.1

[[outage]]
from = "1 us"

[[expect]]
measure = "a"
min = 1

[[expect]]
measure = "b"
max = 2
"#;

fn file(name: &Path) -> Result<String, String> {
    match name.to_str() {
        Some("f/base.toml") => Ok(BASE.to_owned()),
        Some("f/middle.toml") => {
            Ok("base = \"base.toml\"\nname = \"middle\"\n[fabric]\nhosts = 5\nsize = 1".to_owned())
        }
        Some("f/circle.toml") => Ok("base = \"../f/circle.toml\"".to_owned()),
        Some("f/bad.toml") => Ok("a = 1\nb = ".to_owned()),
        _ => Err(format!("{}: there is no such file", name.display())),
    }
}

fn resolved(text: &str) -> Result<Resolved, String> {
    let name = "f/own.toml";
    resolve(text, Path::new(name), &mut file).map_err(|faults| faults.in_file(name))
}

fn table(text: &str) -> toml::Table {
    resolved(text).expect("it is good").text.parse().expect("TOML")
}

#[test]
fn a_file_without_a_base_stays_as_it_is() {
    assert_eq!(resolved(BASE).expect("it is good").text, BASE);
}

#[test]
fn a_variant_states_what_differs_and_keeps_the_comments_of_both() {
    let own = r#"# Our own case.
schema = 1
base = "base.toml"
name = "own"
without = ["traffic.cold", "fabric.link.delay"]

[fabric]
link.rate = "16 Gbps" # twice

# No control.
[scheme]
kind = "none"

[[traffic]]
name = "hot"
load = 0.9

[[traffic]]
name = "more"
load = 0.2

[[outage]]
from = "2 us"

[[expect]]
measure = "b"
min = 3
"#;
    let text = resolved(own).expect("it is good").text;
    let expected = r#"# Our own case.
schema = 1
name = "own"

[fabric]
hosts = 4 # as in the paper
link = { rate = "16 Gbps" }

# No control.
[scheme]
kind = "none"

[[traffic]]
name = "hot"
load = 0.9
to = "h0"

[[traffic]]
name = "more"
load = 0.2

[[outage]]
from = "2 us"

[[expect]]
measure = "a"
min = 1

[[expect]]
measure = "b"
min = 3
"#;
    assert_eq!(text, expected, "{text}");
}

#[test]
fn tables_inline_dotted_and_with_a_header_are_the_same() {
    let link =
        |text: &str| table(&format!("base = \"base.toml\"\n{text}"))["fabric"]["link"].clone();
    let dotted = link("fabric.link.rate = \"1 Gbps\" # slow");
    assert_eq!(dotted["delay"].as_str(), Some("1 us"));
    assert_eq!(dotted, link("[fabric.link] # slow\nrate = \"1 Gbps\" # slow\n"));
    assert_eq!(dotted, link("[fabric]\nlink = {\n  rate = \"1 Gbps\", # slow\n}"));
    let nested = table("base = \"base.toml\"\n[traffic]\n");
    assert!(nested["traffic"].is_table(), "it is refused when its keys are checked");
}

#[test]
fn a_name_that_is_written_twice_stays_twice() {
    let own =
        "base = \"base.toml\"\n[[traffic]]\nname = \"hot\"\n[[traffic]]\nname = \"hot\"\nload = 1";
    let loads = |own: &toml::Table| -> Vec<f64> {
        let items = own["traffic"].as_array().expect("items").iter();
        items
            .filter(|item| item["name"].as_str() == Some("hot"))
            .map(|item| item["load"].as_float().unwrap_or(1.0))
            .collect()
    };
    assert_eq!(loads(&table(own)), [0.5, 1.0]);
    let twice = "base = \"base.toml\"\n[[expect]]\nmeasure = \"a\"\nmin = 2\n[[expect]]\nmeasure = \"a\"\nmax = 3";
    let own = table(twice);
    let of_a = own["expect"].as_array().expect("expectations").iter();
    assert_eq!(of_a.filter(|one| one["measure"].as_str() == Some("a")).count(), 2);
}

#[test]
fn a_base_has_a_base() {
    let own = table("base = \"middle.toml\"\nfabric.size = 2");
    assert_eq!(own["name"].as_str(), Some("middle"));
    assert_eq!(
        (own["fabric"]["hosts"].as_integer(), own["fabric"]["size"].as_integer()),
        (Some(5), Some(2))
    );
    assert_eq!(own["scheme"]["kind"].as_str(), Some("qcn"));
}

#[test]
fn a_base_that_cannot_be_used_is_refused_where_it_is_named() {
    let fault = |text: &str| resolved(text).expect_err("it is bad");
    assert!(
        fault("base = \"none.toml\"")
            .starts_with("f/own.toml:1:8: base: f/none.toml: there is no such file")
    );
    assert!(fault("\nbase = 5").starts_with("f/own.toml:2:8: base: not the name of a file"));
    assert!(fault("base = \"own.toml\"").contains("a base of itself"));
    assert!(
        fault("base = \"circle.toml\"").starts_with("f/circle.toml:1:8: base: a base of itself")
    );
    assert!(fault("base = \"bad.toml\"").starts_with("f/bad.toml:2:5: file:"));
    let without = |path: &str| fault(&format!("base = \"base.toml\"\nwithout = [{path:?}]"));
    assert!(
        without("traffic.hto")
            .contains("the base has no \"traffic.hto\"\n    hint: one of hot, cold"),
        "{}",
        without("traffic.hto")
    );
    assert!(without("fabrik").contains("\"fabric\""));
    assert!(without("name.x").contains("it is not a table"));
    assert!(fault("base = \"base.toml\"\nwithout = 5").contains("not an array of names"));
    assert!(without("").contains("the base has no"));
}

#[test]
fn a_fault_is_placed_in_the_file_that_wrote_its_key() {
    let own = resolved("base = \"middle.toml\"\n\n[fabric]\nsize = 7\n").expect("it is good");
    let place = |path: &str| {
        let mut problems = Problems::default();
        let somewhere = Place::File { line: 99, column: 9 };
        problems.report(&somewhere, path, Complaint::new("wrong", ""));
        problems.changed(|fault| own.locate(fault)).in_file("own.toml")
    };
    assert_eq!(place("fabric.size"), "own.toml:4:1: fabric.size: wrong\n");
    assert_eq!(place("fabric.hosts"), "f/middle.toml:4:1: fabric.hosts: wrong\n");
    assert_eq!(place("traffic.cold.load"), "f/base.toml:20:1: traffic.cold.load: wrong\n");
    assert_eq!(place("expect.b.max"), "f/base.toml:31:1: expect.b.max: wrong\n");
    assert_eq!(place("fabric.missing"), "own.toml:3:2: fabric.missing: wrong\n");
    assert_eq!(place("run"), "own.toml:1:1: run: wrong\n");
}

//! Traffic items of a NIC to programs in the machine, which accept connections as rdma-core ships them.

use crate::bench::{self, Bench, LINUX};
use crate::laboratory::{alone, eventually, in_repository};
use crate::place::Place;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// What a lab knows of its machine, and a traffic item to it.
fn traffic(size: u32, messages: u32) -> [String; 3] {
    [
        format!("foreign=[{{name='v1',address='{LINUX}',mtu='1500 B'}}]"),
        format!(
            "traffic=[{{name='to-v1',from='h1',to='v1',port=7471,arrivals='backlog',size='{size} B',\
             messages={messages}}}]"
        ),
        "run.seed=5".to_owned(),
    ]
}

fn counter(bench: &Bench, name: &str) -> u64 {
    let shown = bench.place.json(&["show", "links", "h1:1", "--json"]);
    let text = shown.to_string();
    let found = text.split(&format!("\"{name}\":")).nth(1);
    let digits = found.map(|rest| rest.split(|letter: char| !letter.is_ascii_digit()).next());
    digits.flatten().and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("{shown:#}"))
}

#[test]
fn a_traffic_item_connects_to_a_program_and_both_sides_complete() {
    let _alone = alone();
    let changes = traffic(1500, 64);
    let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
    let Some(bench) = Bench::start(&changes, 1500) else { return };
    // The NIC asks until the program is there.
    let (code, text) = bench.run("ucmatose -C 64 -S 1500", Duration::from_secs(60));
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("data transfers complete"), "{text}");
    assert!(eventually(10.0, || counter(&bench, "host_lost") == 1), "the program has ended it");
    assert_eq!(counter(&bench, "host_connected"), 1);
    bench.stop();
}

#[test]
fn dcqcn_does_nothing_for_a_receiver_without_notifications_and_the_summary_says_why() {
    let _alone = alone();
    let Some(image) = bench::image() else { return };
    let place = Place::new();
    let folder = place.folder.path().to_owned();
    std::fs::set_permissions(&folder, Permissions::from_mode(0o700)).expect("our folder");
    let [local, remote] = [folder.join("v1.peer"), folder.join("v1.lab")];
    let machine = bench::machine(&image, &folder, [local.clone(), remote.clone()], 1500);
    let server = {
        let folder = folder.clone();
        let limit = Duration::from_secs(120);
        std::thread::spawn(move || bench::run(&folder, "ucmatose -C 200 -S 1500", limit))
    };
    let attach = format!(
        "lab.attach=[{{port='s1:2',local='unix:{}',remote='unix:{}',rate='20 Mbps',mtu='4300 B'}}]",
        remote.display(),
        local.display()
    );
    let file = in_repository("tests/tests/foreign/dcqcn.toml").display().to_string();
    let run = folder.join("run.d").display().to_string();
    let output = place.run(&["run", &file, "--set", &attach, "--out", &run]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}{errors}");
    let (code, said) = server.join().expect("no panic");
    assert_eq!(code, 0, "{said}");
    assert!(text.contains("no CNP has come from v1"), "{text}");
    let result = std::fs::read_to_string(folder.join("run.d/run.json")).expect("a result");
    let result: serde_json::Value = serde_json::from_str(&result).expect("JSON");
    let marks = result["measures"]["marks"].as_f64().expect("a number");
    assert!(marks > 20.0, "{marks} frames were marked");
    assert_eq!(result["measures"]["notifications"].as_f64(), Some(0.0));
    machine.stop();
}

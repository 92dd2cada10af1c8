//! Run directories read back.

use super::*;

const PORTS: &str = "t_ps,dt_ps,port,tc,tx_frames,tx_bytes,rx_frames,rx_bytes,hold_ps,pause_ps,marks,notes_rx,drops\n\
    0,2000,h0:1,0,0,0,1,100,0,0,0,0,0\n0,2000,h1:1,0,0,0,3,300,0,0,0,0,0\n\
    0,2000,s0:1,0,0,0,50,9,0,0,0,0,0\n2000,2000,h1:1,0,0,0,0,0,0,0,0,0,0\n";

#[test]
fn what_adapters_received_is_summed_by_bin_and_switches_are_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("ports.csv");
    std::fs::write(&file, PORTS).expect("room on the disk");
    let lines = BTreeMap::from([("h0:1", 1_600_000_000_000), ("h1:1", 1_600_000_000_000)]);
    // 400 octets in 2 ns are 1.6 Tb/s.
    let rates = received(&file, &lines, 1e3).expect("a table");
    assert_eq!(rates, [(1.0, 0.5), (3.0, 0.0)]);
}

#[test]
fn a_folder_that_is_no_run_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = Side::load(folder.path()).expect_err("nothing is there");
    assert!(error.to_string().contains("run.json"), "{error}");
}

#[test]
fn a_figure_draws_every_side_and_writes_names_as_text() {
    let side = |name: &str| Side {
        name: name.to_owned(),
        result: serde_json::from_str(RESULT).expect("a result"),
        received: vec![(1.0, 0.5), (3.0, 0.25)],
    };
    let text = figure::svg(&[side("<none>"), side("ib-cca")]);
    assert_eq!(text.matches("class=\"side\"").count(), 4, "a line and a sample each");
    assert!(text.contains("&lt;none&gt; beside ib-cca") && !text.contains("<none>"));
    assert_eq!(text.matches("class=\"dot\"").count(), 2, "a median each");
    assert!(text.contains("prefers-color-scheme:dark"));
}

const RESULT: &str = r#"{"schema":1,"scenario":"x","source":"","seed":1,"backend":"virtual","dilation":null,
    "scheme":"none","verdict":"pass","measures":{},"expectations":[],
    "fidelity":{"ok":true,"lateness_p99_frames":0,"transport_lost":0,"suggested_dilation":null},
    "conservation":{"injected":0,"delivered":0,"buffered":0,"dropped":{},"withdrawn":0,"link_local":0},
    "cables":{},"fabric_seconds":1e-6,"host":{"wall_seconds":1,"frame_hops_per_s":1,"version":"","commit":"",
    "kernel":"","versions":{},"command":""},"files":{},"grid":{"t0_ps":0,"dt_ps":1,"bins":1},"tau_ps":1,
    "phases":[],"parameters":[],"completion":{"cold":{"messages":3,"unfinished":1,
    "quantiles_ns":{"p1":1,"p25":10,"p50":100,"p75":1000,"p99":2000,"max":3000}}}}"#;

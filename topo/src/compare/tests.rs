//! Run directories read back.

use super::*;

const PORTS: &str = "t_ps,dt_ps,port,tc,tx_frames,tx_bytes,rx_frames,rx_bytes\n\
    0,2000,h0:1,0,0,0,1,100\n0,2000,h1:1,0,0,0,3,300\n0,2000,s0:1,0,0,0,50,9\n2000,2000,h1:1,0,0,0,0,0\n";

#[test]
fn what_adapters_received_is_summed_by_bin_and_switches_are_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("ports.csv");
    std::fs::write(&file, PORTS).expect("room on the disk");
    let adapters = BTreeSet::from(["h0", "h1"]);
    // 400 octets in 2 ns are 1.6 Tb/s.
    let lines = Lines { rate: 3.2e12, tau_ps: 1_000 };
    let rates = received(&file, &adapters, lines).expect("a table");
    assert_eq!(rates, [Rate { at: 1.0, share: 0.5 }, Rate { at: 3.0, share: 0.0 }]);
}

#[test]
fn a_folder_that_is_no_run_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = Side::load(folder.path()).expect_err("nothing is there");
    assert!(error.to_string().contains("run.json"), "{error}");
}

//! A toy fabric, recorded by the real recorder, down to the octets of its files.

use super::junit;
use super::result::{
    ClockPiece, ClockPieces, Conservation, Fidelity, GridSummary, Host, OnCables, RunResult,
    completion, flat, verdict,
};
use super::*;
use crate::evaluate::{RunData, evaluate};
use crate::lossless::LosslessDrops;
use crate::verdict::{Judgement, Verdict};
use emulation::recorder::event_log::LaneDrops;
use proto::counters::DropReason;
use proto::events::Direction;
use proto::units::Duration;
use scenario::measure::{At, Measure, Per, Quantity, Reduce};
use toy::{at, end, fabric, record};

mod toy;

fn write_to_strings(recordings: &[Recording], remarks: &[Remark]) -> BTreeMap<String, String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let fabric = fabric();
    let record =
        RunRecord { fabric: &fabric, recordings, fidelity: &[], remarks, all_events: false };
    let files = write(folder.path(), &record).expect("the folder is ours");
    let read = |name: &String| {
        std::fs::read_to_string(folder.path().join(name)).expect("it was just written")
    };
    let texts: BTreeMap<_, _> = files.keys().map(|name| (name.clone(), read(name))).collect();
    for (name, summary) in &files {
        assert_eq!(summary.bytes, texts[name].len() as u64, "{name}");
        assert_eq!(summary.sha256.len(), 64, "{name}");
        let header = u64::from(name.ends_with(".csv"));
        if !name.ends_with(".json") {
            assert_eq!(summary.rows + header, texts[name].lines().count() as u64, "{name}");
        }
    }
    texts
}

#[test]
fn the_tables_are_these_to_the_octet() {
    let files = write_to_strings(&record(&[&[0, 1]], &[]), &[]);
    assert_eq!(
        files["ports.csv"],
        "t_ps,dt_ps,port,tc,tx_frames,tx_bytes,rx_frames,rx_bytes,hold_ps,pause_ps,marks,notes_tx,\
         notes_rx,ctl_tx,ctl_rx,drops\n\
         0,1000,h0:1,0,10,1000,0,0,500,0,0,0,0,0,0,1\n\
         0,1000,s0:1,0,0,0,0,0,0,0,0,0,0,0,0,0\n\
         1000,1000,h0:1,0,10,1000,0,0,500,0,0,0,0,0,0,1\n\
         1000,1000,s0:1,0,0,0,0,0,0,0,0,0,0,0,0,0\n\
         2000,500,h0:1,0,5,500,0,0,250,0,0,0,0,0,0,0\n\
         2000,500,s0:1,0,0,0,0,0,0,0,0,0,0,0,0,0\n"
    );
    assert_eq!(
        files["queues.csv"],
        "t_ps,dt_ps,port,tc,what,bytes_min,bytes_mean,bytes_max\n\
         0,1000,h0:1,0,out,0,60,100\n\
         0,1000,h0:1,0,in,0,0,0\n\
         0,1000,h0:1,0,source,0,0,0\n\
         0,1000,s0:1,0,out,0,0,0\n\
         0,1000,s0:1,0,in,0,0,0\n\
         1000,1000,h0:1,0,out,0,60,100\n\
         1000,1000,h0:1,0,in,0,0,0\n\
         1000,1000,h0:1,0,source,0,0,0\n\
         1000,1000,s0:1,0,out,0,0,0\n\
         1000,1000,s0:1,0,in,0,0,0\n\
         2000,500,h0:1,0,out,0,20,100\n\
         2000,500,h0:1,0,in,0,0,0\n\
         2000,500,h0:1,0,source,0,0,0\n\
         2000,500,s0:1,0,out,0,0,0\n\
         2000,500,s0:1,0,in,0,0,0\n"
    );
    assert_eq!(
        files["rates.csv"],
        "t_ps,dt_ps,flow,tc,tx_bytes,rate_min,rate_mean,rate_max,gap_ps_min,gap_ps_mean,gap_ps_max,\
         scalar\n\
         0,1000,rest,3,1000,8000,8000,8000,0,0,0,0\n\
         1000,1000,h0>s0,3,1000,2000,5000,8000,0,30,60,4\n\
         2000,500,h0>s0,3,500,2000,2000,2000,60,60,60,4\n"
    );
    assert_eq!(
        files["flows.csv"],
        "flow,src,dst,class,first_ps,last_ps,offered_bytes,delivered_bytes,messages,unfinished,\
         fct_ps_p50,fct_ps_p99,fct_ps_max,marked,notes,reordered\n\
         h0>s0,h0,s0,hot,10,,2500,1234,25,3,,,,7,2,0\n"
    );
    assert_eq!(
        files["counters.csv"],
        "port,counter,value\nh0:1,drop_icrc,2\nh0:1,rx_prio3_pause,2\n"
    );
    assert_eq!(
        files["fidelity.csv"],
        "t_ps,dt_ps,worker,wall_ns,departures,late_ps_p50,late_ps_p99,late_ps_max,lost,cpu_permille,dilation\n"
    );
}

#[test]
fn events_are_lines_by_time_and_the_last_says_what_was_folded() {
    let remarks = [
        Remark {
            at: at(2_500),
            kind: RemarkKind::Null { measure: "x".into(), why: "\"y\"".into() },
        },
        Remark { at: at(0), kind: RemarkKind::Phase { index: 0, name: "warm-up".into() } },
    ];
    let files = write_to_strings(&record(&[&[0, 1]], &[]), &remarks);
    let lines: Vec<&str> = files["events.jsonl"].lines().collect();
    assert_eq!(
        lines,
        [
            r#"{"t":0,"ev":"phase","index":0,"name":"warm-up"}"#,
            r#"{"t":700,"at":"h0:1","tc":0,"ev":"free","cause":"credit","waited_ps":500}"#,
            r#"{"t":900,"at":"s0:1","tc":0,"ev":"mark","flow":"h0>s0","kind":"fecn","queue":74664,"limit":67197}"#,
            r#"{"t":1100,"at":"h0:1","tc":0,"ev":"note","flow":"h0>s0","kind":"becn","dir":"rx"}"#,
            r#"{"t":1200,"at":"h0:1","tc":0,"ev":"drop","reason":"icrc","bytes":2074}"#,
            r#"{"t":2500,"ev":"null","measure":"x","why":"\"y\""}"#,
            r#"{"t":2500,"ev":"folded","counted":0,"left_out":0}"#,
        ]
    );
}

#[test]
fn the_topology_is_drawn_unfolded() {
    let files = write_to_strings(&record(&[&[0, 1]], &[]), &[]);
    assert_eq!(
        files["topology.json"],
        concat!(
            r#"{"nodes":[{"name":"h0","kind":"nic","level":0},{"name":"s0","kind":"switch","level":1}],"#,
            r#""links":[{"a":"h0:1","b":"s0:1","rate":8000000000000,"delay_ps":7,"tech":"infiniband"}],"#,
            r#""columns":[["h0"],["s0"],["h0"]],"order":"leaf"}"#,
            "\n"
        )
    );
}

#[test]
fn two_workers_write_what_one_does_and_every_time_the_same() {
    let one = write_to_strings(&record(&[&[0, 1]], &[]), &[]);
    let two = write_to_strings(&record(&[&[1], &[0]], &[]), &[]);
    assert_eq!(one, two);
    assert_eq!(one, write_to_strings(&record(&[&[0, 1]], &[]), &[]));
}

fn throughput(from: u64, to: u64) -> Measure {
    Measure {
        name: "m".to_owned(),
        of: Quantity::Throughput,
        named: Vec::new(),
        at: At::Ports(vec![(end(0), Direction::Tx)]),
        from: at(from),
        to: at(to),
        items: Vec::new(),
        repeat: None,
        except: Vec::new(),
        bin: None,
        before: None,
        level_permille: 950,
        reduce: Reduce::Mean,
        per: Per::Line,
    }
}

#[test]
fn a_measure_and_the_table_agree_where_edges_are_bin_edges() {
    let recordings = record(&[&[0, 1]], &[0, 1_000, 2_000]);
    let files = write_to_strings(&recordings, &[]);
    let octets: u64 = files["ports.csv"]
        .lines()
        .filter(|line| line.starts_with("1000,") && line.contains("h0:1"))
        .map(|line| line.split(',').nth(5).and_then(|n| n.parse::<u64>().ok()).expect("a number"))
        .sum();
    let fabric = fabric();
    let share = evaluate(&throughput(1_000, 2_000), &RunData::new(&fabric, &recordings));
    // 8 Tb/s is an octet a picosecond.
    assert_eq!(share, Ok((octets as f64 / 1_000.0).into()));
    let whole = evaluate(&throughput(0, 2_000), &RunData::new(&fabric, &recordings));
    assert_eq!(whole, Ok(1.0.into()));
}

fn last(recordings: &[Recording]) -> impl Iterator<Item = &proto::counters::DeviceReading> {
    recordings.iter().flat_map(|recording| &recording.last)
}

#[test]
fn the_balance_closes_only_with_every_frame() {
    let recordings = record(&[&[0], &[1]], &[]);
    let mut cables = OnCables { under_way: 2, duplicated: 1, ..OnCables::default() };
    cables.dropped.add(proto::counters::DropReason::Injected, 3);
    let balance = Conservation::of(last(&recordings), &cables);
    // 25 made and 1 doubled; 18 delivered, 1 in the device and 2 on cables, 2 + 3 dropped.
    assert_eq!((balance.injected, balance.delivered, balance.buffered), (26, 18, 3));
    assert_eq!((balance.dropped["icrc"], balance.dropped["injected"]), (2, 3));
    assert!(!balance.dropped.contains_key("lpcrc"), "link packets are not end-to-end frames");
    assert!(balance.closes());
    assert!(!Conservation::of(last(&recordings), &OnCables { under_way: 1, ..cables }).closes());
}

/// Two workers with exact pace, merged, and one worker with both devices. Merging one puts its events in order, too.
#[test]
fn merged_recordings_of_two_workers_are_that_of_one() {
    let edges = [1_000, 2_000];
    let one = Recording::merge(record(&[&[0, 1]], &edges), false);
    assert_eq!(Recording::merge(record(&[&[0], &[1]], &edges), false), one);
    assert_eq!(Recording::merge(record(&[&[1], &[0]], &edges), false), one);
    assert_eq!((one.nodes.len(), one.edges.len()), (2, 2));
}

fn result(judged: Vec<Judgement>, fidelity: Fidelity) -> RunResult {
    let recordings = record(&[&[0, 1]], &[]);
    let measures =
        [("hot".to_owned(), Ok(0.985.into())), ("gone".to_owned(), Err("why".to_owned()))];
    RunResult {
        pace: None,
        repeated: None,
        schema: result::SCHEMA,
        scenario: "a <toy> & \"more\"".to_owned(),
        source: "nobody".to_owned(),
        seed: 7,
        backend: "virtual".to_owned(),
        dilation: None,
        pieces: ClockPieces::default(),
        scheme: "none".to_owned(),
        verdict: verdict(&fidelity, &judged, None),
        measures: flat(&measures),
        definitions: BTreeMap::new(),
        say: None,
        figures: Vec::new(),
        expectations: judged,
        fidelity,
        conservation: Conservation::of(last(&recordings), &OnCables::default()),
        cables: BTreeMap::from([("memory".to_owned(), 1)]),
        refused: BTreeMap::new(),
        deadlocks: Vec::new(),
        headroom_alarms: Vec::new(),
        lossless_drops: None,
        violations: None,
        hosts: Vec::new(),
        captures: Vec::new(),
        remarks: Vec::new(),
        fabric_seconds: 2.5e-9,
        host: Host::default(),
        files: BTreeMap::new(),
        grid: GridSummary::of(&recordings),
        tau_ps: Duration::from_ps(100).as_ps(),
        phases: Vec::new(),
        parameters: Vec::new(),
        saturation: crate::saturation::Saturation::default(),
        input_buffer_bytes: 0,
        completion: completion(&fabric(), &recordings),
    }
}

/// What of the drops of the switch, for four reasons and on two lanes, is lost although lane 0 is protected.
#[test]
fn lossless_drops_are_those_that_flow_control_should_have_prevented() {
    let mut recordings = record(&[&[0, 1]], &[]);
    let row = |reason, tc, first| LaneDrops { at: end(1), tc, reason, frames: 2, first: at(first) };
    recordings[0].events.drops.extend([
        row(DropReason::HeadroomOverrun, 0, 400),
        row(DropReason::ReceiveBuffer, 0, 300),
        row(DropReason::ReceiveBuffer, 1, 200),
        row(DropReason::BufferFull, 0, 100),
        row(DropReason::PauseStorm, 0, 100),
    ]);
    let found = |protected| {
        let fabric = Fabric { protected, ..fabric() };
        LosslessDrops::of(&fabric, &recordings, None)
    };
    let drops = found(1).expect("lane 0 lost some");
    assert_eq!((drops.frames, drops.at_ps, &*drops.port, drops.tc), (4, 300, "s0:1", 0));
    assert_eq!((drops.reasons["headroom_overrun"], drops.reasons["receive_buffer"]), (2, 2));
    assert_eq!(found(0), None, "nothing is protected");
    let late = Fidelity { ok: false, ..Fidelity::VIRTUAL };
    let told = [Fidelity::VIRTUAL, late].map(|host| verdict(&host, &[], Some(&drops)));
    assert_eq!(told, [Verdict::Fail, Verdict::Inconclusive]);
    let wanted = LosslessDrops { expected: Some("a reason".to_owned()), ..drops.clone() };
    assert_eq!(verdict(&Fidelity::VIRTUAL, &[], Some(&wanted)), Verdict::Pass);
    let lost = RunResult {
        lossless_drops: Some(drops),
        ..result(vec![judged(Verdict::Pass)], Fidelity::VIRTUAL)
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    junit::write(folder.path(), &lost).expect("the folder is ours");
    let text = std::fs::read_to_string(folder.path().join("junit.xml")).expect("just written");
    assert!(text.contains("failures=\"1\"") && text.contains("4 lossless frames lost: "), "{text}");
}

fn judged(verdict: Verdict) -> Judgement {
    Judgement {
        measure: "hot".to_owned(),
        min: Some(0.96),
        max: None,
        theory: None,
        order: None,
        value: Some(0.985.into()),
        verdict,
        why: "less than <1>".to_owned(),
        line: 42,
    }
}

#[test]
fn run_json_has_the_fields_of_the_design_in_their_order() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let result = result(vec![judged(Verdict::Pass)], Fidelity::VIRTUAL);
    result::write(folder.path(), &result).expect("the folder is ours");
    let text = std::fs::read_to_string(folder.path().join("run.json")).expect("just written");
    let keys: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("  \""))
        .filter_map(|line| line.split('"').nth(1))
        .collect();
    let expected = "schema scenario source seed backend dilation scheme verdict measures \
                    definitions expectations fidelity conservation cables fabric_seconds host files \
                    grid tau_ps phases parameters saturation input_buffer_bytes completion refused";
    assert_eq!(keys, expected.split_whitespace().collect::<Vec<_>>());
    assert!(text.contains("\"gone\": null") && text.contains("\"verdict\": \"pass\""));
    let back: RunResult = serde_json::from_str(&text).expect("it was written by us");
    assert_eq!(back, result);
    assert_eq!((back.grid.dt_ps, back.grid.bins), (1_000, 3));
    let hot = &back.completion["hot"];
    assert_eq!((hot.messages, hot.unfinished, hot.quantiles_ns["p50"]), (4, 3, 10));
}

#[test]
fn the_pieces_of_a_stretched_clock_say_how_far_it_was_stretched() {
    let never = ClockPieces::default();
    assert_eq!((never.stretched(), never.stretch_at(5)), (None, 1.0));
    let piece = |from_ps, dilation| ClockPiece { from_ps, dilation };
    let pieces = ClockPieces(vec![piece(0, 1000), piece(100, 4000), piece(200, 3000)]);
    assert_eq!(pieces.stretched(), Some((1000, 4000)));
    assert_eq!([99, 100, 200].map(|t_ps| pieces.stretch_at(t_ps)), [1.0, 4.0, 3.0]);
    let text = serde_json::to_string(&pieces).expect("it can be written");
    assert!(text.starts_with(r#"[{"from_ps":0,"dilation":1000},"#), "{text}");
}

#[test]
fn a_host_that_did_not_keep_up_says_nothing_about_expectations() {
    let late = Fidelity { ok: false, lateness_p99_frames: Some(0.3), ..Fidelity::VIRTUAL };
    let inconclusive = result(vec![judged(Verdict::Fail)], late);
    assert_eq!(inconclusive.verdict, Verdict::Inconclusive);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let read = |result: &RunResult| {
        junit::write(folder.path(), result).expect("the folder is ours");
        std::fs::read_to_string(folder.path().join("junit.xml")).expect("just written")
    };
    assert!(read(&inconclusive).contains("failures=\"0\" skipped=\"1\""));
    let failed = read(&result(vec![judged(Verdict::Fail)], Fidelity::VIRTUAL));
    assert!(failed.contains("failures=\"1\" skipped=\"0\""));
    assert!(failed.contains("hot is 0.985, at least 0.96 expected"), "{failed}");
    assert!(failed.contains("line 42: less than &lt;1&gt;"), "{failed}");
    assert!(failed.contains("name=\"a &lt;toy&gt; &amp; &quot;more&quot;\""), "{failed}");
}

#[test]
fn a_folder_that_is_not_there_is_an_error_that_names_the_file() {
    let fabric = fabric();
    let record = RunRecord {
        fabric: &fabric,
        recordings: &[],
        fidelity: &[],
        remarks: &[],
        all_events: false,
    };
    let error = write(Path::new("/nowhere/at/all"), &record).expect_err("no such folder");
    assert!(error.to_string().contains("/nowhere/at/all/ports.csv"), "{error}");
}

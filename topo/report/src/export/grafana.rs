//! A board for Grafana over what labs tell Prometheus. Names of metrics come from the table that the
//! daemons write theirs from, so a board cannot ask for what nobody tells.
//!
//! `rate` works in the host's time, the fabric has its own. What is shown is divided by how fast the
//! fabric's time goes by, so a share is one of fabric time, however slowed a lab is.
//!
//! The data source is a variable of the board: placeholders for the import dialog are not filled where
//! boards are provisioned from files.

use daemon::admin::families::{self, Family};
use serde_json::{Value, json};

/// Fixed, so that links to the board last.
const UID: &str = "pausebed-fabric";
/// A board is so many units wide.
const WIDTH: u64 = 24;
/// Lateness above which the host does not keep up (docs/lab.md).
const LATE: f64 = 0.10;
/// An output is held from this share of time on.
const HELD: f64 = results::saturation::HELD;
/// Lanes that the board can choose from: those of the technology that has more.
const LANES: u8 = 16;
/// Which series: variables of the board. Of `vl` and `priority` a series has one, and the other is empty.
const OF_LANE: &str = r#"node=~"$node", port=~"$port", vl=~"$lane|", priority=~"$lane|""#;
const OF_PORT: &str = r#"node=~"$node", port=~"$port""#;

/// The board, as Grafana has it in a file.
pub fn board() -> Vec<u8> {
    let mut text = format!("{:#}", whole());
    text.push('\n');
    text.into_bytes()
}

fn whole() -> Value {
    json!({
        "uid": UID,
        "title": "pausebed fabric",
        "description": "Made by pausebed export --to grafana; make it again, do not edit.",
        "tags": ["pausebed"],
        "editable": false,
        "graphTooltip": 1,
        "refresh": "5s",
        "schemaVersion": 39,
        "time": { "from": "now-15m", "to": "now" },
        "timezone": "browser",
        "templating": { "list": variables() },
        "panels": laid_out(rows()),
    })
}

fn variables() -> Vec<Value> {
    let lanes: Vec<String> = (0..LANES).map(|lane| lane.to_string()).collect();
    let sent = families::TRANSMITTED_BYTES.full_name();
    let several = |name: &str, label: &str, query: String| {
        json!({
            "name": name, "label": label, "type": "query", "datasource": source(),
            "query": query, "definition": query, "refresh": 2, "sort": 3,
            "multi": true, "includeAll": true, "allValue": ".*",
            "current": { "text": ["All"], "value": ["$__all"] },
        })
    };
    vec![
        json!({ "name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus" }),
        several("node", "Node", format!("label_values({sent}, node)")),
        several("port", "Port", format!(r#"label_values({sent}{{node=~"$node"}}, port)"#)),
        json!({
            "name": "lane", "label": "Lane", "type": "custom", "query": lanes.join(","),
            "multi": true, "includeAll": true, "allValue": ".*",
            "current": { "text": ["All"], "value": ["$__all"] },
        }),
    ]
}

fn source() -> Value {
    json!({ "type": "prometheus", "uid": "${datasource}" })
}

/// A panel: how high it is, and what else it says.
struct Panel {
    high: u64,
    body: Value,
}

/// Rows of panels that share the width.
fn rows() -> Vec<Vec<Panel>> {
    vec![
        vec![
            note(),
            stat("Host is late, p99 in frame times", &late(), "none", Some(LATE)),
            stat("Frames that sockets lost", &lost(), "none", Some(1.0)),
            stat("Fabric time", &now(), "s", None),
            stat("Host seconds a fabric second", &format!("1 / {}", pace()), "none", None),
        ],
        vec![
            lines(
                "Lateness by process, p99 in frame times",
                &of(families::LATENESS_P99_FRAMES, ""),
                "{{process}}",
                "none",
            ),
            lines(
                "Ports at which a frame was ready and forbidden to leave, in 0.10 of the time or more",
                &format!("count({} >= {HELD}) or vector(0)", held()),
                "ports",
                "none",
            ),
        ],
        vec![heat(
            "Share of time in which a frame was ready and forbidden to leave",
            &held(),
            "{{node}}:{{port}}",
        )],
        vec![
            lines(
                "Sent by port, in fabric time",
                &bits(families::TRANSMITTED_BYTES),
                "{{node}}:{{port}}",
                "bps",
            ),
            lines(
                "Received by port, in fabric time",
                &bits(families::RECEIVED_BYTES),
                "{{node}}:{{port}}",
                "bps",
            ),
        ],
        vec![
            lines(
                "Waits to leave",
                &level(families::QUEUE_DEPTH_BYTES),
                "{{node}}:{{port}}",
                "bytes",
            ),
            lines(
                "The most that ever waited",
                &level(families::QUEUE_WATERMARK_BYTES),
                "{{node}}:{{port}}",
                "bytes",
            ),
            lines(
                "In input buffers",
                &level(families::BUFFER_DEPTH_BYTES),
                "{{node}}:{{port}}",
                "bytes",
            ),
        ],
        vec![
            lines(
                "Frames marked a fabric second",
                &speed(families::MARKED_PACKETS, "node, port", OF_LANE),
                "{{node}}:{{port}}",
                "none",
            ),
            lines(
                "Notifications sent a fabric second",
                &speed(families::NOTIFICATIONS_SENT, "node, port", OF_LANE),
                "{{node}}:{{port}}",
                "none",
            ),
            lines(
                "Notifications received a fabric second",
                &speed(families::NOTIFICATIONS_RECEIVED, "node, port", OF_LANE),
                "{{node}}:{{port}}",
                "none",
            ),
        ],
        vec![
            lines(
                "Share of time in which flow control forbade a lane",
                &speed(families::PAUSED_SECONDS, "node, port, vl, priority", OF_LANE),
                "{{node}}:{{port}} lane {{vl}}{{priority}}",
                "percentunit",
            ),
            lines(
                "PFC frames a fabric second",
                &speed(families::PFC_FRAMES, "node, port, priority, direction", OF_PORT),
                "{{node}}:{{port}} p{{priority}} {{direction}}",
                "none",
            ),
        ],
        vec![
            lines(
                "Frames that ended on the way, by reason",
                &total(families::DISCARDS, "reason", OF_PORT),
                "{{reason}}",
                "none",
            ),
            lines(
                "Lost for want of room",
                &total(families::NO_ROOM_PACKETS, "node, port", OF_LANE),
                "{{node}}:{{port}}",
                "none",
            ),
            lines(
                "Links retrained",
                &total(families::LINK_WATCHDOGS, "node, port", OF_PORT),
                "{{node}}:{{port}}",
                "none",
            ),
        ],
        vec![named()],
    ]
}

// ---- what is asked

/// Fabric seconds that go by in one of the host's.
fn pace() -> String {
    let clock = families::FABRIC_TIME_SECONDS.full_name();
    format!("scalar(max(deriv({clock}[$__rate_interval])))")
}

fn now() -> String {
    format!("max({})", families::FABRIC_TIME_SECONDS.full_name())
}

fn late() -> String {
    format!("max({})", families::LATENESS_P99_FRAMES.full_name())
}

fn lost() -> String {
    format!("sum({})", families::LOST_FRAMES.full_name())
}

fn of(family: Family, which: &str) -> String {
    format!("{}{{{which}}}", family.full_name())
}

/// By how much a total grows in a fabric second, summed up by labels.
fn speed(family: Family, by: &str, which: &str) -> String {
    let series = of(family, which);
    format!("sum by ({by}) (rate({series}[$__rate_interval])) / {}", pace())
}

fn bits(family: Family) -> String {
    format!("8 * {}", speed(family, "node, port", OF_LANE))
}

/// Of the lanes of a port the one that waited longest, as in the report.
fn held() -> String {
    let series = of(families::TRANSMIT_WAIT_SECONDS, OF_LANE);
    format!("max by (node, port) (rate({series}[$__rate_interval])) / {}", pace())
}

fn level(family: Family) -> String {
    format!("sum by (node, port) ({})", of(family, OF_LANE))
}

fn total(family: Family, by: &str, which: &str) -> String {
    format!("sum by ({by}) ({})", of(family, which))
}

// ---- how it is shown

fn note() -> Panel {
    let text = "Times are **fabric time**: a lab is slowed, and one second in the fabric takes many here \
                (*Host seconds a fabric second*). Rates and shares are those of the fabric. Above 0.10 frame \
                times of lateness the host does not keep up, and nothing on this board counts.";
    Panel {
        high: 4,
        body: json!({ "type": "text", "title": "", "options": { "mode": "markdown", "content": text } }),
    }
}

fn queries(expr: &str, legend: &str) -> Value {
    json!([{ "refId": "A", "datasource": source(), "expr": expr, "legendFormat": legend }])
}

/// One number; red from a limit on, green below, plain without one.
fn stat(title: &str, expr: &str, unit: &str, limit: Option<f64>) -> Panel {
    let steps = match limit {
        Some(limit) => {
            json!([{ "color": "green", "value": null }, { "color": "red", "value": limit }])
        }
        None => json!([{ "color": "text", "value": null }]),
    };
    Panel {
        high: 4,
        body: json!({
            "type": "stat", "title": title, "datasource": source(), "targets": queries(expr, ""),
            "fieldConfig": { "defaults": { "unit": unit, "thresholds": { "mode": "absolute", "steps": steps } }, "overrides": [] },
            "options": { "colorMode": "value", "graphMode": "none", "reduceOptions": { "calcs": ["lastNotNull"] } },
        }),
    }
}

fn lines(title: &str, expr: &str, legend: &str, unit: &str) -> Panel {
    Panel {
        high: 8,
        body: json!({
            "type": "timeseries", "title": title, "datasource": source(), "targets": queries(expr, legend),
            "fieldConfig": { "defaults": { "unit": unit, "min": 0, "custom": { "lineWidth": 1, "showPoints": "never" } }, "overrides": [] },
            "options": { "legend": { "displayMode": "table", "placement": "right", "calcs": ["max"], "sortBy": "Max", "sortDesc": true }, "tooltip": { "mode": "multi", "sort": "desc" } },
        }),
    }
}

/// A row a port, coloured by a share.
fn heat(title: &str, expr: &str, legend: &str) -> Panel {
    Panel {
        high: 14,
        body: json!({
            "type": "status-history", "title": title, "datasource": source(), "targets": queries(expr, legend),
            "fieldConfig": { "defaults": { "unit": "percentunit", "min": 0, "max": 1, "color": { "mode": "continuous-YlRd" } }, "overrides": [] },
            "options": { "showValue": "never", "rowHeight": 0.9, "legend": { "showLegend": false } },
        }),
    }
}

/// What ports count under their operators' names, each with what it is.
fn named() -> Panel {
    let targets: Vec<Value> = families::NAMED
        .iter()
        .enumerate()
        .map(|(place, (_, family))| {
            json!({
                "refId": format!("N{place}"), "datasource": source(),
                "expr": format!("sum ({})", of(*family, OF_PORT)), "legendFormat": family.help,
            })
        })
        .collect();
    let Panel { high, mut body } =
        lines("Under operators\u{2019} names, the whole fabric", "", "", "none");
    body["targets"] = json!(targets);
    Panel { high, body }
}

/// Panels with their places and numbers.
fn laid_out(rows: Vec<Vec<Panel>>) -> Vec<Value> {
    let mut panels = Vec::new();
    let mut top = 0;
    for row in rows {
        let (count, high) =
            (row.len() as u64, row.iter().map(|panel| panel.high).max().unwrap_or(0));
        for (place, Panel { mut body, .. }) in (0..).zip(row) {
            let (left, right) = (WIDTH * place / count, WIDTH * (place + 1) / count);
            body["id"] = json!(panels.len() + 1);
            body["gridPos"] = json!({ "x": left, "y": top, "w": right - left, "h": high });
            panels.push(body);
        }
        top += high;
    }
    panels
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The board that is in the repository; `docker/grafana/README.md` says how it is made.
    const KEPT: &str = include_str!("../../../../docker/grafana/pausebed.json");

    #[test]
    fn the_board_that_is_kept_is_the_one_that_is_made() {
        assert_eq!(String::from_utf8_lossy(&board()), KEPT);
    }

    #[test]
    fn panels_have_places_of_their_own_and_their_source_from_the_board() {
        let board = whole();
        let panels = board["panels"].as_array().expect("panels");
        let mut cells = BTreeSet::new();
        for panel in panels {
            let of = |key: &str| panel["gridPos"][key].as_u64().expect("a number");
            assert!(of("x") + of("w") <= WIDTH);
            for x in of("x")..of("x") + of("w") {
                for y in of("y")..of("y") + of("h") {
                    assert!(cells.insert((x, y)), "{} covers another", panel["title"]);
                }
            }
            for target in panel["targets"].as_array().into_iter().flatten() {
                assert_eq!(target["datasource"]["uid"], "${datasource}");
            }
        }
        assert!(panels.len() > 15 && board.get("__inputs").is_none());
    }
}

//! The Grafana dashboard for the metrics that labs export to Prometheus.
//!
//! `rate()` counts in host time, but a lab has its own fabric time. The dashboard divides every rate by the fabric
//! seconds that pass in one host second, so a share is a share of fabric time, however slow the lab runs. The data source
//! is a variable of the dashboard: Grafana does not fill the placeholders of the import dialog if a dashboard is
//! provisioned from a file.

/// The dashboard as a Grafana JSON file.
pub const DASHBOARD: &[u8] = include_bytes!("../../../../docker/grafana/pausebed.json");

#[cfg(test)]
mod tests {
    use super::DASHBOARD;
    use daemon::admin::families::*;
    use serde_json::Value;
    use std::collections::BTreeSet;

    /// Width of a dashboard in Grafana's units.
    const WIDTH: u64 = 24;

    #[test]
    fn the_dashboard_queries_metrics_that_daemons_export_and_all_operators_counters() {
        let text = String::from_utf8_lossy(DASHBOARD);
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let words = text.split(|letter: char| !is_name(letter));
        let queried: BTreeSet<&str> = words.filter(|word| word.starts_with("pausebed_")).collect();
        let shown = [
            FABRIC_TIME_SECONDS,
            LATENESS_P99_FRAMES,
            LOST_FRAMES,
            TRANSMITTED_BYTES,
            RECEIVED_BYTES,
            TRANSMIT_WAIT_SECONDS,
            PAUSED_SECONDS,
            QUEUE_DEPTH_BYTES,
            QUEUE_WATERMARK_BYTES,
            BUFFER_DEPTH_BYTES,
            MARKED_PACKETS,
            NOTIFICATIONS_SENT,
            NOTIFICATIONS_RECEIVED,
            PFC_FRAMES,
            DISCARDS,
            NO_ROOM_PACKETS,
            LINK_WATCHDOGS,
        ];
        let named = NAMED.iter().map(|(_, family)| *family);
        let exported: Vec<String> = shown.into_iter().chain(named).map(Family::full_name).collect();
        assert_eq!(queried, exported.iter().map(String::as_str).collect());
        assert!(text.contains(&format!(">= {}", results::saturation::HELD)));
    }

    #[test]
    fn panels_have_places_of_their_own_and_their_source_from_the_board() {
        let board: Value = serde_json::from_slice(DASHBOARD).expect("JSON");
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

//! The throughput that a fabric should give to each port if congestion slows only the flows that cause it, from the
//! offered traffic, before a run.
//!
//! A port asked for more than its line is hot. Max-min fairness divides its line; the flows that
//! get less than they ask for are the hot flows, and shall get equal shares. Every other receiving
//! port is cold, and should receive what is sent to it (docs/spec/algorithms.md 10.1). That holds as long as no link
//! inside the fabric is asked for more than it carries on the way to cold ports.

use nicd::config::Target;
use proto::units::{Duration, Instant};
use scenario::render::Lab;

/// From an instant to another.
pub type Window = (Instant, Instant);

/// The throughput that the ports of a fabric should have in a window.
#[derive(Clone, Debug, PartialEq)]
pub struct Ideal {
    /// The ports asked for more than their line.
    pub hot: Vec<Hot>,
    /// Adapters that receive, and are not hot.
    pub cold: Vec<usize>,
    /// Mean throughput that cold ports should have, as a share of the line.
    pub owed: f64,
    /// Octets on the wire to octets of payload, over all that is sent.
    pub on_wire: f64,
}

/// A port asked for more than its line.
#[derive(Clone, Debug, PartialEq)]
pub struct Hot {
    /// The adapter.
    pub node: usize,
    /// Offered load, as a share of its line.
    pub asked: f64,
    /// The senders that should get equal shares, less than they offer.
    pub senders: Vec<usize>,
}

impl Ideal {
    /// The ideal of `window`.
    pub fn of(lab: &Lab, window: Window) -> Ideal {
        let (by_receiver, on_wire) = offers(lab, window);
        let (mut hot, mut cold, mut owed) = (Vec::new(), Vec::new(), 0.0);
        for (node, from) in by_receiver.iter().enumerate() {
            let asked: f64 = from.iter().sum();
            if asked > 1.0 {
                hot.push(Hot { node, asked, senders: held_back(from) });
            } else if asked > 0.0 {
                cold.push(node);
                owed += asked;
            }
        }
        owed /= cold.len().max(1) as f64;
        Ideal { hot, cold, owed, on_wire }
    }
}

/// The first time in which some port is asked for more than its line, from change to change of the
/// traffic.
pub fn first_overload(lab: &Lab) -> Option<Window> {
    let items = lab.nics.iter().flat_map(|nic| &nic.traffic);
    let mut edges: Vec<Instant> = items.flat_map(|item| [item.start, item.stop]).collect();
    edges.sort_unstable();
    edges.dedup();
    let mut overload: Option<Window> = None;
    for part in edges.windows(2) {
        let is_hot = !Ideal::of(lab, (part[0], part[1])).hot.is_empty();
        overload = match (overload, is_hot) {
            (None, true) => Some((part[0], part[1])),
            (Some((from, _)), true) => Some((from, part[1])),
            (None, false) => None,
            (Some(_), false) => break,
        };
    }
    overload
}

/// Offered rates by receiver and sender, as shares of the receiver's line; octets on the wire to octets of payload.
fn offers(lab: &Lab, (from, to): Window) -> (Vec<Vec<f64>>, f64) {
    let adapters = lab.nics.len();
    let mut by_receiver = vec![vec![0.0; adapters]; adapters];
    let (mut wire, mut payload) = (0.0, 0.0);
    for (sender, nic) in lab.nics.iter().enumerate() {
        let line = nic.link.rate.get() as f64;
        for item in &nic.traffic {
            let both = item.stop.min(to).since(item.start.max(from));
            let share = ratio(both, to.since(from));
            // A backlog offers all that its line takes.
            let load =
                if item.interval == Duration::ZERO { 1.0 } else { ratio(item.slot, item.interval) };
            let rate = line * load * share;
            let messages = rate / (item.slot.as_ps().max(1) as f64 * line / 8e12);
            wire += rate / 8.0;
            payload += messages / 8.0 * item.size.get() as f64;
            let receivers: Vec<usize> = match &item.to {
                Target::Uniform => (0..adapters).filter(|node| *node != sender).collect(),
                // The load of a script is not known before the run.
                Target::Script(_) => continue,
                Target::Lids(lids) => {
                    let place = |lid| nic.adapters.iter().position(|known| known == lid);
                    lids.iter().filter_map(place).collect()
                }
            };
            for node in &receivers {
                let port = lab.nics[*node].link.rate.get() as f64;
                by_receiver[*node][sender] += rate / receivers.len() as f64 / port;
            }
        }
    }
    (by_receiver, if payload > 0.0 { wire / payload } else { 1.0 })
}

fn ratio(part: Duration, whole: Duration) -> f64 {
    part.as_ps() as f64 / whole.as_ps().max(1) as f64
}

/// The senders to which a max-min fair division of one line gives less than they ask for.
fn held_back(asked: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..asked.len()).filter(|sender| asked[*sender] > 0.0).collect();
    order.sort_by(|a, b| asked[*a].total_cmp(&asked[*b]).then(a.cmp(b)));
    let mut left = 1.0;
    for (index, sender) in order.iter().enumerate() {
        let share = left / (order.len() - index) as f64;
        if asked[*sender] > share {
            let mut held = order[index..].to_vec();
            held.sort_unstable();
            return held;
        }
        left -= asked[*sender];
    }
    Vec::new()
}

#[cfg(test)]
mod tests;

//! What the watchdog has done about a storm of pauses: a queue that is given up, or one that is deaf.

use super::Switch;
use super::relay::{Taken, note_queue};
use crate::config::StormAction;
use crate::egress::Placed;
use crate::watchdog::{Finding, Sample};
use proto::counters::DropReason;
use proto::events::{DeviceEvent, EventKind};
use proto::ids::{PortNumber, VirtualLane};
use proto::units::Instant;

impl Switch {
    /// Whether what comes for this queue is dropped; counts the frame if so.
    pub(super) fn gives_up(&mut self, output: PortNumber, lane: VirtualLane) -> bool {
        let Some(watchdog) = &mut self.watchdog else { return false };
        let drops = watchdog.numbers().action == StormAction::Drop;
        if !drops || !watchdog.is_storm(output, lane) {
            return false;
        }
        watchdog.count_drop(output, lane);
        true
    }

    /// Lets the watchdog look, and does what it was told to about what it finds.
    pub(super) fn watch(&mut self, now: Instant) {
        let Some(watchdog) = &mut self.watchdog else { return };
        let action = watchdog.numbers().action;
        let (ports, queues, egress) = (&self.ports, &self.queues, &self.egress);
        let findings = watchdog.poll(now, |port, lane| Sample {
            waiting: queues.is_waiting_on(port, lane),
            sent: egress[port.index()].last_departure(lane),
            paused: ports[port.index()].silent_for(lane, now),
        });
        for (port, lane, finding) in findings {
            let kind = match finding {
                Finding::Storm { stuck } => EventKind::Storm { stuck },
                Finding::Over { lasted } => EventKind::StormOver { lasted },
            };
            self.log.push(DeviceEvent { at: now, port, tc: lane.get(), kind });
            let storms = matches!(finding, Finding::Storm { .. });
            match action {
                StormAction::Drop if storms => self.flush(port, lane, now),
                StormAction::Forward => self.ports[port.index()].set_deaf(lane, storms, now),
                StormAction::Drop | StormAction::Alert => {}
            }
            self.stirred.insert(port);
        }
    }

    /// Drops all that waits for a queue.
    fn flush(&mut self, output: PortNumber, lane: VirtualLane, now: Instant) {
        while let Some(stored) = self.queues.withdraw(output, lane) {
            let (input, size) = (stored.input, stored.headers.size);
            self.queues.finished(input, output, lane, size);
            let taken = Taken { input, lane: stored.input_lane, size, group: stored.group };
            self.release(taken, now);
            let port = &mut self.ports[output.index()];
            note_queue(&self.queues, Placed { input, output, lane }, port, now);
            let reason = DropReason::PauseStorm;
            port.count_drop(reason, size, lane.get(), now, &mut self.log);
            if let Some(watchdog) = &mut self.watchdog {
                watchdog.count_drop(output, lane);
            }
            self.pool.recycle(stored.frame);
        }
    }
}

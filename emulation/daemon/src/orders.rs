//! Orders from other threads of a daemon to the worker, in bounded channels.
//!
//! proving/interleavings compiles this file with other types in place of `crate::sync`, and tries every order of its steps.

use crate::sync::{Alarm, Arc, AtomicBool, Order, Ordering};
use crate::sync::{Receiver, SyncSender, TrySendError, sync_channel};
use std::cell::Cell;

/// The worker's end of the channel.
#[derive(Debug)]
pub(crate) struct OrderReceiver {
    waiting: Arc<AtomicBool>,
    alarm: Option<Arc<Alarm>>,
    orders: Receiver<Order>,
    /// Orders received less rings silenced. An order comes before its ring.
    unrung: Cell<i64>,
}

impl OrderReceiver {
    /// The next order. Without one, the usual case, this only reads a flag.
    pub fn next(&self) -> Option<Order> {
        if !self.waiting.load(Ordering::Relaxed) {
            return None;
        }
        let order = self.orders.try_recv().ok().or_else(|| self.look_again());
        self.unrung.set(self.unrung.get() + i64::from(order.is_some()));
        order
    }

    /// Clears the flag, unless there is more to look at.
    fn look_again(&self) -> Option<Order> {
        // Changes of the flag are swaps, on both sides, so each sees the one before: an order whose flag was set before this
        // swap is found below, and a later one sets the flag and rings again. A plain store could become visible later.
        self.waiting.swap(false, Ordering::AcqRel);
        let rings = self.alarm.as_ref().map(|alarm| alarm.silence());
        self.unrung.set(rings.map_or(0, |rings| self.unrung.get() - rings as i64));
        let order = self.orders.try_recv().ok();
        // Another order may have come with this one, and a ring that is still to come must be silenced.
        if order.is_some() || self.unrung.get() > 0 {
            self.waiting.swap(true, Ordering::AcqRel);
        }
        order
    }

    /// What is readable while orders wait.
    pub fn alarm(&self) -> Option<&Alarm> {
        self.alarm.as_deref()
    }
}

/// The other end.
#[derive(Clone, Debug)]
pub(crate) struct OrderSender {
    waiting: Arc<AtomicBool>,
    alarm: Option<Arc<Alarm>>,
    orders: SyncSender<Order>,
}

impl OrderSender {
    /// Queues an order.
    ///
    /// # Errors
    /// If the queue is full, or the worker has ended.
    pub fn send(&self, order: Order) -> Result<(), TrySendError<Order>> {
        self.orders.try_send(order)?;
        self.waiting.swap(true, Ordering::Release);
        self.alarm.iter().for_each(|alarm| alarm.ring());
        Ok(())
    }
}

/// A channel for so many orders. With an alarm they wake the worker; otherwise they wait until it wakes.
pub(crate) fn orders(most: usize, alarm: Option<Arc<Alarm>>) -> (OrderSender, OrderReceiver) {
    let (sender, orders) = sync_channel(most);
    let waiting = Arc::new(AtomicBool::new(false));
    let sender =
        OrderSender { waiting: Arc::clone(&waiting), alarm: alarm.clone(), orders: sender };
    (sender, OrderReceiver { waiting, alarm, orders, unrung: Cell::new(0) })
}

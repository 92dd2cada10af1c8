//! Orders from other threads of a daemon to the worker, in bounded channels.

use emulation::alarm::Alarm;
use emulation::driver::orders::Order;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// The worker's end of the channel.
#[derive(Debug)]
pub(crate) struct OrderReceiver {
    waiting: Arc<AtomicBool>,
    alarm: Option<Arc<Alarm>>,
    orders: Receiver<Order>,
}

impl OrderReceiver {
    /// The next order. Without one, the usual case, this only reads a flag.
    pub fn next(&self) -> Option<Order> {
        if !self.waiting.load(Ordering::Relaxed) {
            return None;
        }
        self.orders.try_recv().ok().or_else(|| {
            // A swap, since a plain store could become visible after the receive below: an order whose flag was
            // set before the swap is received there, and a later one sets the flag and rings again.
            self.waiting.swap(false, Ordering::AcqRel);
            self.alarm.iter().for_each(|alarm| alarm.silence());
            self.orders.try_recv().ok()
        })
    }

    /// What is readable while orders wait.
    pub fn alarm(&self) -> Option<BorrowedFd<'_>> {
        self.alarm.as_ref().map(|alarm| alarm.as_fd())
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
        self.waiting.store(true, Ordering::Release);
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
    (sender, OrderReceiver { waiting, alarm, orders })
}

//! What the exchange of orders shares between threads, as loom has it, and no stronger than what the real types promise.

use loom::sync::atomic::AtomicU32;
use loom::sync::{Condvar, Mutex};
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::mpsc::TryRecvError;

pub use loom::sync::Arc;
pub use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
pub use std::sync::mpsc::TrySendError;

/// A number above 0.
pub type Order = u32;

/// As an eventfd: the kernel has a lock for its count.
#[derive(Debug, Default)]
pub struct Alarm {
    rings: Mutex<u64>,
    rung: Condvar,
}

impl Alarm {
    pub fn ring(&self) {
        *self.rings.lock().expect("no panic") += 1;
        self.rung.notify_one();
    }

    pub fn silence(&self) -> u64 {
        std::mem::take(&mut *self.rings.lock().expect("no panic"))
    }

    pub fn is_ringing(&self) -> bool {
        *self.rings.lock().expect("no panic") > 0
    }

    /// As a wait for a readable descriptor. If it never rings, the model reports that no thread can go on.
    pub fn wait(&self) {
        let mut rings = self.rings.lock().expect("no panic");
        while *rings == 0 {
            rings = self.rung.wait(rings).expect("no panic");
        }
    }
}

/// A channel that promises only this: what a thread did before it sent an order is visible to the thread that has
/// received it. Each slot is used once.
#[derive(Debug)]
struct Slots {
    claimed: AtomicUsize,
    orders: Vec<AtomicU32>,
}

#[derive(Debug)]
pub struct SyncSender<T>(Arc<Slots>, PhantomData<T>);

impl<T> Clone for SyncSender<T> {
    fn clone(&self) -> SyncSender<T> {
        SyncSender(Arc::clone(&self.0), PhantomData)
    }
}

impl SyncSender<Order> {
    pub fn try_send(&self, order: Order) -> Result<(), TrySendError<Order>> {
        let place = self.0.claimed.fetch_add(1, Ordering::Relaxed);
        let slot = self.0.orders.get(place).ok_or(TrySendError::Full(order))?;
        slot.store(order, Ordering::Release);
        Ok(())
    }
}

#[derive(Debug)]
pub struct Receiver<T>(Arc<Slots>, Cell<usize>, PhantomData<T>);

impl Receiver<Order> {
    pub fn try_recv(&self) -> Result<Order, TryRecvError> {
        let place = self.1.get();
        let slot = self.0.orders.get(place).ok_or(TryRecvError::Empty)?;
        loop {
            let order = slot.load(Ordering::Acquire);
            if order != 0 {
                self.1.set(place + 1);
                return Ok(order);
            }
            // As in the standard library, a sender that has claimed the place is waited for, if that is visible.
            if self.0.claimed.load(Ordering::Relaxed) <= place {
                return Err(TryRecvError::Empty);
            }
            loom::thread::yield_now();
        }
    }
}

pub fn sync_channel<T>(most: usize) -> (SyncSender<T>, Receiver<T>) {
    let orders = (0..most).map(|_| AtomicU32::new(0)).collect();
    let slots = Arc::new(Slots { claimed: AtomicUsize::new(0), orders });
    (SyncSender(Arc::clone(&slots), PhantomData), Receiver(slots, Cell::new(0), PhantomData))
}

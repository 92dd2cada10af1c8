//! The exchange of orders between the threads of a daemon, in every order of its steps that C++'s memory model permits.
//!
//! The file of the daemon is compiled here with types of loom, which runs each model once for every such order.

#![cfg(test)]

#[path = "../../../emulation/daemon/src/orders.rs"]
mod orders;
mod sync;

use loom::model::Builder;
use loom::thread::{self, JoinHandle};
use orders::{OrderReceiver, OrderSender, orders};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use sync::{Alarm, Arc, Order};

/// Switches of threads in the models that are too large for all orders.
const SWITCHES: Option<usize> = Some(3);

/// Runs a model in every order of its steps, with as many switches of threads before their next wait as `switches` says,
/// if there is a limit. Prints how many orders there are.
fn each_order(switches: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    let count = std::sync::Arc::new(AtomicU64::new(0));
    let counted = std::sync::Arc::clone(&count);
    let mut builder = Builder::new();
    builder.preemption_bound = switches;
    builder.check(move || {
        counted.fetch_add(1, Relaxed);
        model();
    });
    println!("{} orders of steps", count.load(Relaxed));
}

/// A thread that sends these orders.
fn sends(sender: &OrderSender, numbers: &'static [Order]) -> JoinHandle<()> {
    let sender = sender.clone();
    thread::spawn(move || numbers.iter().for_each(|number| sender.send(*number).expect("room")))
}

/// All senders have ended, and what they did is visible.
fn the_rest(receiver: &OrderReceiver, senders: Vec<JoinHandle<()>>) -> Vec<Order> {
    senders.into_iter().for_each(|sender| sender.join().expect("no panic"));
    std::iter::from_fn(|| receiver.next()).collect()
}

/// A worker that looks a few times while orders come and once more when all have come, as before it goes to sleep.
fn look(alarm: Option<Arc<Alarm>>, threads: &'static [&'static [Order]], looks: usize) {
    let (sender, receiver) = orders(4, alarm);
    let senders = threads.iter().map(|numbers| sends(&sender, numbers)).collect();
    let mut found: Vec<Order> = (0..looks).filter_map(|_| receiver.next()).collect();
    found.extend(the_rest(&receiver, senders));
    for numbers in threads {
        let of_thread = found.iter().filter(|number| numbers.contains(number));
        assert!(of_thread.eq(*numbers), "{found:?}");
    }
    assert!(!receiver.alarm().is_some_and(Alarm::is_ringing), "the worker would never sleep");
}

#[test]
fn two_orders_of_one_thread_are_found() {
    each_order(None, || look(None, &[&[1, 2]], 3));
}

#[test]
fn orders_of_two_threads_are_found() {
    each_order(None, || look(None, &[&[1], &[2]], 1));
}

#[test]
fn an_alarm_is_silent_when_all_orders_are_found() {
    each_order(None, || look(Some(Arc::default()), &[&[1, 2]], 3));
}

#[test]
fn an_alarm_of_two_threads_is_silent_when_all_orders_are_found() {
    each_order(SWITCHES, || look(Some(Arc::default()), &[&[1], &[2]], 2));
}

/// A worker that sleeps whenever it finds nothing, and that only the alarm wakes.
fn sleep(threads: &'static [&'static [Order]]) {
    let (sender, receiver) = orders(4, Some(Arc::default()));
    let senders = threads.iter().map(|numbers| sends(&sender, numbers)).collect();
    let mut found = 0;
    while found < 2 {
        match receiver.next() {
            Some(_) => found += 1,
            None => receiver.alarm().expect("it has one").wait(),
        }
    }
    assert_eq!(the_rest(&receiver, senders), [0; 0]);
}

#[test]
fn a_worker_that_sleeps_is_woken_by_one_thread() {
    each_order(None, || sleep(&[&[1, 2]]));
}

#[test]
fn a_worker_that_sleeps_is_woken_by_two_threads() {
    each_order(SWITCHES, || sleep(&[&[1], &[2]]));
}

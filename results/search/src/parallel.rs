//! Independent runs on several threads.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The results of `perform` for all `tasks`, in the order of the tasks, on at most `threads` threads.
pub fn map_in_parallel<T: Sync, R: Send>(
    tasks: &[T],
    threads: usize,
    perform: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let take = || {
        let index = next.fetch_add(1, Ordering::Relaxed);
        tasks.get(index).map(|task| (index, perform(task)))
    };
    let work = || std::iter::from_fn(take).collect::<Vec<_>>();
    let mut results: Vec<(usize, R)> = thread::scope(|scope| {
        let threads = 0..threads.clamp(1, tasks.len().max(1));
        let workers: Vec<_> = threads.map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .flat_map(|work| work.join().unwrap_or_else(|e| resume_unwind(e)))
            .collect()
    });
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

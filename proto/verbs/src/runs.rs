//! Completions in runs: a thousand of one batch are one entry of an answer.

use crate::work::{Completion, Status};
use serde::{Deserialize, Serialize};

/// Completions that follow each other: the k-th has identifier and immediate data of the first + k, and is otherwise
/// equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The first.
    #[serde(flatten)]
    pub first: Completion,
    /// How many.
    pub count: u32,
}

impl Run {
    /// Whether all are successful.
    pub fn is_success(&self) -> bool {
        self.first.status == Status::Success
    }

    /// The k-th completion.
    pub fn get(&self, k: u32) -> Completion {
        Completion {
            id: self.first.id.wrapping_add(u64::from(k)),
            immediate: self.first.immediate.map(|immediate| immediate.wrapping_add(k)),
            ..self.first
        }
    }
}

/// Appends a completion to the last run, or begins a new one.
pub fn push(runs: &mut Vec<Run>, completion: Completion) {
    match runs.last_mut() {
        Some(run) if run.get(run.count) == completion => run.count += 1,
        _ => runs.push(Run { first: completion, count: 1 }),
    }
}

/// How many completions the runs have.
pub fn count(runs: &[Run]) -> u32 {
    runs.iter().map(|run| run.count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::Completed;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_hold_what_was_pushed(
            steps in prop::collection::vec((0u64..3, 0u32..3, prop::bool::ANY), 0..60),
        ) {
            let (mut id, mut immediate) = (u64::MAX - 20, u32::MAX - 20);
            let all: Vec<Completion> = steps.into_iter().map(|(by, at, has)| {
                (id, immediate) = (id.wrapping_add(by), immediate.wrapping_add(at));
                Completion {
                    id,
                    completed: Completed::Receive,
                    status: Status::Success,
                    length: 8,
                    immediate: has.then_some(immediate),
                    number: 17,
                    source: 0,
                    vendor: 0,
                }
            }).collect();
            let mut runs = Vec::new();
            all.iter().for_each(|completion| push(&mut runs, *completion));
            let again: Vec<Completion> =
                runs.iter().flat_map(|run| (0..run.count).map(|k| run.get(k))).collect();
            prop_assert_eq!(count(&runs) as usize, all.len());
            prop_assert_eq!(again, all);
        }
    }
}

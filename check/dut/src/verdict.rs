//! How a case with a device under test comes out: five verdicts, each with what was observed.

use serde::{Deserialize, Serialize};
use std::fmt::Display;

proto::words! {
    /// A verdict.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum Verdict {
        /// As the clause demands.
        Pass = "PASS",
        /// Otherwise.
        Fail = "FAIL",
        /// Otherwise, but the standard leaves it open or practice differs.
        Deviation = "DEVIATION",
        /// The device does not claim it, or refuses it.
        NotImplemented = "NOT-IMPLEMENTED",
        /// Host or device were too slow, or the tester's side failed. It says nothing about the device.
        Inconclusive = "INCONCLUSIVE",
    }
}

impl Verdict {
    /// Every verdict, in the order of reports.
    pub const ALL: [Verdict; 5] = [
        Verdict::Pass,
        Verdict::Fail,
        Verdict::Deviation,
        Verdict::NotImplemented,
        Verdict::Inconclusive,
    ];
}

/// Why a case did not pass: the verdict and what was observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Any verdict but PASS.
    pub verdict: Verdict,
    /// What was observed.
    pub observed: String,
}

impl Fault {
    /// FAIL.
    pub fn fail(observed: impl Display) -> Fault {
        Fault { verdict: Verdict::Fail, observed: observed.to_string() }
    }

    /// DEVIATION.
    pub fn deviation(observed: impl Display) -> Fault {
        Fault { verdict: Verdict::Deviation, observed: observed.to_string() }
    }

    /// NOT-IMPLEMENTED.
    pub fn absent(observed: impl Display) -> Fault {
        Fault { verdict: Verdict::NotImplemented, observed: observed.to_string() }
    }

    /// INCONCLUSIVE.
    pub fn unclear(observed: impl Display) -> Fault {
        Fault { verdict: Verdict::Inconclusive, observed: observed.to_string() }
    }

    /// The same with `what` before the observation.
    #[must_use]
    pub fn of(self, what: impl Display) -> Fault {
        Fault { observed: format!("{what}: {}", self.observed), ..self }
    }
}

/// What a case observed where all is as it must be, or the fault.
pub type Check<T = String> = Result<T, Fault>;

/// Fails with the text of the arguments of [`format!`] unless the condition holds.
macro_rules! must {
    ($condition:expr, $($message:tt)+) => {
        let holds: bool = $condition;
        if !holds {
            return Err($crate::verdict::Fault::fail(format!($($message)+)));
        }
    };
}
pub(crate) use must;

/// One case with one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Group and number.
    pub id: String,
    /// What it is about.
    pub title: String,
    /// Document and clause.
    pub clause: String,
    /// What the clause demands.
    pub expected: String,
    /// How it came out.
    pub verdict: Verdict,
    /// What was observed.
    pub observed: String,
    /// Name of the capture in the folder of evidence; none without such a folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<String>,
    /// Wall time in milliseconds.
    pub took_ms: u64,
}

impl Outcome {
    /// Its group.
    pub fn group(&self) -> &str {
        self.id.split('-').next().unwrap_or(&self.id)
    }
}

//! Verbs as messages: the calls of a test to a channel adapter of any make, and the answers.
//!
//! ```text
//!   test ── client ── lines ──▶ agent ── libibverbs ──▶ soft-RoCE, or any NIC of Linux
//!                           └─▶ agent ── host stack ──▶ nicd
//! ```
//!
//! An agent executes verbs and nothing else. It makes objects, posts work, polls completions, and fills and checks
//! memory by patterns, so that no payload crosses the line. [`call`] has the calls, [`answer`] the answers, [`work`]
//! work requests and completions, [`pattern`] and [`memory`] the content of memory, [`mod@line`] the form on the line, [`client`] the
//! test's side. The reference for authors of other agents is docs/reference/agent.md. Source: IBTA Vol 1, chapter 11.

pub mod answer;
pub mod attributes;
pub mod call;
pub mod client;
pub mod line;
pub mod memory;
pub mod objects;
pub mod octets;
pub mod pattern;
pub mod runs;
pub mod work;

/// The version of the protocol. It changes when an older agent or client would not understand a newer one.
pub const VERSION: u32 = 1;
/// Most work requests that one call posts, and most completions that one call polls.
pub const BATCH_MAX: u32 = 1024;
/// Most octets of memory that one call carries over the line.
pub const OCTETS_MAX: u32 = 16 * 1024;
/// Longest line of a call in octets, its end included.
pub const CALL_LIMIT: usize = 64 * 1024;
/// Longest line of an answer in octets, its end included.
pub const ANSWER_LIMIT: usize = 256 * 1024;

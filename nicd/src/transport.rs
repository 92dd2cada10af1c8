//! The channel adapter behind the port: queue pairs, who sends next, and what each frame means.
//!
//! ```text
//!   workload ──post──▶ Requester ─┐                      ┌─▶ Responder ──▶ ACK, NAK, RNR ─┐
//!                                 ▼                      │       ▲                        ▼
//!                     Schedule (whose turn?) ──▶ frame   │   NotificationPoint ──▶ CNP, BECN
//!                                 ▲             to port  │                                │
//!   BECN, CNP ──▶ Pacer (may it send?)                 frame                    control frames,
//!                                                    from port                ahead of data
//! ```
//!
//! [`queue_pair`] joins the halves of a conversation, which `connect` begins with its first frame; until then its
//! messages wait among the [`prospects`]. `transmit` and `receive` are the two directions of this file's
//! [`ChannelAdapter`]. Frames are made when they leave, from descriptors.

pub mod adapter;
mod bulletin;
mod connect;
mod in_order;
mod lane;
mod memory_region;
mod message;
mod notices;
mod peers;
mod prospects;
pub mod queue_pair;
mod reading;
mod receive;
mod receive_buffers;
mod receiver_not_ready;
mod requester;
mod resequencer;
mod responder;
mod schedule;
mod tags;
mod test_flow;
mod transmit;

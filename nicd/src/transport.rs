//! The channel adapter behind the port: queue pairs, the order in which they send, and the handling of
//! frames.
//!
//! ```text
//!   workload ──post──▶ Requester ─┐                      ┌─▶ Responder ──▶ ACK, NAK, RNR ─┐
//!                                 ▼                      │       ▲                        ▼
//!                     Scheduler (next sender) ──▶ frame  │   NotificationPoint ──▶ CNP, BECN
//!                                 ▲            to port   │                                │
//!   BECN, CNP ──▶ Pacer (may it send?)                 frame                    control frames,
//!                                                    from port                  ahead of data
//! ```
//!
//! A queue pair ([`queue_pair`]) is made when its first frame leaves or arrives (`connect`). Until then its
//! messages wait in `pending_connections`. `transmit` and `receive` are the two directions of the
//! [`adapter::ChannelAdapter`]. Frames are made from message descriptors when they leave.

pub mod adapter;
mod congestion_tags;
mod connect;
mod connections;
mod flow_report;
pub mod foreign;
mod lane;
mod memory_region;
pub(crate) mod message;
mod multicast;
mod notification_demux;
mod paths;
mod pending_connections;
pub mod queue_pair;
mod reading;
pub mod receive;
mod receive_buffers;
mod reorder_buffer;
mod requester;
mod resequencing;
mod responder;
pub(crate) mod rnr_timer;
mod scheduler;
mod test_frames;
mod transmit;

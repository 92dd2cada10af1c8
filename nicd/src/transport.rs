//! The channel adapter behind the port: queue pairs, who sends next, and what each frame means.
//!
//! ```text
//!   workload ──post──▶ Requester ─┐                      ┌─▶ Responder ──▶ ACK, NAK, RNR ─┐
//!                                 ▼                      │       ▲                        ▼
//!                     Scheduler (whose turn?) ──▶ frame   │   NotificationPoint ──▶ CNP, BECN
//!                                 ▲             to port  │                                │
//!   BECN, CNP ──▶ Pacer (may it send?)                 frame                    control frames,
//!                                                    from port                ahead of data
//! ```
//!
//! [`queue_pair`] joins the halves of a conversation, which `connect` begins with its first frame; until then its
//! messages wait among the [`prospects`]. `transmit` and `receive` are the two directions of this file's
//! [`ChannelAdapter`]. Frames are made when they leave, from descriptors.

pub mod adapter;
mod congestion_tags;
mod connect;
mod connections;
mod flow_report;
mod lane;
mod memory_region;
mod message;
mod notification_demux;
mod pending_connections;
pub mod queue_pair;
mod reading;
pub mod receive;
mod receive_buffers;
mod reorder_buffer;
mod requester;
mod resequencing;
mod responder;
mod rnr_timer;
mod scheduler;
mod test_frames;
mod transmit;

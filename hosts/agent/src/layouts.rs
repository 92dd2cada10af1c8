//! The parts of `infiniband/verbs.h` that the agent uses, as its ABI (libibverbs.so.1) lays them out.

use std::ffi::{c_int, c_uint, c_void};

/// Only pointers to it are used.
#[repr(C)]
pub struct Opaque {
    _private: [u8; 0],
}

/// `struct ibv_context`, up to the last operation that is used.
#[repr(C)]
pub struct Context {
    pub device: *mut Opaque,
    pub operations: Operations,
}

type PollCq = unsafe extern "C" fn(*mut Cq, c_int, *mut WorkCompletion) -> c_int;
type PostSend = unsafe extern "C" fn(*mut Qp, *mut SendRequest, *mut *mut SendRequest) -> c_int;
type PostReceive =
    unsafe extern "C" fn(*mut Qp, *mut ReceiveRequest, *mut *mut ReceiveRequest) -> c_int;

/// `struct ibv_context_ops`.
#[repr(C)]
pub struct Operations {
    before_poll: [*mut c_void; 11],
    pub poll_cq: PollCq,
    before_post: [*mut c_void; 13],
    pub post_send: PostSend,
    pub post_receive: PostReceive,
}

/// `struct ibv_mr`.
#[repr(C)]
pub struct Mr {
    context: *mut Context,
    pd: *mut Opaque,
    address: *mut c_void,
    length: usize,
    handle: u32,
    pub lkey: u32,
    pub rkey: u32,
}

/// `struct ibv_cq`, its beginning.
#[repr(C)]
pub struct Cq {
    pub context: *mut Context,
}

/// `struct ibv_qp`, its beginning.
#[repr(C)]
pub struct Qp {
    pub context: *mut Context,
    user: *mut c_void,
    pd: *mut Opaque,
    queues: [*mut Opaque; 3],
    handle: u32,
    pub number: u32,
}

/// `struct ibv_qp_cap`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Capacity {
    pub send_requests: u32,
    pub receive_requests: u32,
    pub send_places: u32,
    pub receive_places: u32,
    pub inline_octets: u32,
}

/// `struct ibv_qp_init_attr`.
#[repr(C)]
pub struct QpInit {
    pub user: *mut c_void,
    pub send_cq: *mut Cq,
    pub receive_cq: *mut Cq,
    pub srq: *mut Opaque,
    pub capacity: Capacity,
    pub kind: c_uint,
    pub signals_all: c_int,
}

/// `struct ibv_ah_attr` with its `struct ibv_global_route`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Address {
    pub gid: [u8; 16],
    pub flow_label: u32,
    pub gid_index: u8,
    pub hop_limit: u8,
    pub traffic_class: u8,
    /// The structure of the route has an alignment of 8 by the GID, which C declares as a union with 64-bit numbers.
    pub route_padding: u8,
    pub lid: u16,
    pub service_level: u8,
    pub source_path_bits: u8,
    pub static_rate: u8,
    pub is_global: u8,
    pub port: u8,
    pub padding: u8,
}

/// `struct ibv_qp_attr`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct QpAttributes {
    pub state: c_uint,
    pub current_state: c_uint,
    pub path_mtu: c_uint,
    pub migration: c_uint,
    pub qkey: u32,
    pub receive_psn: u32,
    pub send_psn: u32,
    pub destination: u32,
    pub access: c_uint,
    pub capacity: Capacity,
    pub address: Address,
    pub alternate: Address,
    pub pkey_index: u16,
    pub alternate_pkey_index: u16,
    pub notifies_drain: u8,
    pub is_draining: u8,
    pub initiator_depth: u8,
    pub responder_resources: u8,
    pub min_rnr_timer: u8,
    pub port: u8,
    pub timeout: u8,
    pub retry_count: u8,
    pub rnr_retry: u8,
    pub alternate_port: u8,
    pub alternate_timeout: u8,
    pub rate_limit: u32,
    pub padding: u32,
}

/// `struct ibv_sge`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Place {
    pub address: u64,
    pub length: u32,
    pub lkey: u32,
}

/// `struct ibv_recv_wr`.
#[repr(C)]
pub struct ReceiveRequest {
    pub id: u64,
    pub next: *mut ReceiveRequest,
    pub places: *mut Place,
    pub places_count: c_int,
}

/// `struct ibv_send_wr`. Its union `wr` is here eight words of 32 or four of 64 bits.
#[repr(C)]
pub struct SendRequest {
    pub id: u64,
    pub next: *mut SendRequest,
    pub places: *mut Place,
    pub places_count: c_int,
    pub opcode: c_uint,
    pub flags: c_uint,
    /// Big-endian.
    pub immediate: u32,
    pub remote: RemotePart,
    /// For extended connections, memory windows and segmentation.
    pub rest: [u64; 7],
}

/// `wr` of [`SendRequest`].
#[repr(C)]
#[derive(Clone, Copy)]
pub union RemotePart {
    pub rdma: RdmaPart,
    pub atomic: AtomicPart,
    pub datagram: DatagramPart,
}

/// `wr.rdma`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RdmaPart {
    pub address: u64,
    pub rkey: u32,
}

/// `wr.atomic`
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct AtomicPart {
    pub address: u64,
    pub compare_or_add: u64,
    pub swap: u64,
    pub rkey: u32,
}

/// `wr.ud`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DatagramPart {
    pub ah: *mut Opaque,
    pub number: u32,
    pub qkey: u32,
}

/// `struct ibv_wc`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct WorkCompletion {
    pub id: u64,
    pub status: c_uint,
    pub opcode: c_uint,
    pub vendor_error: u32,
    pub octets: u32,
    /// Big-endian.
    pub immediate: u32,
    pub number: u32,
    pub source: u32,
    pub flags: c_uint,
    pub pkey_index: u16,
    source_lid: u16,
    service_level: u8,
    path_bits: u8,
}

/// `struct ibv_port_attr`, with room for later members.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Port {
    pub state: c_uint,
    pub max_mtu: c_uint,
    pub active_mtu: c_uint,
    pub gids: c_int,
    capabilities: u32,
    pub message_max: u32,
    rest: [u64; 8],
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    /// Sizes and offsets that a C compiler gives for the header of rdma-core 44 on x86-64.
    #[test]
    fn layouts_are_those_of_the_header() {
        assert_eq!(offset_of!(Context, operations), 8);
        assert_eq!(offset_of!(Operations, poll_cq), 88);
        assert_eq!(
            (offset_of!(Operations, post_send), offset_of!(Operations, post_receive)),
            (200, 208)
        );
        assert_eq!((size_of::<Mr>(), offset_of!(Mr, lkey), offset_of!(Mr, rkey)), (48, 36, 40));
        assert_eq!(offset_of!(Qp, number), 52);
        assert_eq!((size_of::<QpInit>(), size_of::<Capacity>()), (64, 20));
        let init = [
            offset_of!(QpInit, capacity),
            offset_of!(QpInit, kind),
            offset_of!(QpInit, signals_all),
        ];
        assert_eq!(init, [32, 52, 56]);
        assert_eq!((size_of::<Place>(), size_of::<ReceiveRequest>()), (16, 32));
    }

    #[test]
    fn attributes_have_the_layout_of_the_header() {
        let address = [
            offset_of!(Address, flow_label),
            offset_of!(Address, gid_index),
            offset_of!(Address, hop_limit),
            offset_of!(Address, traffic_class),
            offset_of!(Address, lid),
            offset_of!(Address, service_level),
            offset_of!(Address, static_rate),
            offset_of!(Address, is_global),
            offset_of!(Address, port),
            size_of::<Address>(),
        ];
        assert_eq!(address, [16, 20, 21, 22, 24, 26, 28, 29, 30, 32]);
        let attributes = [
            offset_of!(QpAttributes, path_mtu),
            offset_of!(QpAttributes, qkey),
            offset_of!(QpAttributes, destination),
            offset_of!(QpAttributes, access),
            offset_of!(QpAttributes, capacity),
            offset_of!(QpAttributes, address),
            offset_of!(QpAttributes, alternate),
            offset_of!(QpAttributes, pkey_index),
            offset_of!(QpAttributes, initiator_depth),
            offset_of!(QpAttributes, min_rnr_timer),
            offset_of!(QpAttributes, rnr_retry),
            offset_of!(QpAttributes, rate_limit),
            size_of::<QpAttributes>(),
        ];
        assert_eq!(attributes, [8, 16, 28, 32, 36, 56, 88, 120, 126, 128, 132, 136, 144]);
    }

    #[test]
    fn work_has_the_layout_of_the_header() {
        let request = [
            offset_of!(SendRequest, places),
            offset_of!(SendRequest, places_count),
            offset_of!(SendRequest, opcode),
            offset_of!(SendRequest, flags),
            offset_of!(SendRequest, immediate),
            offset_of!(SendRequest, remote),
            size_of::<SendRequest>(),
        ];
        assert_eq!(request, [16, 24, 28, 32, 36, 40, 128]);
        assert_eq!(offset_of!(RdmaPart, rkey), 8);
        let atomic = [
            offset_of!(AtomicPart, compare_or_add),
            offset_of!(AtomicPart, swap),
            offset_of!(AtomicPart, rkey),
        ];
        assert_eq!(atomic, [8, 16, 24]);
        assert_eq!((offset_of!(DatagramPart, number), offset_of!(DatagramPart, qkey)), (8, 12));
        let completion = [
            offset_of!(WorkCompletion, status),
            offset_of!(WorkCompletion, opcode),
            offset_of!(WorkCompletion, octets),
            offset_of!(WorkCompletion, immediate),
            offset_of!(WorkCompletion, number),
            offset_of!(WorkCompletion, source),
            offset_of!(WorkCompletion, flags),
            size_of::<WorkCompletion>(),
        ];
        assert_eq!(completion, [8, 12, 20, 24, 28, 32, 36, 48]);
        assert!(size_of::<Port>() >= 52 && offset_of!(Port, message_max) == 20);
    }
}

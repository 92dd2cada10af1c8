//! The attributes of performance management that the agent answers. Source: IBTA Vol 1, 16.1.3 and annex A10.
//!
//! Places count from octet 64 of the datagram. The first octet of every attribute but the first is reserved.

use super::attributes;

attributes! {
    /// ClassPortInfo. Source: IBTA Vol 1, 13.4.8.1.
    class_port_info 0x0001 "ClassPortInfo" [72] {
        BASE_VERSION "base_version" 0 + 0, 8 Read;
        CLASS_VERSION "class_version" 1 + 0, 8 Read;
        CAPABILITY_MASK "capability_mask" 2 + 0, 16 Read;
        CAPABILITY_MASK2 "capability_mask2" 4 + 0, 27 Read;
        RESP_TIME "resp_time" 4 + 27, 5 Read;
    }
    /// PortCounters: they stop at their maximum. Source: IBTA Vol 1, 16.1.3.5.
    port_counters 0x0012 "PortCounters" [44] {
        PORT_SELECT "port_select" 1 + 0, 8 Rule;
        COUNTER_SELECT "counter_select" 2 + 0, 16 Rule;
        SYMBOL_ERRORS "symbol_errors" 4 + 0, 16 Rule;
        LINK_RECOVERIES "link_recoveries" 6 + 0, 8 Rule;
        LINK_DOWNED "link_downed" 7 + 0, 8 Rule;
        RCV_ERRORS "rcv_errors" 8 + 0, 16 Rule;
        RCV_REMOTE_PHYSICAL_ERRORS "rcv_remote_physical_errors" 10 + 0, 16 Rule;
        RCV_SWITCH_RELAY_ERRORS "rcv_switch_relay_errors" 12 + 0, 16 Rule;
        XMIT_DISCARDS "xmit_discards" 14 + 0, 16 Rule;
        XMIT_CONSTRAINT_ERRORS "xmit_constraint_errors" 16 + 0, 8 Rule;
        RCV_CONSTRAINT_ERRORS "rcv_constraint_errors" 17 + 0, 8 Rule;
        COUNTER_SELECT2 "counter_select2" 18 + 0, 8 Rule;
        LOCAL_INTEGRITY_ERRORS "local_integrity_errors" 19 + 0, 4 Rule;
        BUFFER_OVERRUNS "buffer_overruns" 19 + 4, 4 Rule;
        VL15_DROPPED "vl15_dropped" 22 + 0, 16 Rule;
        XMIT_DATA "xmit_data" 24 + 0, 32 Rule;
        RCV_DATA "rcv_data" 28 + 0, 32 Rule;
        XMIT_PACKETS "xmit_packets" 32 + 0, 32 Rule;
        RCV_PACKETS "rcv_packets" 36 + 0, 32 Rule;
        XMIT_WAIT "xmit_wait" 40 + 0, 32 Rule;
    }
    /// PortCountersExtended: they wrap. Source: IBTA Vol 1, 16.1.4.11.
    port_counters_extended 0x001d "PortCountersExtended" [72] {
        PORT_SELECT "port_select" 1 + 0, 8 Rule;
        COUNTER_SELECT "counter_select" 2 + 0, 16 Rule;
        XMIT_DATA "xmit_data" 8 + 0, 64 Rule;
        RCV_DATA "rcv_data" 16 + 0, 64 Rule;
        XMIT_PACKETS "xmit_packets" 24 + 0, 64 Rule;
        RCV_PACKETS "rcv_packets" 32 + 0, 64 Rule;
        UNICAST_XMIT_PACKETS "unicast_xmit_packets" 40 + 0, 64 Rule;
        UNICAST_RCV_PACKETS "unicast_rcv_packets" 48 + 0, 64 Rule;
        MULTICAST_XMIT_PACKETS "multicast_xmit_packets" 56 + 0, 64 Rule;
        MULTICAST_RCV_PACKETS "multicast_rcv_packets" 64 + 0, 64 Rule;
    }
    /// PortRcvConCtrl: marked packets received. Source: IBTA Vol 1, A10.
    port_rcv_con_ctrl 0x0031 "PortRcvConCtrl" [12] {
        PORT_SELECT "port_select" 1 + 0, 8 Rule;
        COUNTER_SELECT "counter_select" 2 + 0, 16 Rule;
        RCV_FECN "rcv_fecn" 4 + 0, 32 Rule;
        RCV_BECN "rcv_becn" 8 + 0, 32 Rule;
    }
}

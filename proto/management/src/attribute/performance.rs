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
    /// PortRcvErrorDetails: what the errors were. Source: IBTA Vol 1, 16.1.4.2.
    port_rcv_error_details 0x0015 "PortRcvErrorDetails" [16] {
        PORT_SELECT "port_select" 1 + 0, 8 Rule;
        COUNTER_SELECT "counter_select" 2 + 0, 16 Rule;
        LOCAL_PHYSICAL_ERRORS "local_physical_errors" 4 + 0, 16 Rule;
        MALFORMED_PACKETS "malformed_packet_errors" 6 + 0, 16 Rule;
        BUFFER_OVERRUNS "buffer_overrun_errors" 8 + 0, 16 Rule;
        DLID_MAPPING_ERRORS "dlid_mapping_errors" 10 + 0, 16 Rule;
        VL_MAPPING_ERRORS "vl_mapping_errors" 12 + 0, 16 Rule;
        LOOPING_ERRORS "looping_errors" 14 + 0, 16 Rule;
    }
    /// PortXmitDiscardDetails: why packets were discarded. Source: IBTA Vol 1, 16.1.4.3.
    port_xmit_discard_details 0x0016 "PortXmitDiscardDetails" [12] {
        PORT_SELECT "port_select" 1 + 0, 8 Rule;
        COUNTER_SELECT "counter_select" 2 + 0, 16 Rule;
        INACTIVE_DISCARDS "inactive_discards" 4 + 0, 16 Rule;
        NEIGHBOR_MTU_DISCARDS "neighbor_mtu_discards" 6 + 0, 16 Rule;
        LIFETIME_DISCARDS "sw_lifetime_limit_discards" 8 + 0, 16 Rule;
        HOQ_LIFETIME_DISCARDS "sw_hoq_lifetime_limit_discards" 10 + 0, 16 Rule;
    }
    /// PortFlowCtlCounters: link packets. Source: IBTA Vol 1, 16.1.4.5.
    port_flow_ctl_counters 0x0018 "PortFlowCtlCounters" [12] {
        PORT_SELECT "port_select" 1 + 0, 8 Rule;
        COUNTER_SELECT "counter_select" 2 + 0, 16 Rule;
        XMIT_FLOW_PACKETS "xmit_flow_pkts" 4 + 0, 32 Rule;
        RCV_FLOW_PACKETS "rcv_flow_pkts" 8 + 0, 32 Rule;
    }
    /// PortVLXmitWaitCounters: XmitWait of each lane. Source: IBTA Vol 1, 16.1.4.9.
    port_vl_xmit_wait 0x001c "PortVLXmitWaitCounters" [36] {
        PORT_SELECT "port_select" 1 + 0, 8 Rule;
        COUNTER_SELECT "counter_select" 2 + 0, 16 Rule;
        WAIT "vl_xmit_wait" 4 + 0, 16 Rule * 16 by 16;
    }
    /// SwPortVLCongestion: packets that a switch marked, by lane. Source: IBTA Vol 1, A10.
    sw_port_vl_congestion 0x0030 "SwPortVLCongestion" [36] {
        PORT_SELECT "port_select" 1 + 0, 8 Rule;
        COUNTER_SELECT "counter_select" 2 + 0, 16 Rule;
        MARKED "sw_port_vl_congestion" 4 + 0, 16 Rule * 16 by 16;
    }
    /// PortRcvConCtrl: marked packets received. Source: IBTA Vol 1, A10.
    port_rcv_con_ctrl 0x0031 "PortRcvConCtrl" [12] {
        PORT_SELECT "port_select" 1 + 0, 8 Rule;
        COUNTER_SELECT "counter_select" 2 + 0, 16 Rule;
        RCV_FECN "rcv_fecn" 4 + 0, 32 Rule;
        RCV_BECN "rcv_becn" 8 + 0, 32 Rule;
    }
    /// PortSLRcvFECN: packets received with FECN, by service level. Source: IBTA Vol 1, A10.
    port_sl_rcv_fecn 0x0032 "PortSLRcvFECN" [68] {
        PORT_SELECT "port_select" 1 + 0, 8 Rule;
        COUNTER_SELECT "counter_select" 2 + 0, 16 Rule;
        FECN "sl_rcv_fecn" 4 + 0, 32 Rule * 16 by 32;
    }
    /// PortSLRcvBECN: packets received with BECN, by service level. Source: IBTA Vol 1, A10.
    port_sl_rcv_becn 0x0033 "PortSLRcvBECN" [68] {
        PORT_SELECT "port_select" 1 + 0, 8 Rule;
        COUNTER_SELECT "counter_select" 2 + 0, 16 Rule;
        BECN "sl_rcv_becn" 4 + 0, 32 Rule * 16 by 32;
    }
    /// PortXmitConCtrl: time for which the congestion control table held packets back. Source: IBTA Vol 1, A10.
    port_xmit_con_ctrl 0x0034 "PortXmitConCtrl" [8] {
        PORT_SELECT "port_select" 1 + 0, 8 Rule;
        COUNTER_SELECT "counter_select" 2 + 0, 16 Rule;
        TIME_CONGESTED "xmit_time_cong" 4 + 0, 32 Rule;
    }
    /// PortVLXmitTimeCong: the same by lane. Source: IBTA Vol 1, A10.
    port_vl_xmit_time_cong 0x0035 "PortVLXmitTimeCong" [68] {
        PORT_SELECT "port_select" 1 + 0, 8 Rule;
        COUNTER_SELECT "counter_select" 2 + 0, 16 Rule;
        TIME_CONGESTED "vl_xmit_time_cong" 4 + 0, 32 Rule * 16 by 32;
    }
    /// PortXmitDataSL: words sent, by service level. Source: IBTA Vol 1, 16.1.4.12.
    port_xmit_data_sl 0x0036 "PortXmitDataSL" [68] {
        PORT_SELECT "port_select" 1 + 0, 8 Rule;
        COUNTER_SELECT "counter_select" 2 + 0, 16 Rule;
        DATA "xmit_data_sl" 4 + 0, 32 Rule * 16 by 32;
    }
    /// PortRcvDataSL: words received, by service level. Source: IBTA Vol 1, 16.1.4.13.
    port_rcv_data_sl 0x0037 "PortRcvDataSL" [68] {
        PORT_SELECT "port_select" 1 + 0, 8 Rule;
        COUNTER_SELECT "counter_select" 2 + 0, 16 Rule;
        DATA "rcv_data_sl" 4 + 0, 32 Rule * 16 by 32;
    }
}

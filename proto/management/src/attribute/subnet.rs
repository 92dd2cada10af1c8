//! The attributes of subnet management. Source: IBTA Vol 1, 14.2.5.

use super::attributes;

attributes! {
    /// Notice: what a trap reports. Source: IBTA Vol 1, 13.4.8.2.
    notice 0x0002 "Notice" [64] {
        GENERIC "generic" 0 + 0, 1 Write;
        TYPE "type" 0 + 1, 7 Write;
        PRODUCER "producer" 1 + 0, 24 Write;
        TRAP "trap" 4 + 0, 16 Write;
        ISSUER_LID "issuer_lid" 6 + 0, 16 Write;
        TOGGLE "toggle" 8 + 0, 1 Write;
        COUNT "count" 8 + 1, 15 Write;
        DETAILS "details" 10 + 0, 8 Write * 54 by 8;
    }
    /// NodeDescription: UTF-8, padded with zeros. Source: IBTA Vol 1, 14.2.5.2.
    node_description 0x0010 "NodeDescription" [64] {
        TEXT "text" 0 + 0, 8 Read * 64 by 8;
    }
    /// NodeInfo: what a node is. Source: IBTA Vol 1, 14.2.5.3.
    node_info 0x0011 "NodeInfo" [40] {
        BASE_VERSION "base_version" 0 + 0, 8 Read;
        CLASS_VERSION "class_version" 1 + 0, 8 Read;
        NODE_TYPE "node_type" 2 + 0, 8 Read;
        NUM_PORTS "num_ports" 3 + 0, 8 Read;
        SYSTEM_GUID "system_guid" 4 + 0, 64 Read;
        NODE_GUID "node_guid" 12 + 0, 64 Read;
        PORT_GUID "port_guid" 20 + 0, 64 Read;
        PARTITION_CAP "partition_cap" 28 + 0, 16 Read;
        DEVICE_ID "device_id" 30 + 0, 16 Read;
        REVISION "revision" 32 + 0, 32 Read;
        LOCAL_PORT "local_port" 36 + 0, 8 Read;
        VENDOR_ID "vendor_id" 37 + 0, 24 Read;
    }
    /// SwitchInfo: tables and limits of a switch. Source: IBTA Vol 1, 14.2.5.4.
    switch_info 0x0012 "SwitchInfo" [20] {
        LINEAR_FDB_CAP "linear_fdb_cap" 0 + 0, 16 Read;
        RANDOM_FDB_CAP "random_fdb_cap" 2 + 0, 16 Read;
        MULTICAST_FDB_CAP "multicast_fdb_cap" 4 + 0, 16 Read;
        LINEAR_FDB_TOP "linear_fdb_top" 6 + 0, 16 Write;
        DEFAULT_PORT "default_port" 8 + 0, 8 Write;
        DEFAULT_MULTICAST_PRIMARY "default_multicast_primary" 9 + 0, 8 Write;
        DEFAULT_MULTICAST_NOT_PRIMARY "default_multicast_not_primary" 10 + 0, 8 Write;
        LIFE_TIME "life_time" 11 + 0, 5 Write;
        PORT_STATE_CHANGE "port_state_change" 11 + 5, 1 Rule;
        OPTIMIZED_SL_TO_VL "optimized_sl_to_vl" 11 + 6, 2 Write;
        LIDS_PER_PORT "lids_per_port" 12 + 0, 16 Read;
        PARTITION_ENFORCEMENT_CAP "partition_enforcement_cap" 14 + 0, 16 Read;
        ENFORCEMENT "enforcement" 16 + 0, 4 Read;
        ENHANCED_PORT0 "enhanced_port0" 16 + 4, 1 Read;
        MULTICAST_FDB_TOP "multicast_fdb_top" 18 + 0, 16 Write;
    }
    /// GUIDInfo: a block of eight GUIDs of a port. Source: IBTA Vol 1, 14.2.5.5.
    guid_info 0x0014 "GUIDInfo" [64] {
        GUID "guid" 0 + 0, 64 Write * 8 by 64;
    }
    /// PortInfo: state, address and limits of a port. Source: IBTA Vol 1, 14.2.5.6.
    port_info 0x0015 "PortInfo" [64] {
        M_KEY "m_key" 0 + 0, 64 Rule;
        GID_PREFIX "gid_prefix" 8 + 0, 64 Rule;
        LID "lid" 16 + 0, 16 Rule;
        MASTER_SM_LID "master_sm_lid" 18 + 0, 16 Rule;
        CAPABILITY_MASK "capability_mask" 20 + 0, 32 Read;
        DIAG_CODE "diag_code" 24 + 0, 16 Read;
        M_KEY_LEASE "m_key_lease" 26 + 0, 16 Rule;
        LOCAL_PORT "local_port" 28 + 0, 8 Read;
        LINK_WIDTH_ENABLED "link_width_enabled" 29 + 0, 8 Rule;
        LINK_WIDTH_SUPPORTED "link_width_supported" 30 + 0, 8 Read;
        LINK_WIDTH_ACTIVE "link_width_active" 31 + 0, 8 Read;
        LINK_SPEED_SUPPORTED "link_speed_supported" 32 + 0, 4 Read;
        PORT_STATE "port_state" 32 + 4, 4 Rule;
        PHYS_STATE "phys_state" 33 + 0, 4 Rule;
        LINK_DOWN_DEFAULT "link_down_default" 33 + 4, 4 Rule;
        M_KEY_PROTECT "m_key_protect" 34 + 0, 2 Rule;
        LMC "lmc" 34 + 5, 3 Rule;
        LINK_SPEED_ACTIVE "link_speed_active" 35 + 0, 4 Read;
        LINK_SPEED_ENABLED "link_speed_enabled" 35 + 4, 4 Rule;
        NEIGHBOR_MTU "neighbor_mtu" 36 + 0, 4 Rule;
        MASTER_SM_SL "master_sm_sl" 36 + 4, 4 Write;
        VL_CAP "vl_cap" 37 + 0, 4 Read;
        INIT_TYPE "init_type" 37 + 4, 4 Read;
        VL_HIGH_LIMIT "vl_high_limit" 38 + 0, 8 Write;
        VL_ARB_HIGH_CAP "vl_arb_high_cap" 39 + 0, 8 Read;
        VL_ARB_LOW_CAP "vl_arb_low_cap" 40 + 0, 8 Read;
        INIT_TYPE_REPLY "init_type_reply" 41 + 0, 4 Write;
        MTU_CAP "mtu_cap" 41 + 4, 4 Read;
        VL_STALL_COUNT "vl_stall_count" 42 + 0, 3 Write;
        HOQ_LIFE "hoq_life" 42 + 3, 5 Write;
        OPERATIONAL_VLS "operational_vls" 43 + 0, 4 Rule;
        ENFORCE_PARTITIONS_IN "partition_enforcement_inbound" 43 + 4, 1 Write;
        ENFORCE_PARTITIONS_OUT "partition_enforcement_outbound" 43 + 5, 1 Write;
        FILTER_RAW_IN "filter_raw_inbound" 43 + 6, 1 Write;
        FILTER_RAW_OUT "filter_raw_outbound" 43 + 7, 1 Write;
        M_KEY_VIOLATIONS "m_key_violations" 44 + 0, 16 Rule;
        P_KEY_VIOLATIONS "p_key_violations" 46 + 0, 16 Rule;
        Q_KEY_VIOLATIONS "q_key_violations" 48 + 0, 16 Rule;
        GUID_CAP "guid_cap" 50 + 0, 8 Read;
        CLIENT_REREGISTER "client_reregister" 51 + 0, 1 Rule;
        SUBNET_TIMEOUT "subnet_timeout" 51 + 3, 5 Rule;
        RESP_TIME "resp_time" 52 + 3, 5 Read;
        LOCAL_PHYSICAL_ERRORS "local_phys_errors" 53 + 0, 4 Write;
        OVERRUN_ERRORS "overrun_errors" 53 + 4, 4 Write;
        MAX_CREDIT_HINT "max_credit_hint" 54 + 0, 16 Read;
        ROUND_TRIP_LATENCY "round_trip_latency" 57 + 0, 24 Read;
        CAPABILITY_MASK2 "capability_mask2" 60 + 0, 16 Read;
        LINK_SPEED_EXT_ACTIVE "link_speed_ext_active" 62 + 0, 4 Read;
        LINK_SPEED_EXT_SUPPORTED "link_speed_ext_supported" 62 + 4, 4 Read;
        LINK_SPEED_EXT_ENABLED "link_speed_ext_enabled" 63 + 3, 5 Write;
    }
    /// P_KeyTable: a block of 32 partition keys. Source: IBTA Vol 1, 14.2.5.7.
    p_key_table 0x0016 "P_KeyTable" [64] {
        P_KEY "p_key" 0 + 0, 16 Write * 32 by 16;
    }
    /// SLtoVLMappingTable: the lane of each service level. Source: IBTA Vol 1, 14.2.5.8.
    sl_to_vl 0x0017 "SLtoVLMappingTable" [8] {
        VL "vl" 0 + 0, 4 Write * 16 by 4;
    }
    /// VLArbitrationTable: a block of 32 lanes with their weights. Source: IBTA Vol 1, 14.2.5.9.
    vl_arbitration 0x0018 "VLArbitrationTable" [64] {
        VL "vl" 0 + 4, 4 Write * 32 by 16;
        WEIGHT "weight" 1 + 0, 8 Write * 32 by 16;
    }
    /// LinearForwardingTable: a block of 64 output ports, by LID. Source: IBTA Vol 1, 14.2.5.10.
    linear_forwarding 0x0019 "LinearForwardingTable" [64] {
        PORT "port" 0 + 0, 8 Write * 64 by 8;
    }
    /// MulticastForwardingTable: a block of 32 masks of 16 ports. Source: IBTA Vol 1, 14.2.5.12.
    multicast_forwarding 0x001b "MulticastForwardingTable" [64] {
        PORTS "ports" 0 + 0, 16 Write * 32 by 16;
    }
    /// SMInfo: the state of a subnet manager. Source: IBTA Vol 1, 14.2.5.13.
    sm_info 0x0020 "SMInfo" [21] {
        GUID "guid" 0 + 0, 64 Write;
        SM_KEY "sm_key" 8 + 0, 64 Write;
        ACT_COUNT "act_count" 16 + 0, 32 Write;
        PRIORITY "priority" 20 + 0, 4 Write;
        STATE "state" 20 + 4, 4 Write;
    }
}

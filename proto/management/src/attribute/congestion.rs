//! The attributes of congestion control. Source: IBTA Vol 1, annex A10.4.3.
//!
//! Places count from octet 64 of the datagram, those of CongestionLog from octet 32.

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
    /// CongestionInfo: what a node supports.
    congestion_info 0x0011 "CongestionInfo" [4] {
        FLAGS "flags" 0 + 0, 16 Read;
        CONTROL_TABLE_CAP "control_table_cap" 2 + 0, 8 Read;
    }
    /// CongestionKeyInfo: the key that protects the other attributes.
    congestion_key_info 0x0012 "CongestionKeyInfo" [14] {
        KEY "cc_key" 0 + 0, 64 Write;
        PROTECT "protect" 8 + 0, 1 Write;
        LEASE "lease" 10 + 0, 16 Write;
        VIOLATIONS "violations" 12 + 0, 16 Rule;
    }
    /// CongestionLog: the latest events. A CA's form; entries begin at octet 12.
    congestion_log 0x0013 "CongestionLog" [224] {
        LOG_TYPE "log_type" 0 + 0, 8 Read;
        FLAGS "flags" 1 + 0, 8 Read;
        EVENT_COUNTER "event_counter" 2 + 0, 16 Read;
        SL_MAP "sl_map" 4 + 0, 16 Read;
        TIME_STAMP "time_stamp" 8 + 0, 32 Read;
    }
    /// SwitchCongestionSetting: thresholds and marking of a whole switch.
    switch_congestion_setting 0x0014 "SwitchCongestionSetting" [76] {
        CONTROL_MAP "control_map" 0 + 0, 32 Rule;
        VICTIM_MASK "victim_mask" 4 + 0, 64 Rule * 4 by 64;
        CREDIT_MASK "credit_mask" 36 + 0, 64 Rule * 4 by 64;
        THRESHOLD "threshold" 68 + 0, 4 Rule;
        PACKET_SIZE "packet_size" 69 + 0, 8 Rule;
        CS_THRESHOLD "cs_threshold" 70 + 0, 4 Rule;
        CS_RETURN_DELAY "cs_return_delay" 72 + 0, 16 Rule;
        MARKING_RATE "marking_rate" 74 + 0, 16 Rule;
    }
    /// SwitchPortCongestionSetting: a block of 32 ports with settings of their own.
    switch_port_congestion_setting 0x0015 "SwitchPortCongestionSetting" [128] {
        VALID "valid" 0 + 0, 1 Write * 32 by 32;
        CONTROL_TYPE "control_type" 0 + 1, 1 Write * 32 by 32;
        THRESHOLD "threshold" 0 + 4, 4 Write * 32 by 32;
        PACKET_SIZE "packet_size" 1 + 0, 8 Write * 32 by 32;
        MARKING_RATE "marking_rate" 2 + 0, 16 Write * 32 by 32;
    }
    /// CACongestionSetting: the reaction of an adapter, by service level.
    ca_congestion_setting 0x0016 "CACongestionSetting" [132] {
        PORT_CONTROL "port_control" 0 + 0, 16 Write;
        CONTROL_MAP "control_map" 2 + 0, 16 Rule;
        CCTI_TIMER "ccti_timer" 4 + 0, 16 Rule * 16 by 64;
        CCTI_INCREASE "ccti_increase" 6 + 0, 8 Rule * 16 by 64;
        TRIGGER_THRESHOLD "trigger_threshold" 7 + 0, 8 Rule * 16 by 64;
        CCTI_MIN "ccti_min" 8 + 0, 8 Rule * 16 by 64;
    }
    /// CongestionControlTable: a block of 64 inter-packet delays.
    congestion_control_table 0x0017 "CongestionControlTable" [132] {
        CCTI_LIMIT "ccti_limit" 0 + 0, 16 Write;
        SHIFT "shift" 4 + 0, 2 Write * 64 by 16;
        MULTIPLIER "multiplier" 4 + 2, 14 Write * 64 by 16;
    }
    /// TimeStamp: the clock of the log, in units of 1.024 us.
    time_stamp 0x0018 "TimeStamp" [4] {
        TIME_STAMP "time_stamp" 0 + 0, 32 Read;
    }
}

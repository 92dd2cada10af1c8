"""What scapy makes of Ethernet frames, given in hexadecimal, a line each, in the file named.

Answers a JSON object a line. RoCEv2: fields of the BTH, the ICRC carried and the one that scapy computes
(null over IPv6 before scapy 2.6), the IPv4 header's checksum likewise. PAUSE and PFC: times, and the
frame that scapy would send for them. {} is neither.
"""

import json
import logging
import sys

logging.getLogger("scapy").setLevel(logging.CRITICAL)

from scapy.contrib.mac_control import MACControlClassBasedFlowControl, MACControlPause
from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

FIELDS = ["opcode", "fecn", "becn", "dqpn", "psn", "ackreq", "padcount", "pkey", "migreq", "solicited"]


def roce(frame):
    bth = frame[BTH]
    answer = {field: getattr(bth, field) for field in FIELDS}
    answer["icrc"] = f"{bth.icrc:08x}"
    if IP in frame:
        answer["ip_checksum"] = frame[IP].chksum
        del frame[IP].chksum
        del bth.icrc
        anew = Ether(frame.build())
        answer["computed_icrc"] = f"{anew[BTH].icrc:08x}"
        answer["computed_ip_checksum"] = anew[IP].chksum
    return answer


def control(frame, made, times):
    anew = Ether(dst=frame.dst, src=frame.src) / made
    return {"times": times, "made": bytes(anew).hex()}


def told(octets):
    frame = Ether(octets)
    if UDP in frame and BTH in frame:
        return roce(frame)
    if MACControlPause in frame:
        time = frame[MACControlPause].pause_time
        return control(frame, MACControlPause(pause_time=time), {"all": time})
    if MACControlClassBasedFlowControl in frame:
        pfc = frame[MACControlClassBasedFlowControl]
        names = [f"c{n}_{what}" for n in range(8) for what in ("enabled", "pause_time")]
        made = MACControlClassBasedFlowControl(**{name: getattr(pfc, name) for name in names})
        times = {
            str(n): getattr(pfc, f"c{n}_pause_time") for n in range(8) if getattr(pfc, f"c{n}_enabled")
        }
        return control(frame, made, times)
    return {}


for line in open(sys.argv[1]):
    print(json.dumps(told(bytes.fromhex(line))))

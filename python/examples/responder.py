#!/usr/bin/env python3
"""A host in scapy behind a port of a lab: it answers ARP and ping.   responder.py CABLE ADDRESS [SECONDS]

CABLE is the path of a cable without its ending, as `Lab.socket` and `pausebed status` have it.
"""

import sys

from scapy.layers.inet import ICMP, IP
from scapy.layers.l2 import ARP, Ether

from pausebed.device import Device


class Host(Device):
    def __init__(self, cable, address):
        super().__init__(cable)
        self.address, self.mac = address, "02:00:00:00:00:10"

    def on_frame(self, frame):
        packet = Ether(frame)
        if ARP in packet and packet[ARP].op == 1 and packet[ARP].pdst == self.address:
            asked = packet[ARP]
            answer = ARP(op=2, hwsrc=self.mac, psrc=self.address, hwdst=asked.hwsrc, pdst=asked.psrc)
            self.send(bytes(Ether(src=self.mac, dst=packet.src) / answer))
        elif ICMP in packet and packet[ICMP].type == 8 and packet[IP].dst == self.address:
            echo = ICMP(type=0, id=packet[ICMP].id, seq=packet[ICMP].seq) / packet[ICMP].payload
            self.send(bytes(Ether(src=self.mac, dst=packet.src) / IP(src=self.address, dst=packet[IP].src) / echo))


if __name__ == "__main__":
    cable, address, *seconds = sys.argv[1:]
    Host(cable, address).run(float(seconds[0]) if seconds else 3600.0)

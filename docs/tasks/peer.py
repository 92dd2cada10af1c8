#!/usr/bin/env python3
"""A host at an attached port: answers ARP, and sends one RoCEv2 frame to OTHER. peer.py FOLDER/NAME ADDRESS OTHER"""
import os, socket, struct, sys, zlib

cable, own, other = sys.argv[1], *map(socket.inet_aton, sys.argv[2:4])
mac, everyone, none = b"\x02\x00" + own, b"\xff" * 6, bytes(6)
end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
if os.path.exists(cable + ".peer"):
    os.unlink(cable + ".peer")
end.bind(cable + ".peer")  # the lab has bound NAME.lab; one datagram is one frame without FCS

def arp(operation, to, target, address):
    header = struct.pack("!HHHBBH", 0x0806, 1, 0x0800, 6, 4, operation)
    return to + mac + header + mac + own + target + address

def checksum(octets):
    total = sum(struct.unpack("!10H", octets))
    return ~(total % 0xFFFF) & 0xFFFF

def rocev2(to, payload):
    """SEND Only of an RC queue pair: Ethernet, IPv4, UDP 4791, BTH, payload, ICRC (IBTA Vol 1, A17.3 and 9.2)"""
    body = struct.pack("!BBHII", 0x04, 0x40, 0xFFFF, 0x12, 1 << 31 | 7) + payload
    udp = struct.pack("!HHHH", 49152, 4791, 8 + len(body) + 4, 0)
    ip = struct.pack("!BBHHHBBH", 0x45, 2, 20 + len(udp + body) + 4, 1, 0x4000, 64, 17, 0) + own + other
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    # What routers and switches change counts as ones: TOS, TTL and both checksums, and the fifth octet of the BTH.
    fixed = b"\xff" * 8 + ip[:1] + b"\xff" + ip[2:8] + b"\xff" + ip[9:10] + b"\xff\xff" + ip[12:]
    icrc = zlib.crc32(fixed + udp[:6] + b"\xff\xff" + body[:4] + b"\xff" + body[5:])
    return to + mac + b"\x08\x00" + ip + udp + body + struct.pack("<I", icrc)

end.sendto(arp(1, everyone, none, other), cable + ".lab")
while True:
    frame = end.recv(65536)
    if frame[12:14] == b"\x08\x06" and frame[38:42] == own:
        if frame[21] == 1:  # a request
            end.sendto(arp(2, frame[6:12], frame[22:28], frame[28:32]), cable + ".lab")
        elif frame[28:32] == other:
            end.sendto(rocev2(frame[22:28], b"sixteen octets.."), cable + ".lab")
    elif frame[12:14] == b"\x08\x00" and frame[36:38] == b"\x12\xb7":
        print("a frame of RoCEv2 with", len(frame), "octets", flush=True)

"""Independent computation of InfiniBand CRCs with crcmod and zlib; shares no code with the product.

  crcs.py judge         reads frames on standard input, one per line: "packet HEX", "link HEX", or
                        "ethernet HEX" (RoCE, without FCS); prints one JSON object per line:
                        {"icrc": true|false|null, "vcrc": …, "lpcrc": …}
  crcs.py make N SEED   prints N random valid frames and N with one bit flipped, one JSON object
                        per line: {"kind", "hex", "flipped": bit or null, "icrc", "vcrc", "lpcrc"}
  crcs.py compare N SEED  compares the masking rule of this file with scapy's ICRC for N random RoCEv2
                        packets; prints {"compared": N, "agreed": N}

null means that the frame has no such CRC. Tables list the octets that the ICRC counts as ones.
"""

import json
import random
import struct
import sys
import zlib

import crcmod

CRC16 = crcmod.mkCrcFun(0x1100B, initCrc=0, rev=True, xorOut=0xFFFF)
CRC32 = crcmod.mkCrcFun(0x104C11DB7, initCrc=0, rev=True, xorOut=0xFFFFFFFF)
LRH, GRH, BTH, ICRC, VCRC = 8, 40, 12, 4, 2
# Bits of a GRH counted as ones: traffic class and flow label in octets 0 to 3, hop limit in octet 7.
GRH_ONES = {0: 0x0F, 1: 0xFF, 2: 0xFF, 3: 0xFF, 7: 0xFF}
BTH_ONES = {4: 0xFF}


def ones(octets, table):
    return bytes(octet | table.get(at, 0) for at, octet in enumerate(octets))


def icrc_of(octets):
    """The correct ICRC of a packet; None if the packet has no ICRC."""
    if len(octets) < LRH:
        return None
    lnh = octets[1] & 3
    if lnh < 2:
        return None
    transport = octets[LRH:-(ICRC + VCRC)]
    if lnh == 2:
        front = ones(octets[:LRH], {0: 0xF0})
    else:
        if len(octets) < LRH + GRH or octets[LRH + 6] != 0x1B:
            return None
        front = b"\xff" * LRH + ones(transport[:GRH], GRH_ONES)
        transport = transport[GRH:]
    if len(octets) < len(front) + BTH + ICRC + VCRC:
        return None
    return zlib.crc32(front + ones(transport, BTH_ONES)).to_bytes(4, "little")


def roce_icrc(octets):
    """Computed and carried ICRC of an Ethernet frame with RoCE over GRH, IPv4 or IPv6."""
    at = 12
    while octets[at : at + 2] == b"\x81\x00":
        at += 4
    kind, packet = int.from_bytes(octets[at : at + 2], "big"), octets[at + 2 :]
    if kind == 0x0800:
        packet = packet[: int.from_bytes(packet[2:4], "big")]
        header = 4 * (packet[0] & 15)
        table = {1: 0xFF, 8: 0xFF, 10: 0xFF, 11: 0xFF}
    else:
        packet = packet[: 40 + int.from_bytes(packet[4:6], "big")]
        header, table = 40, GRH_ONES
    bth = header if kind == 0x8915 else header + 8
    table = dict(table)
    if kind != 0x8915:
        table |= {bth - 2: 0xFF, bth - 1: 0xFF}
    table[bth + 4] = 0xFF
    covered = b"\xff" * LRH + ones(packet[:-ICRC], table)
    return CRC32(covered).to_bytes(4, "little"), packet[-ICRC:]


def judged(kind, octets):
    answer = {"icrc": None, "vcrc": None, "lpcrc": None}
    if kind == "ethernet":
        computed, carried = roce_icrc(octets)
        answer["icrc"] = computed == carried
        return answer
    if kind == "link":
        answer["lpcrc"] = CRC16(octets[:4]).to_bytes(2, "little") == octets[4:6]
        return answer
    expected = icrc_of(octets)
    if expected is not None:
        answer["icrc"] = expected == octets[-6:-2]
    answer["vcrc"] = CRC16(octets[:-2]).to_bytes(2, "little") == octets[-2:]
    return answer


def number(rng, bits):
    return rng.getrandbits(bits)


def link_packet(rng):
    body = rng.randbytes(4)
    return body + CRC16(body).to_bytes(2, "little")


def packet(rng):
    """A packet with valid lengths and CRCs and random contents."""
    lnh = rng.choice([2, 2, 3, 3, 0, 1])
    body = rng.randbytes(4 * rng.choice([rng.randrange(4, 24), rng.randrange(4, 520)]))
    bth = bytes([number(rng, 8), number(rng, 8) & 0xF0]) + rng.randbytes(10)
    if lnh < 2:
        after = body
    elif lnh == 2:
        after = bth + body + b"\0" * ICRC
    else:
        transport = bth + body + b"\0" * ICRC
        grh = struct.pack(">IHBB", 6 << 28 | number(rng, 28), len(transport), 0x1B, number(rng, 8))
        after = grh + rng.randbytes(32) + transport
    words = (LRH + len(after)) // 4
    lanes = number(rng, 4) << 4, number(rng, 4) << 4 | lnh
    lrh = bytes(lanes) + struct.pack(">HHH", number(rng, 16), words, number(rng, 16))
    octets = bytearray(lrh + after + b"\0" * VCRC)
    if lnh >= 2:
        octets[-6:-2] = icrc_of(octets)
    octets[-2:] = CRC16(bytes(octets[:-2])).to_bytes(2, "little")
    return bytes(octets)


def make(count, seed):
    rng = random.Random(seed)
    for damage in (False, True):
        for _ in range(count):
            kind = "link" if rng.randrange(6) == 0 else "packet"
            octets = bytearray(link_packet(rng) if kind == "link" else packet(rng))
            flipped = None
            if damage:
                flipped = rng.randrange(len(octets) * 8)
                octets[flipped // 8] ^= 1 << flipped % 8
            octets = bytes(octets)
            line = {"kind": kind, "hex": octets.hex(), "flipped": flipped}
            print(json.dumps(line | judged(kind, octets)))


def compare(count, seed):
    """Compares with scapy, which supports RoCEv2 only, and before version 2.6 over IPv4 only."""
    from scapy.contrib.roce import BTH as Bth
    from scapy.layers.inet import IP, UDP
    from scapy.packet import Raw

    rng = random.Random(seed)
    agreed = 0
    for _ in range(count):
        network = IP(src="198.18.0.1", dst="198.18.0.2", tos=number(rng, 8), ttl=number(rng, 8), id=7)
        bth = Bth(opcode=4, dqpn=number(rng, 24), psn=number(rng, 24), becn=rng.randrange(2))
        payload = Raw(rng.randbytes(4 * rng.randrange(1, 64)))
        octets = bytes(network / UDP(sport=49152, dport=4791) / bth / payload)
        covered = b"\xff" * 8 + ones(octets[:20], {1: 0xFF, 8: 0xFF, 10: 0xFF, 11: 0xFF})
        covered += ones(octets[20:28], {6: 0xFF, 7: 0xFF})
        covered += ones(octets[28:-ICRC], BTH_ONES)
        agreed += zlib.crc32(covered).to_bytes(4, "little") == octets[-ICRC:]
    print(json.dumps({"compared": count, "agreed": agreed}))


def main():
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    if word == "judge":
        for line in sys.stdin:
            kind, text = line.split()
            print(json.dumps(judged(kind, bytes.fromhex(text))))
    elif word == "make":
        make(int(sys.argv[2]), int(sys.argv[3]))
    elif word == "compare":
        compare(int(sys.argv[2]), int(sys.argv[3]))
    else:
        sys.exit(__doc__)


main()

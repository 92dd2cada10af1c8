import subprocess
import sys
from pathlib import Path

import pytest

import pausebed
from pausebed import device

EXPERIMENTAL = b"\x88\xb5"


class Echo(device.Device):
    """Answers every frame of an experimental type to its sender."""

    count = 0

    def on_frame(self, frame):
        if frame[12:14] == EXPERIMENTAL:
            self.count += 1
            self.send(frame[6:12] + frame[:6] + frame[12:])


@pytest.fixture
def cables(incast):
    """One switch with two attached sockets."""
    incast.keys.pop("measure"), incast.keys.pop("expect"), incast.keys.pop("traffic")
    incast["run"] = {"seed": 1, "duration": "1 s", "backend": "udp"}
    incast["fabric"] = {"technology": "ethernet", "nodes": [{"name": "s1", "kind": "switch"}], "links": []}
    incast["fabric.link"] = {"pause": "pfc"}
    incast["fabric.switch"] = {"buffer": "64 MB", "headroom": "2 MB"}
    incast["lab.attach"] = [{"port": f"s1:{port}", "socket": f"p{port}", "rate": "100 Mbps"} for port in (1, 2)]
    return incast


def test_devices_in_python_exchange_frames_through_a_switch(cables, pausebed_lab):
    lab = pausebed_lab(cables)
    one, two = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")
    with device.Port(lab.socket("p1")) as port:
        echo = Echo(lab.socket("p2"))
        frame = two + one + EXPERIMENTAL + bytes(46)
        port.send(frame)
        echo.run(seconds=0.5)
        assert echo.count == 1
        assert port.receive(timeout=5) == one + two + EXPERIMENTAL + bytes(46)
        assert port.receive(timeout=0.05) is None
    assert not lab.socket("p1").with_suffix(".peer").exists()


def test_a_lab_is_looked_at_broken_and_mended(incast, pausebed_lab):
    incast.keys.pop("measure"), incast.keys.pop("expect")
    lab = pausebed_lab(incast)
    assert lab.status["state"] == "up"
    assert lab.counters("links", "h9")
    lab.fault("s1:3", "drop", prob=0.5)
    lab.fault("s1:3", "mend")
    lab.set_link("s1:3", up=False)
    lab.set_link("s1:3", up=True)
    assert "sent" in lab.balance()
    with pytest.raises(pausebed.Error, match="nowhere"):
        lab.fault("nowhere:1", "drop")


def test_a_lab_ends_with_its_block(cables):
    with pytest.raises(ZeroDivisionError):
        with pausebed.Lab(cables, name="pytest-ends") as lab:
            folder = lab.socket("p1").parent
            assert folder.exists()
            1 / 0
    assert not folder.exists()


def test_a_host_in_scapy_answers_arp_and_ping(cables, pausebed_lab):
    pytest.importorskip("scapy")
    from scapy.layers.inet import ICMP, IP
    from scapy.layers.l2 import ARP, Ether

    lab = pausebed_lab(cables)
    host = Path(__file__).parents[1] / "examples" / "responder.py"
    with device.Port(lab.socket("p1")) as port:
        words = [sys.executable, str(host), str(lab.socket("p2")), "198.18.0.2", "60"]
        child = subprocess.Popen(words)
        try:
            asked = Ether(src="02:00:00:00:00:01", dst="ff:ff:ff:ff:ff:ff") / ARP(psrc="198.18.0.1", pdst="198.18.0.2")
            answer = None
            for _ in range(100):
                port.send(bytes(asked))
                answer = port.receive(timeout=0.2)
                if answer:
                    break
            mac = Ether(answer)[ARP].hwsrc
            ping = Ether(src="02:00:00:00:00:01", dst=mac) / IP(src="198.18.0.1", dst="198.18.0.2") / ICMP(seq=7) / b"sixteen octets.."
            port.send(bytes(ping))
            replies = (Ether(frame) for frame in iter(lambda: port.receive(timeout=10), None))
            reply = next(packet for packet in replies if ICMP in packet)
            assert (reply[ICMP].type, reply[ICMP].seq, bytes(reply[ICMP].payload)) == (0, 7, b"sixteen octets..")
        finally:
            child.terminate()
            child.wait()

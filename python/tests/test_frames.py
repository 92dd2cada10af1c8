import time

import pytest

import pausebed
from pausebed import frames


@pytest.fixture
def captured(incast, tmp_path):
    incast["run.capture"] = ["h9:1"]
    pausebed.run(incast, out=tmp_path)
    return tmp_path / "capture.pcapng"


def test_encode_after_decode_is_the_identity(captured):
    decoded = frames.decode(captured)
    assert len(decoded) > 100
    for frame in decoded[:50]:
        octets = frames.encode(frame)
        assert len(octets) == frame["length"]
        again = frames.decode(octets, link=frame["link"])
        assert frames.encode(again) == octets


def test_check_values_are_those_of_the_capture(captured):
    packets = [frames.encode(frame) for frame in frames.decode(captured) if "bth" in frame]
    carried = [int.from_bytes(packet[-6:-2], "little") for packet in packets]
    assert frames.icrc(packets) == carried
    assert frames.icrc(packets[0]) == carried[0]
    assert frames.vcrc(packets) == [int.from_bytes(packet[-2:], "little") for packet in packets]
    assert frames.icrc([b"", b"\xff" * 70]) == [None, frames.icrc(b"\xff" * 70)]


def test_a_capture_is_verified(captured):
    report = frames.verify(captured)
    assert report["frames"] > 100
    octets = captured.read_bytes()
    broken = captured.with_name("broken.pcapng")
    at = octets.rindex(b"\x00" * 8)
    broken.write_bytes(octets[:at] + b"\x55" + octets[at + 1 :])
    assert frames.verify(broken) != report
    captured.write_bytes(b"no capture")
    with pytest.raises(pausebed.Error):
        frames.verify(captured)


def test_bad_input_is_an_error_or_a_warning(tmp_path):
    with pytest.raises(pausebed.Error, match="link"):
        frames.decode(b"\x00" * 64, link="token-ring")
    with pytest.raises(pausebed.Error):
        frames.encode({"ethernet": {"destination": "nonsense"}})
    with pytest.raises(FileNotFoundError):
        frames.decode(tmp_path / "nowhere.pcap")
    torn = tmp_path / "torn.pcap"
    torn.write_bytes(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000") + b"\x00" * 8)
    with pytest.warns(UserWarning, match="torn"):
        assert frames.decode(torn) == []
    for length in range(80):
        frames.decode(bytes(range(length)))


def test_icrcs_in_a_batch_cost_less_than_one_by_one(captured):
    packets = [frames.encode(frame) for frame in frames.decode(captured) if "bth" in frame][:64] * 50
    begun = time.perf_counter()
    batch = frames.icrc(packets)
    between = time.perf_counter()
    single = [frames.icrc(packet) for packet in packets]
    ended = time.perf_counter()
    assert batch == single
    print(f"{len(packets) / (between - begun):.0f} a second in a batch, {len(packets) / (ended - between):.0f} one by one")

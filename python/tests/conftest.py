"""What the tests share: a scenario small enough to run in a tenth of a second."""

import pytest

import pausebed

pytest_plugins = ["pytester"]


@pytest.fixture
def incast() -> pausebed.Scenario:
    """Two senders to one receiver on one switch."""
    names = ["h1", "h2", "h9"]
    scenario = pausebed.Scenario(
        "incast2",
        run={"seed": 1, "duration": "400 mtu", "backend": "virtual", "dilate": 2400},
        fabric={
            "nodes": [{"name": "s1", "kind": "switch"}] + [{"name": name, "kind": "nic"} for name in names],
            "links": [{"a": f"{name}:1", "b": f"s1:{port}"} for port, name in enumerate(names, 1)],
        },
    )
    scenario["scheme"] = {"kind": "none"}
    scenario["traffic"] = [
        {"name": "incast", "from": "h[1-2]", "to": "h9", "arrivals": "backlog", "size": "8 KB", "transport": "rc"}
    ]
    scenario["measure"] = [
        {"name": "received", "of": "throughput", "at": "h9:rx", "from": "100 mtu", "per": "line"}
    ]
    scenario["expect"] = [{"measure": "received", "min": 0.9, "why": "two senders fill the line"}]
    return scenario

#!/usr/bin/env python3
"""A hot spot cured by ibccconfig while the fabric runs under OpenSM: cure.py SCENARIO HOT REPORT.md [DILATION]

The lab of SCENARIO comes up under OpenSM, and the NIC called HOT is the hot spot. The script measures the other ports, sets
threshold and marking rate at every switch, table and timer at every adapter, waits until the queues have drained, measures
again, and writes both phases to REPORT.md. PAUSEBED names the program, if it is not in the path."""
import json, os, re, subprocess, sys, tempfile, time

SCENARIO, HOT, REPORT = sys.argv[1:4]
DILATION = sys.argv[4] if len(sys.argv) > 4 else "1000"
PAUSEBED, LAB = os.environ.get("PAUSEBED", "pausebed"), "cure"
FRAME_PS = 2078 * 8 * 125  # 2048 octets of payload and 30 of headers and checks at 8 Gb/s
SETTLE, BEFORE, DRAIN, AFTER = 6000, 3000, 30000, 6000  # frame times
PATIENCE = "60000"  # ms: datagrams of QP1 wait in the congestion tree as data do
ASKED = 4  # NICs whose PortXmitWait is read: those with the LIDs farthest from that of the hot spot
BLOCK, LIMIT = 64, 127  # entries of a table: eighths of a frame time, up to 31 frame times

def pausebed(*words):
    done = subprocess.run([PAUSEBED, *words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: {done.stderr or done.stdout}")
    return done.stdout

def tool(*words):
    return pausebed("exec", HOST, "--lab", LAB, "--", *words)

def received():
    """Fabric time, and octets that each NIC has received."""
    shown = json.loads(pausebed("show", "links", "--json", "--lab", LAB))
    octets = lambda node: sum(lane["rx_bytes"] for port in node["ports"] for lane in port["lanes"])
    return shown["at_ps"], {node["node"]: octets(node) for node in shown["nodes"]}

def wait(frames):
    end = received()[0] + frames * FRAME_PS
    while received()[0] < end:
        time.sleep(0.2)

def waits():
    """Fabric time, and ticks in which the NICs asked had data and no credit."""
    asked = sorted(NICS.values(), key=lambda lid: -abs(lid - NICS[HOT]))[:ASKED]
    ticks = lambda lid: int(re.search(r"PortXmitWait:\.*(\d+)", tool("perfquery", "-t", PATIENCE, str(lid), "1"))[1])
    return received()[0], sum(ticks(lid) for lid in asked)

def measure(frames):
    """Shares of their lines that the NICs get, and PortXmitWait in ticks a frame time and NIC."""
    (began, ticks), (start, before) = waits(), received()
    wait(frames)
    (end, after), (ended, later) = received(), waits()
    share = {nic: (after[nic] - before[nic]) * 8 / ((end - start) / 1e12) / 8e9 for nic in NICS}
    return share, (later - ticks) / ((ended - began) / FRAME_PS) / ASKED

def configure():
    for lid in SWITCHES:
        tool("ibccconfig", "-t", PATIENCE, "SwitchCongestionSetting", str(lid), "0x1F", "0x0", "0x0", "1", "0", "0", "0:0", "0")
    entries = [f"3:{round(8 * 31 * index / LIMIT)}" for index in range(LIMIT + 1)]
    for lid in NICS.values():
        for block in range(2):
            part = entries[block * BLOCK:(block + 1) * BLOCK]
            last = str(BLOCK * (block + 1) - 1)
            tool("ibccconfig", "-t", PATIENCE, "CongestionControlTable", str(lid), last, str(block), *part)
        tool("ibccconfig", "-t", PATIENCE, "CACongestionSetting", str(lid), "0", "0x1", "31", "5", "0", "0")

def report(before, after):
    cold = lambda phase: [share for nic, share in phase[0].items() if nic != HOT]
    rows = [
        ("cold ports, mean share of the line", lambda phase: f"{sum(cold(phase)) / len(cold(phase)):.3f}"),
        ("cold ports, least", lambda phase: f"{min(cold(phase)):.3f}"),
        ("cold ports, most", lambda phase: f"{max(cold(phase)):.3f}"),
        (f"hot port {HOT}", lambda phase: f"{phase[0][HOT]:.3f}"),
        ("PortXmitWait, ticks a frame time and NIC", lambda phase: f"{phase[1]:.1f}"),
    ]
    head = [
        f"# The hot spot of {os.path.basename(SCENARIO)}, cured by ibccconfig", "",
        f"{len(SWITCHES)} switches, {len(NICS)} NICs, {DILATION}× slowed, under OpenSM. After {BEFORE} frame times without control the",
        f"script set threshold 1 and marking rate 0 at every switch, {LIMIT + 1} table entries, timer 31 and increase 5 at every",
        f"adapter, while the fabric ran. After {DRAIN} more it measured for {AFTER} frame times.", "",
        "| | without control | with control |", "|---|---|---|",
    ]
    lines = head + [f"| {name} | {value(before)} | {value(after)} |" for name, value in rows]
    with open(REPORT, "w") as file:
        file.write("\n".join(lines) + "\n")
    print("\n".join(lines))

pausebed("up", SCENARIO, "--managed", "--dilate", DILATION, "--name", LAB)
opensm = None
try:
    HOST = next(name for name in received()[1] if name != HOT)
    folder = tempfile.TemporaryDirectory()
    log, options = (os.path.join(folder.name, name) for name in ("opensm.log", "opensm.conf"))
    with open(options, "w") as file:
        file.write("force_log_flush TRUE\n")
    words = ["exec", HOST, "--lab", LAB, "--", "opensm", "-F", options, "-f", log]
    opensm = subprocess.Popen([PAUSEBED, *words], stdout=subprocess.DEVNULL)
    while not os.path.exists(log) or "SUBNET UP" not in open(log).read():
        time.sleep(0.2)
    found = tool("ibnetdiscover")
    SWITCHES = re.findall(r"^Switch.* lid (\d+)", found, re.M)
    NICS = {name: int(lid) for name, lid in re.findall(r'^Ca\s.*# "([^"]*)"\n.*# lid (\d+)', found, re.M)}
    wait(SETTLE)
    before = measure(BEFORE)
    configure()
    wait(DRAIN)
    report(before, measure(AFTER))
finally:
    if opensm:
        opensm.terminate()
        opensm.wait()
    pausebed("down", LAB)

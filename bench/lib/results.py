"""Results as files: JSON lines, one file for each step. Each line has a unique name. The first line describes the machine."""

import json
import os
import platform
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"


class Results:
    """The file of a step while it is measured. Each line is written as soon as it is measured, so that an interrupted run can
    continue."""

    def __init__(self, directory, step, machine, resume):
        self.path = Path(directory) / f"{step}.jsonl"
        self.lines = read(self.path) if resume else {}
        if not resume or not self.lines:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.lines = {}
            self.path.write_text("")
            self.add("machine", machine)

    def has(self, name):
        return name in self.lines

    def add(self, name, line):
        self.lines[name] = {"name": name, **line}
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(self.lines[name]) + "\n")


def read(path):
    """The lines of a file by their names; empty if there is no file. An incomplete last line is skipped."""
    lines = {}
    if Path(path).exists():
        for text in Path(path).read_text(encoding="utf-8").splitlines():
            try:
                line = json.loads(text)
            except ValueError:
                continue
            lines[line["name"]] = line
    return lines


def machine(partita, built):
    """What a reader must know about the machine of the figures; without names or paths."""
    cpu = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    memory = int(Path("/proc/meminfo").read_text().split()[1]) / 2**20
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory, 1),
        "kernel": platform.release(),
        "load_before": float(Path("/proc/loadavg").read_text().split()[0]),
        "version": output([partita, "--version"]),
        # The commit of a given binary is not known.
        "commit": output(["git", "-C", str(ROOT), "describe", "--always", "--dirty"]) if built else "unknown",
    }


def output(command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"

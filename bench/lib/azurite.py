"""The step `azurite`: the same workloads on Azurite's table service, in turns. Processor time is compared, because Azurite
has one thread and this machine has few processors."""

import os
import shutil
import subprocess
import time
from pathlib import Path

from . import file_cache
from .load import bench
from .process import Trouble, accepts_connections
from .show import Table, count, micros, number, times

VERSION = "3.37.0"
CONNECTIONS = 16
# Azurite saves all changes every five seconds.
QUIET_SECONDS = 6
# Workload, and how many times more operations a processor second must do. Reads are first, because work that a write leaves
# behind must not count for them.
TARGETS_BY_WORKLOAD = {"get": 40, "page": 12, "page-select": 12, "partition-scan": 1, "table-scan": 1,
                       "merge": 12, "mixed": 1, "insert": 15, "batch": 15}


def install(service="table"):
    """Installs it into the cache that builds use too; returns the script of the service."""
    cache = os.environ.get("PARTITA_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "partita")
    # With a lock file: without one, a new version of an indirect dependency can break the installation.
    wanted = Path(__file__).parent.parent / "azurite"
    folder = Path(cache) / f"azurite-{VERSION}"
    main = folder / "node_modules" / "azurite" / "dist" / "src" / service / "main.js"
    installed = folder / "installed"
    lock = (wanted / "package-lock.json").read_text()
    if not main.exists() or not installed.exists() or installed.read_text() != lock:
        if not shutil.which("npm"):
            raise Trouble("npm is missing, which installs Azurite; install Node.js, or leave out the step azurite")
        print(f"   installing azurite {VERSION}", flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(wanted / name, folder / name)
        command = ["npm", "ci", "--prefix", str(folder), "--no-audit", "--no-fund", "--loglevel=error"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Trouble(f"npm could not install azurite@{VERSION}: {done.stderr.strip()[-600:]}")
        installed.write_text(lock)
    return main


def start(setup, service="table"):
    """Starts its service on an empty store."""
    port = setup.port(2)
    command = ["node", str(install(service)), "--location", str(setup.store("azurite")), f"--{service}Port", str(port), "--silent",
               "--disableTelemetry", "--skipApiVersionCheck"]
    quiet_seconds = QUIET_SECONDS if setup.options.quiet_seconds >= 0.5 else None
    server = setup.start("azurite", command, port, accepts_connections, quiet_seconds)
    server.queue_port = port if service == "queue" else None
    server.blob_port = port if service == "blob" else None
    return server


def expected(_options):
    """Names of the lines that a complete run writes."""
    return ["load", *TARGETS_BY_WORKLOAD]


def run(setup, results):
    options = setup.options
    missing = [workload for workload in TARGETS_BY_WORKLOAD if not results.has(workload)]
    if not missing:
        return
    azurite = start(setup)
    partita = setup.start_partita()
    data = {"entities": options.azurite_entities, "connections": CONNECTIONS}
    loaded = {}
    for server in (partita, azurite):
        file_cache.fill()
        started = time.monotonic()
        bench(setup.partita, "get", server, keep=True, count=1, warmup=0, fill=False, **data)
        loaded[f"{server.name}_seconds"] = round(time.monotonic() - started, 2)
        server.settle()
    results.add("load", {"entities": options.azurite_entities, "version": VERSION, **loaded})
    print(f"   loaded {options.azurite_entities:,} entities: partita {loaded['partita_seconds']} s, "
          f"azurite {loaded['azurite_seconds']} s", flush=True)
    for workload in missing:
        for server in (partita, azurite):
            server.settle()
        ours, theirs = bench(setup.partita, workload, partita, azurite, reuse=True, seconds=options.azurite_seconds,
                             warmup=options.warmup, rounds=options.rounds, **data)
        results.add(workload, {"partita": ours, "azurite": theirs})
        print(f"   {workload}: {number(ratio(results.lines[workload]))} × per CPU second", flush=True)
    azurite.stop(kill=True)
    setup.remove(partita)


def ratio(line):
    """The operations of Partita in a processor second, divided by those of Azurite."""
    return line["azurite"]["cpu_us"] / max(line["partita"]["cpu_us"], 1e-9)


def tables(lines):
    shown = [Table("What was measured",
                   ["workload", "CPU/op", "Azurite's", "operations/s", "Azurite's", "target", "per CPU second", "met"])]
    for workload, bound in TARGETS_BY_WORKLOAD.items():
        line = lines.get(workload)
        if line:
            ours, theirs = line["partita"], line["azurite"]
            met = ratio(line) > bound if bound == 1 else ratio(line) >= bound
            shown[0].add(workload, micros(ours["cpu_us"]), micros(theirs["cpu_us"]), count(ours["ops_per_second"]),
                         count(theirs["ops_per_second"]), f"{'>' if bound == 1 else '≥'} {bound} ×", times(ratio(line)),
                         "yes" if met else "no")
    return shown

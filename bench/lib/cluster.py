"""The step `cluster`: the same workloads on Cassandra and on the embedded engine, in turns; one partition with and without
combining; one, two and three servers on one cluster. Nodes, servers and clients share this machine's processors."""

import os
import subprocess
import threading
import time
from pathlib import Path

from .load import bench
from .process import Trouble, answers_http_200, cpu_seconds
from .results import ROOT
from .show import Table, count, micros, millis, times

TOOL = ROOT / "cassandra" / "cluster"
# Workload and connections. Reads are first, because the compaction after writes must not count for them.
COMPARED = [("get", 16), ("get", 1), ("page", 16), ("partition-scan", 16), ("table-scan", 1), ("merge", 16), ("mixed", 16),
            ("insert", 16), ("insert", 1), ("insert-one-partition", 16), ("batch", 16)]
# One partition: connections, and whether waiting writes are combined.
HOT = [(connections, combine) for connections in (16, 64) for combine in (True, False)]
# Reads at both levels: serial ones see every transaction as a whole, quorum ones may see part of one in flight.
READS = [("get", 16), ("page", 16)]
# The number of servers; all clients together always have the same number of connections. All merges are in one partition, for
# which servers compete: writes are combined at one server, not across several.
SPREAD = [(workload, servers) for workload in ("get", "insert", "merge", "mixed") for servers in (1, 2, 3)]
SPREAD_CONNECTIONS = 48
HOT_DATA = {"entities": 1000, "table": "partitahot"}
WARM_SECONDS = 10
WARM_ROUNDS_MAX = 20


def expected(options):
    """Names of the lines that a complete run writes."""
    return [name for nodes in sizes(options) for name in names(nodes)]


def names(nodes):
    return [*(compared_name(nodes, *key) for key in COMPARED), *(hot_name(nodes, *key) for key in HOT),
            *(reads_name(nodes, *key) for key in READS), *(spread_name(nodes, *key) for key in SPREAD)]


def compared_name(nodes, workload, connections):
    return f"{nodes}/{workload}/{connections}"


def hot_name(nodes, connections, combine):
    return f"{nodes}/hot/{connections}/{'together' if combine else 'alone'}"


def reads_name(nodes, workload, connections):
    return f"{nodes}/reads/{workload}/{connections}"


def spread_name(nodes, workload, servers):
    return f"{nodes}/servers/{servers}/{workload}"


def sizes(options):
    return [1] if options.cluster else options.nodes


def run(setup, results):
    for nodes in sizes(setup.options):
        if all(results.has(name) for name in names(nodes)):
            continue
        cluster = Cluster(setup, nodes)
        try:
            cluster.start()
            embedded = setup.start_partita()
            compare(setup, results, cluster, embedded)
            setup.remove(embedded)
            hot_partition(setup, results, cluster)
            read_levels(setup, results, cluster)
            several_servers(setup, results, cluster)
        finally:
            cluster.close()


class Cluster:
    """Nodes, one keyspace with a copy on each, and the servers on it."""

    def __init__(self, setup, nodes):
        self.setup, self.nodes = setup, nodes
        self.directory = setup.directory / f"nodes-{nodes}"
        self.hosts, self.own = setup.options.cluster, not setup.options.cluster
        self.keyspace = f"figures_{os.getpid()}_{nodes}"

    def start(self):
        if self.own:
            print(f"   starting {nodes_text(self.nodes)}", flush=True)
            self.tool("start", str(self.nodes))
            self.hosts = self.tool("nodes").strip()
        self.partita("store", "init", self.address(), "--replication-factor", str(self.nodes))
        self.servers = [self.serve(f"server-{number}") for number in (1, 2, 3)]
        self.warm()

    def warm(self):
        """Runs load until the nodes get no faster: nodes that have just started are slow, and refuse what they can't do in
        time."""
        seconds, best, slower = min(WARM_SECONDS, self.setup.options.seconds * 4), 0, 0
        for _ in range(WARM_ROUNDS_MAX):
            try:
                found = self.server_bench("insert", seconds=seconds, warmup=0, tolerate=503)["ops_per_second"]
            except Trouble as trouble:
                print(f"   warming up: {trouble}", flush=True)
                continue
            print(f"   warming up: {count(found)}/s", flush=True)
            slower = slower + 1 if found < best * 1.1 else 0
            if slower == 2:
                return
            best = max(best, found)

    @property
    def first(self):
        return self.servers[0]

    def address(self, **more):
        query = "&".join(f"{name}={value}" for name, value in {"unsafe": "true", **more}.items())
        return f"cassandra://{self.hosts}/{self.keyspace}?{query}"

    def serve(self, name, **more):
        port = self.setup.port(0) if not self.setup.options.port else self.setup.port(len(self.setup.servers))
        command = [self.setup.partita, "serve", "--listen", f"127.0.0.1:{port}", "--store", self.address(**more),
                   "--log-level", "error"]
        return self.setup.start(name, command, port, answers_http_200("/health/ready"))

    def server_bench(self, workload, **flags):
        return bench(self.setup.partita, workload, self.first, **flags)

    def cpu_seconds(self):
        """Of all nodes; None if another program has started them."""
        pids = [int(file.read_text()) for file in sorted(self.directory.glob("n*/pid"))]
        return sum(cpu_seconds(pid) for pid in pids) if pids else None

    def tool(self, *command):
        network = f"127.{os.getpid() % 200 + 20}.{self.nodes}"
        return output([str(TOOL), "--dir", str(self.directory), "--net", network, *command])

    def partita(self, *command):
        return output([self.setup.partita, *command])

    def close(self):
        for server in self.setup.servers:
            server.stop()
        if self.own:
            self.tool("clean")
        self.setup.servers.clear()


def output(command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Trouble(f"{Path(command[0]).name} {command[1]} failed: {done.stderr.strip()[-600:]}")
    return done.stdout


def compare(setup, results, cluster, embedded):
    options = setup.options
    data = {"entities": options.cluster_entities}
    # The later steps use this data too.
    bench(setup.partita, "get", cluster.first, embedded, keep=True, count=1, warmup=0, rounds=1, **data)
    for workload, connections in COMPARED:
        if results.has(compared_name(cluster.nodes, workload, connections)):
            continue
        theirs, ours = bench(setup.partita, workload, cluster.first, embedded, reuse=True, connections=connections,
                             seconds=options.seconds, warmup=options.warmup, rounds=options.rounds, **data)
        results.add(compared_name(cluster.nodes, workload, connections), {
            "workload": workload, "connections": connections, **data, "cluster": theirs, "embedded": ours})
        print(f"   {workload}, {connections} connections: {count(theirs['ops_per_second'])}/s on {nodes_text(cluster.nodes)}, "
              f"{count(ours['ops_per_second'])}/s embedded", flush=True)


def hot_partition(setup, results, cluster):
    options = setup.options
    if all(results.has(hot_name(cluster.nodes, *key)) for key in HOT):
        return
    alone = cluster.serve("server-alone", combine="false")
    for connections in sorted({connections for connections, _ in HOT}):
        pair = bench(setup.partita, "insert-one-partition", cluster.first, alone, connections=connections,
                     seconds=options.seconds, warmup=options.warmup, rounds=options.rounds, tolerate=503)
        for combine, found in zip((True, False), pair):
            results.add(hot_name(cluster.nodes, connections, combine), {"cluster": found})
            print(f"   one partition, {connections} connections, {'together' if combine else 'alone'}: "
                  f"{count(found['ops_per_second'])}/s", flush=True)
    alone.stop()


def read_levels(setup, results, cluster):
    options = setup.options
    if all(results.has(reads_name(cluster.nodes, *key)) for key in READS):
        return
    quorum = cluster.serve("server-quorum", reads="quorum")
    for workload, connections in READS:
        pair = bench(setup.partita, workload, cluster.first, quorum, reuse=True, connections=connections,
                     entities=options.cluster_entities, seconds=options.seconds, warmup=options.warmup, rounds=options.rounds)
        found = dict(zip(("serial", "quorum"), pair))
        results.add(reads_name(cluster.nodes, workload, connections), {"workload": workload, "connections": connections, **found})
        print(f"   {workload}, reads=serial {count(pair[0]['ops_per_second'])}/s, quorum {count(pair[1]['ops_per_second'])}/s",
              flush=True)
    quorum.stop()


def several_servers(setup, results, cluster):
    options = setup.options
    if not all(results.has(spread_name(cluster.nodes, *key)) for key in SPREAD):
        cluster.server_bench("get", keep=True, count=1, warmup=0, **HOT_DATA)
    for workload, number in SPREAD:
        name = spread_name(cluster.nodes, workload, number)
        if results.has(name):
            continue
        common = {"connections": SPREAD_CONNECTIONS // number, "warmup": 0, "reuse": True, "tolerate": 503,
                  **(HOT_DATA if workload == "merge" else {"entities": options.cluster_entities})}

        def each(length):
            return at_once([lambda server=server: bench(setup.partita, workload, server, seconds=length, **common)
                            for server in cluster.servers[:number]])

        each(options.seconds / 2)
        before, started = cluster.cpu_seconds(), time.monotonic()
        found = each(options.seconds * 2)
        elapsed, after = time.monotonic() - started, cluster.cpu_seconds()
        operations = sum(one["operations"] for one in found)
        results.add(name, {
            "workload": workload, "servers": number, "seconds": round(elapsed, 1), "operations": operations,
            "failed": sum(one["failed"] for one in found),
            "ops_per_second": round(sum(one["ops_per_second"] for one in found), 1),
            "cpu_us": round(sum(one["cpu_us"] * one["operations"] for one in found) / operations, 1),
            "nodes_cpu_us": None if before is None else round((after - before) / operations * 1e6, 1),
            "p50_us": max(one["p50_us"] for one in found), "p99_us": max(one["p99_us"] for one in found)})
        print(f"   {workload} through {number}: {count(results.lines[name]['ops_per_second'])}/s", flush=True)


def at_once(works):
    """Runs each in its own thread and returns the results; raises the first trouble, if there was one."""
    found = [None] * len(works)

    def one(index):
        try:
            found[index] = works[index]()
        except Trouble as trouble:
            found[index] = trouble

    threads = [threading.Thread(target=one, args=(index,)) for index in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in found:
        if isinstance(result, Trouble):
            raise result
    return found


def nodes_text(nodes):
    return "one node" if nodes == 1 else f"{nodes} nodes"


def tables(lines):
    shown = []
    for nodes in (1, 3):
        compared = Table(f"One server on {nodes_text(nodes)}, beside the embedded engine",
                         ["workload", "connections", "operations/s", "embedded", "p50", "embedded", "p99", "embedded",
                          "server's CPU/op", "embedded"])
        for workload, connections in COMPARED:
            if line := lines.get(compared_name(nodes, workload, connections)):
                both = [line["cluster"], line["embedded"]]
                compared.add(workload, connections, *(count(one["ops_per_second"]) for one in both),
                             *(millis(one["p50_us"]) for one in both), *(millis(one["p99_us"]) for one in both),
                             *(micros(one["cpu_us"]) for one in both))
        hot = Table(f"Inserts into one partition, {nodes_text(nodes)}",
                    ["connections", "combined/s", "one by one/s", "gain", "p99 combined", "p99 one by one",
                     "turned away one by one"])
        for connections in sorted({connections for connections, _ in HOT}):
            pair = [lines.get(hot_name(nodes, connections, combine)) for combine in (True, False)]
            if all(pair):
                pair = [line["cluster"] for line in pair]
                rates = [one["ops_per_second"] for one in pair]
                hot.add(connections, *(count(rate) for rate in rates), times(rates[0] / max(rates[1], 1e-9)),
                        *(millis(one["p99_us"]) for one in pair), pair[1]["failed"])
        reads = Table(f"Reads, {nodes_text(nodes)}",
                      ["workload", "connections", "reads=serial/s", "reads=quorum/s", "p50 serial", "p50 quorum"])
        for workload, connections in READS:
            if line := lines.get(reads_name(nodes, workload, connections)):
                pair = [line["serial"], line["quorum"]]
                reads.add(workload, connections, *(count(one["ops_per_second"]) for one in pair),
                          *(millis(one["p50_us"]) for one in pair))
        spread = Table(f"One, two and three servers on {nodes_text(nodes)}, {SPREAD_CONNECTIONS} connections in all",
                       ["workload", "servers", "operations/s", "p50", "p99", "servers' CPU/op", "nodes' CPU/op", "turned away"])
        for workload, servers in SPREAD:
            if line := lines.get(spread_name(nodes, workload, servers)):
                label = "merge in one partition" if workload == "merge" else workload
                spread.add(label, servers, count(line["ops_per_second"]), millis(line["p50_us"]), millis(line["p99_us"]),
                           micros(line["cpu_us"]), micros(line["nodes_cpu_us"]) if line["nodes_cpu_us"] else "–", line["failed"])
        shown += [table for table in (compared, hot, reads, spread) if table.rows]
    return shown

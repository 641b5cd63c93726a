"""The step `limits`: Partita beside a server that only answers, in turns, and targets for what it may cost."""

from .load import bench
from .show import Table, count, micros, millis, target_table, times

# Workload and connections. Reads are first, because the compaction after writes must not count for them.
COMPARED = [("get", 16), ("get", 1), ("get", 64), ("merge", 16), ("mixed", 16),
            ("insert", 16), ("insert", 1), ("insert", 64), ("batch", 16)]
# Not compared with bare, whose answers have only one entity.
ALONE = [("page", 16), ("page-select", 16), ("partition-scan", 16)]
# One client that waits for its scan, and the bytes of values in an entity.
SCANS = [("table-scan-small", 200), ("table-scan", 1024)]


def expected(_options):
    """Names of the lines that a complete run writes."""
    return [f"{workload}/{connections}" for workload, connections in COMPARED + ALONE] + [f"{name}/1" for name, _ in SCANS]


def run(setup, results):
    options = setup.options
    timing = {"seconds": options.seconds, "warmup": options.warmup, "rounds": options.rounds}
    if missing(results, ALONE + COMPARED):
        partita, bare = setup.start_partita(), setup.start_bare()
        data = {"entities": options.entities, "trust_answers": True}
        bench(setup.partita, "get", partita, bare, keep=True, count=1, warmup=0, rounds=1, **data)
        for workload, connections in missing(results, ALONE):
            partita.settle()
            # Without trust_answers, so every answer is checked.
            found = bench(setup.partita, workload, partita, reuse=True, connections=connections,
                          entities=options.entities, **timing)
            add(results, workload, connections, options.entities, {"partita": found})
        for workload, connections in missing(results, COMPARED):
            partita.settle()
            ours, theirs = bench(setup.partita, workload, partita, bare, reuse=True, connections=connections,
                                 **data, **timing)
            add(results, workload, connections, options.entities, {"partita": ours, "bare": theirs})
        bare.stop(kill=True)
        setup.remove(partita)
    for name, value_bytes in SCANS:
        if results.has(f"{name}/1"):
            continue
        server = setup.start_partita()
        data = {"entities": options.scan_entities, "value_bytes": value_bytes}
        bench(setup.partita, "get", server, keep=True, count=1, warmup=0, **data)
        server.settle()
        found = bench(setup.partita, "table-scan", server, reuse=True, connections=1, **data, **timing)
        add(results, name, 1, options.scan_entities, {"partita": found, "value_bytes": value_bytes})
        setup.remove(server)


def missing(results, wanted):
    return [(workload, connections) for workload, connections in wanted if not results.has(f"{workload}/{connections}")]


def add(results, workload, connections, entities, found):
    line = {"workload": workload, "connections": connections, "entities": entities, **found}
    results.add(f"{workload}/{connections}", line)
    print(f"   {workload}, {connections} connections: {count(found['partita']['ops_per_second'])}/s, "
          f"{micros(found['partita']['cpu_us'])} of CPU", flush=True)


def tables(lines):
    measured = Table("What was measured",
                     ["workload", "connections", "operations/s", "entities/s", "CPU/op", "bare's CPU/op", "CPU over bare",
                      "p50", "p99", "max"])
    for workload, connections in COMPARED + ALONE + [(name, 1) for name, _ in SCANS]:
        line = lines.get(f"{workload}/{connections}")
        if not line:
            continue
        ours, bare = line["partita"], line.get("bare")
        label = f"{workload} ({line['value_bytes']} B)" if "value_bytes" in line else workload
        measured.add(label, connections, count(ours["ops_per_second"]), count(ours["entities_per_second"]),
                     micros(ours["cpu_us"]), micros(bare["cpu_us"]) if bare else "",
                     times(over_bare(line)) if bare else "", millis(ours["p50_us"]), millis(ours["p99_us"]),
                     millis(ours["max_us"]))
    return [measured, target_table(lines, TARGETS)]


def over_bare(line):
    return line["partita"]["cpu_us"] / max(line["bare"]["cpu_us"], 1e-9)


def ours(field):
    return lambda line: line["partita"][field]


# Line, name of the figure, how to find it, comparison and bound, and how to format it.
TARGETS = [
    ("get/16", "CPU over bare", over_bare, "<=", 2, times),
    ("get/16", "operations/s", ours("ops_per_second"), ">=", 40_000, count),
    ("get/1", "p50", ours("p50_us"), "<=", 200, millis),
    ("insert/16", "operations/s", ours("ops_per_second"), ">=", 18_000, count),
    ("insert/64", "operations/s", ours("ops_per_second"), ">=", 30_000, count),
    ("insert/16", "CPU over bare", over_bare, "<=", 4, times),
    ("insert/1", "p50", ours("p50_us"), "<=", 600, millis),
    ("merge/16", "operations/s", ours("ops_per_second"), ">=", 12_000, count),
    ("mixed/16", "operations/s", ours("ops_per_second"), ">=", 25_000, count),
    *((f"{name}/16", what, ours(field), "<", bound, millis)
      for name in ("get", "insert", "merge", "mixed")
      for what, field, bound in (("p99", "p99_us", 5_000), ("max", "max_us", 50_000))),
    ("batch/16", "CPU", ours("cpu_us"), "<=", 900, micros),
    ("batch/16", "entities/s", ours("entities_per_second"), ">=", 150_000, count),
    ("page/16", "CPU", ours("cpu_us"), "<=", 800, micros),
    ("page/16", "entities/s", ours("entities_per_second"), ">=", 1_500_000, count),
    ("page-select/16", "CPU", ours("cpu_us"), "<=", 400, micros),
    ("partition-scan/16", "CPU", ours("cpu_us"), "<=", 1_200, micros),
    ("table-scan-small/1", "entities/s", ours("entities_per_second"), ">=", 12_000_000, count),
    ("table-scan/1", "entities/s", ours("entities_per_second"), ">=", 8_000_000, count),
]

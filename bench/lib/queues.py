"""The step `queues`: the Queue service beside a server that only answers, beside Azurite's, with few and with many messages
waiting, and after many have gone through. What is compared is measured in turns."""

import statistics

from . import azurite
from .load import bench
from .process import Trouble
from .show import Table, count, micros, millis, number, target_table, times

# Workload and connections. Puts are last, because they add messages.
COMPARED = [("queue-peek", 16), ("queue-peek", 1), ("queue-peek", 64), ("queue-update", 16),
            ("queue-get-delete", 16), ("queue-get-delete", 1), ("queue-get-delete", 64), ("queue-mixed", 16),
            ("queue-put", 16), ("queue-put", 1), ("queue-put", 64)]
WORKLOADS = ["queue-peek", "queue-update", "queue-get-delete", "queue-mixed", "queue-put"]
# Operations that begin in a second, with 64 connections.
RATES = {"queue-peek": 4000, "queue-get-delete": 1000, "queue-put": 2000}
RATE_CONNECTIONS = 64
CONNECTIONS = 16
# Many connections share a sync, so that a million messages are put sooner. They are put in parts, and each part is told.
LOAD_CONNECTIONS = 256
LOAD_PART = 100_000
# The queues that are compared, by the names of tables, which are lent to queues.
FEW, MANY = "few", "many"
# How many times more a processor second must do than Azurite's.
AZURITE_TARGET = 10
# How much more an operation may cost with many messages than with few.
GROWTH_TARGET = 1.15


def expected(options):
    """Names of the lines that a complete run writes."""
    names = [f"{workload}/{connections}" for workload, connections in COMPARED]
    names += [f"{kind}/{workload}" for kind in ("waiting", "through", "many") for workload in WORKLOADS]
    names += [f"rate/{workload}" for workload in RATES]
    return names + ([] if options.no_azurite else [f"azurite/{workload}" for workload in WORKLOADS])


def run(setup, results):
    options = setup.options
    if len(options.waiting) != 2:
        raise Trouble(f"--waiting takes two numbers, few and many messages, and not {len(options.waiting)}")
    beside_bare(setup, results)
    if not options.no_azurite:
        beside_azurite(setup, results)
    as_queues_grow(setup, results)
    many_queues(setup, results)


def timing(options):
    return {"seconds": options.seconds, "warmup": options.warmup, "rounds": options.rounds}


def missing(results, names):
    return [name for name in names if not results.has(name)]


def beside_bare(setup, results):
    options = setup.options
    compared = {f"{workload}/{connections}": {"connections": connections} for workload, connections in COMPARED}
    compared |= {f"rate/{workload}": {"connections": RATE_CONNECTIONS, "rate": rate} for workload, rate in RATES.items()}
    wanted = missing(results, compared)
    if not wanted:
        return
    partita, bare = setup.start_partita_with_queues(), setup.start_bare()
    for name in wanted:
        partita.settle()
        workload = next(part for part in name.split("/") if part.startswith("queue-"))
        ours, theirs = bench(setup.partita, workload, partita, bare, trust_answers=True, waiting=options.waiting[0],
                             **compared[name], **timing(options))
        results.add(name, {"workload": workload, **compared[name], "partita": ours, "bare": theirs})
        print(f"   {name}: {count(ours['ops_per_second'])}/s, {micros(ours['cpu_us'])} of CPU", flush=True)
    bare.stop(kill=True)
    setup.remove(partita)


def beside_azurite(setup, results):
    """Here all answers are checked."""
    options = setup.options
    wanted = missing(results, [f"azurite/{workload}" for workload in WORKLOADS])
    if not wanted:
        return
    other = azurite.start(setup, "queue")
    partita = setup.start_partita_with_queues()
    for name in wanted:
        for server in (partita, other):
            server.settle()
        workload = name.split("/")[1]
        ours, theirs = bench(setup.partita, workload, partita, other, waiting=options.waiting[0], connections=CONNECTIONS,
                             seconds=options.azurite_seconds, warmup=options.warmup, rounds=options.rounds)
        results.add(name, {"workload": workload, "version": azurite.VERSION, "partita": ours, "azurite": theirs})
        print(f"   {name}: {number(azurite.ratio(results.lines[name]))} × per CPU second", flush=True)
    other.stop(kill=True)
    setup.remove(partita)


def as_queues_grow(setup, results):
    """Queues with few messages, beside one with many, and beside one that many have gone through: each time two queues of one
    server, so that both are in a store of the same size."""
    options = setup.options
    few, many = options.waiting
    for kind in ("waiting", "through"):
        names = missing(results, [f"{kind}/{workload}" for workload in WORKLOADS])
        if not names:
            continue
        server = setup.start_partita_with_queues(kind)
        have_wait(setup, server, FEW, few)
        have_wait(setup, server, MANY, many if kind == "waiting" else few)
        if kind == "through":
            have_gone_through(setup, server, few, many)
        for name in names:
            workload = name.split("/")[1]
            first, second = in_turns(setup, server, workload, few)
            results.add(name, {"workload": workload, "few": few, "many": many, "first": first, "second": second})
            print(f"   {name}: {times(growth(results.lines[name]))} the CPU with {count(few)} messages", flush=True)
        setup.remove(server, kind)


def in_turns(setup, server, workload, waiting):
    """Medians of both queues. `waiting` is what there must be at least: the queue with many messages keeps them."""
    options = setup.options
    found = {FEW: [], MANY: []}
    for _ in range(options.rounds):
        for table in (FEW, MANY):
            server.settle()
            found[table].append(bench(setup.partita, workload, server, reuse=True, table=table, waiting=waiting,
                                      connections=CONNECTIONS, seconds=options.seconds, warmup=options.warmup, rounds=1))
    return tuple({field: statistics.median(each[field] for each in rounds) for field in rounds[0]} for rounds in found.values())


def have_wait(setup, server, table, messages):
    """Puts messages into a new queue, which is named after the table, until so many wait."""
    for waiting in parts(messages):
        kept = {"reuse": True} if waiting > LOAD_PART else {"keep": True}
        bench(setup.partita, "queue-peek", server, table=table, waiting=waiting, count=1, warmup=0, rounds=1,
              connections=LOAD_CONNECTIONS, **kept)
        told(f"{count(waiting)} messages wait", messages)


def have_gone_through(setup, server, waiting, messages):
    """Puts, gets and deletes so many messages of the queue."""
    before = 0
    for through in parts(messages):
        bench(setup.partita, "queue-get-delete", server, reuse=True, table=MANY, waiting=waiting, count=through - before, warmup=0,
              rounds=1, connections=LOAD_CONNECTIONS)
        before = through
        told(f"{count(through)} messages have gone through", messages)


def parts(messages):
    """Numbers up to this one, each at most one part above the number before."""
    return [*range(LOAD_PART, messages, LOAD_PART), messages]


def told(progress, messages):
    if messages > LOAD_PART:
        print(f"   {progress}", flush=True)


def many_queues(setup, results):
    options = setup.options
    wanted = missing(results, [f"many/{workload}" for workload in WORKLOADS])
    if not wanted:
        return
    server = setup.start_partita_with_queues()
    waiting = max(options.waiting[0], 10 * options.queues)
    for name in wanted:
        server.settle()
        workload = name.split("/")[1]
        found = bench(setup.partita, workload, server, queues=options.queues, waiting=waiting, connections=CONNECTIONS,
                      **timing(options))
        results.add(name, {"workload": workload, "queues": options.queues, "waiting": waiting, "partita": found})
        print(f"   {name}: {count(found['ops_per_second'])}/s, {micros(found['cpu_us'])} of CPU", flush=True)
    setup.remove(server)


def growth(line):
    return line["second"]["cpu_us"] / max(line["first"]["cpu_us"], 1e-9)


def over_bare(line):
    return line["partita"]["cpu_us"] / max(line["bare"]["cpu_us"], 1e-9)


def tables(lines):
    return [table for table in [measured(lines), beside_azurite_table(lines), growth_table(lines), rates_table(lines),
                                target_table(lines, TARGETS)] if table.rows]


def measured(lines):
    table = Table("What was measured; one operation of get-delete is two requests",
                  ["workload", "queues", "connections", "operations/s", "CPU/op", "bare's CPU/op", "CPU over bare", "p50", "p99", "max"])
    for workload, connections in COMPARED:
        line = lines.get(f"{workload}/{connections}")
        if line:
            ours, bare = line["partita"], line["bare"]
            table.add(workload, 1, connections, count(ours["ops_per_second"]), micros(ours["cpu_us"]), micros(bare["cpu_us"]),
                      times(over_bare(line)), millis(ours["p50_us"]), millis(ours["p99_us"]), millis(ours["max_us"]))
    for workload in WORKLOADS:
        line = lines.get(f"many/{workload}")
        if line:
            ours = line["partita"]
            table.add(workload, f"{line['queues']:,}", CONNECTIONS, count(ours["ops_per_second"]), micros(ours["cpu_us"]), "", "",
                      millis(ours["p50_us"]), millis(ours["p99_us"]), millis(ours["max_us"]))
    return table


def beside_azurite_table(lines):
    table = Table("Beside Azurite, in turns",
                  ["workload", "CPU/op", "Azurite's", "operations/s", "Azurite's", "target", "per CPU second", "met"])
    for workload in WORKLOADS:
        line = lines.get(f"azurite/{workload}")
        if line:
            ours, theirs, found = line["partita"], line["azurite"], azurite.ratio(line)
            table.add(workload, micros(ours["cpu_us"]), micros(theirs["cpu_us"]), count(ours["ops_per_second"]),
                      count(theirs["ops_per_second"]), f"≥ {AZURITE_TARGET} ×", times(found), "yes" if found >= AZURITE_TARGET else "no")
    return table


def growth_table(lines):
    line = next((line for name, line in lines.items() if name.startswith(("waiting/", "through/"))), None)
    few, many = (count(line["few"]), count(line["many"])) if line else ("", "")
    table = Table("CPU per operation as a queue grows, in turns",
                  ["workload", "", f"{few} waiting", "then", "ratio", "target", "met"])
    for kind, what in (("waiting", f"{many} waiting"), ("through", f"{few} waiting after {many} went through")):
        for workload in WORKLOADS:
            line = lines.get(f"{kind}/{workload}")
            if line:
                table.add(workload, what, micros(line["first"]["cpu_us"]), micros(line["second"]["cpu_us"]), times(growth(line)),
                          f"≤ {times(GROWTH_TARGET)}", "yes" if growth(line) <= GROWTH_TARGET else "no")
    return table


def rates_table(lines):
    table = Table(f"At a fixed rate, {RATE_CONNECTIONS} connections; latency from when a request should have begun",
                  ["workload", "begun a second", "p50", "p99", "max", "CPU/op", "bare's p50", "bare's p99"])
    for workload in RATES:
        line = lines.get(f"rate/{workload}")
        if line:
            ours, bare = line["partita"], line["bare"]
            table.add(workload, count(line["rate"]), millis(ours["p50_us"]), millis(ours["p99_us"]), millis(ours["max_us"]),
                      micros(ours["cpu_us"]), millis(bare["p50_us"]), millis(bare["p99_us"]))
    return table


def ours(field):
    return lambda line: line["partita"][field]


# Line, name of the figure, how to find it, comparison and bound, and how to format it.
TARGETS = [
    ("queue-put/16", "operations/s", ours("ops_per_second"), ">=", 12_000, count),
    ("queue-get-delete/16", "operations/s", ours("ops_per_second"), ">=", 5_000, count),
    ("queue-peek/16", "operations/s", ours("ops_per_second"), ">=", 30_000, count),
    *((f"{name}/16", what, ours(field), "<", bound, millis)
      for name in ("queue-peek", "queue-put")
      for what, field, bound in (("p99", "p99_us", 5_000), ("max", "max_us", 50_000))),
]

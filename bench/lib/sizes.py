"""The step `sizes`: which costs grow with the store, and which do not; one long partition; many tables."""

import random
import threading
import time

from . import file_cache
from .client import Letters, TableClient
from .load import bench
from .process import Trouble, cpu_of, disk_bytes, need_space, restart_times
from .setup import connect
from .show import MET, Table, count, duration_or_none, mib, micros, number, seconds, times

VALUE_BYTES = 1024
TABLE = "partitabenchdata"
# Rows in a partition of `partita bench`, if there are that many.
PARTITION_ROWS = 10_000
RANGE_ROWS = 100
PAGE_ROWS = 1000
BATCH_ROWS = 100
WRITERS = 4
# While a store is loaded, compaction keeps old and new files.
DISK_PER_DATA = 2.5
SETTLE_SECONDS_MAX = 900
# The share of the data's disk space that must be free again before the space counts as reclaimed.
RECLAIMED_SHARE = 0.9
RECLAIM_SECONDS_MAX = 300
# Data that is still in memory and in the log when its table is dropped is removed later. If there is little data, that is all
# of it, and waiting for it shows nothing.
RECLAIM_BYTES_MIN = 256 * 2**20
# How much more a point read and a page may cost in the largest store than in the smallest.
GROWTH_MAX = 1.3
COSTS = ["get", "page", "range", "insert", "merge", "partition-scan"]


def expected(options):
    """Names of the lines that a complete run writes."""
    return [*(f"entities-{size}" for size in options.sizes), f"partition-{options.partition_rows}", f"tables-{options.tables}"]


def run(setup, results):
    options = setup.options
    wanted = [size for size in options.sizes if not results.has(f"entities-{size}")]
    largest = max([*wanted, options.partition_rows])
    need_space(setup.directory, largest * VALUE_BYTES * DISK_PER_DATA, "choose smaller --sizes, as in --sizes 10000,1000000")
    for size in wanted:
        print(f"   {size:,} entities", flush=True)
        results.add(f"entities-{size}", measure_size(setup, size))
    name = f"partition-{options.partition_rows}"
    if not results.has(name):
        print(f"   one partition of {options.partition_rows:,} rows", flush=True)
        results.add(name, measure_partition(setup, options.partition_rows))
    name = f"tables-{options.tables}"
    if not results.has(name):
        print(f"   {options.tables:,} tables", flush=True)
        results.add(name, measure_tables(setup, options.tables))


def measure_size(setup, size):
    options = setup.options
    data = {"entities": size, "value_bytes": VALUE_BYTES}
    timing = {"seconds": options.seconds, "warmup": options.warmup, "rounds": options.rounds, "reuse": True}
    server = setup.start_partita()
    # The file of the log has its full length from the start.
    empty = disk_bytes(setup.store())

    def load():
        started = time.monotonic()
        bench(setup.partita, "get", server, keep=True, count=1, warmup=0, fill=False, **data)
        loaded = time.monotonic() - started
        server.settle(SETTLE_SECONDS_MAX)
        return loaded, time.monotonic() - started

    file_cache.fill()
    (loaded, settled), cpu = cpu_of(server, load)
    stop, start = restart_times(server, 3)
    server.settle()
    taken = disk_bytes(setup.store()) - empty
    line = {
        "entities": size,
        "load_seconds": round(loaded, 2),
        "load_per_second": round(size / loaded),
        # With the compaction afterwards.
        "settled_seconds": round(settled, 2),
        "load_cpu_us": round(cpu / size * 1e6, 2),
        "empty_mib": round(empty / 2**20, 1),
        "disk_per_byte": round(taken / (size * VALUE_BYTES), 3),
        "stop_seconds": round(stop, 4),
        "start_seconds": round(start, 4),
        "idle_mib": round(server.memory_mib()[0], 1),
    }
    file_cache.keep(setup.store())
    # The server has just been started. One scan of the table fills its cache, as far as the rows fit into it.
    line["table-scan-cold"] = bench(setup.partita, "table-scan", server, connections=1, reuse=True, count=1, warmup=0, **data)
    for workload in ["get", "page"]:
        line[workload] = bench(setup.partita, workload, server, **data, **timing)
    line["range"] = read_ranges(server, TABLE, size, min(size, PARTITION_ROWS), options)
    line["partition-scan"] = bench(setup.partita, "partition-scan", server, **data, **timing)
    line["table-scan"] = bench(setup.partita, "table-scan", server, connections=1, **data, **{**timing, "rounds": 1})
    for workload in ["insert", "merge"]:
        line[workload] = bench(setup.partita, workload, server, **data, **timing)
        server.settle(SETTLE_SECONDS_MAX)
    server.forget_peak()
    line["mixed"] = bench(setup.partita, "mixed", server, **data, **{**timing, "seconds": options.mixed_seconds, "rounds": 1})
    line["mixed_peak_mib"] = round(server.memory_mib()[1], 1)
    # Right after writes, so that there is a log to replay.
    server.stop(kill=True)
    line["start_killed_seconds"] = round(server.start(), 4)
    bench(setup.partita, "get", server, reuse=True, count=1000, warmup=0, **data)
    server.settle(SETTLE_SECONDS_MAX)
    line.update(drop(setup, server, taken))
    setup.remove(server)
    return line


def drop(setup, server, taken):
    """Drops the whole table, and measures the time until the answer and until its disk space is free."""
    before = disk_bytes(setup.store())
    client = connect(server)

    def work():
        started = time.monotonic()
        client.delete_table(TABLE)
        answered = time.monotonic() - started
        while taken >= RECLAIM_BYTES_MIN and time.monotonic() - started < RECLAIM_SECONDS_MAX:
            if disk_bytes(setup.store()) <= before - RECLAIMED_SHARE * taken:
                return answered, round(time.monotonic() - started, 2)
            time.sleep(0.05)
        return answered, None

    (answered, reclaimed), cpu = cpu_of(server, work)
    server.settle(SETTLE_SECONDS_MAX)
    return {
        "drop_seconds": round(answered, 5),
        "reclaim_seconds": reclaimed,
        "drop_cpu_seconds": round(cpu, 2),
    }


def read_ranges(server, table, entities, partition_rows, options, partition=None):
    """Reads ranges of 100 rows within a partition, one after another. This client is slow, so only the server's CPU counts."""
    def one(client, chosen):
        of = chosen.randrange(max(1, entities // partition_rows))
        row = chosen.randrange(partition_rows - RANGE_ROWS)
        body = client.rows(table, partition or f"p{of:06}", f"r{row:08}", f"r{row + RANGE_ROWS:08}")
        if body.count(b'"RowKey"') != RANGE_ROWS:
            raise Trouble(f"a range of {RANGE_ROWS} rows has {body.count(b'RowKey')}")
    return repeat(server, one, options)


def repeat(server, one, options):
    client, chosen = connect(server), random.Random(1)

    def work(length):
        done, end = 0, time.monotonic() + length
        while time.monotonic() < end:
            one(client, chosen)
            done += 1
        return done

    work(options.warmup)
    operations, cpu = cpu_of(server, lambda: work(options.seconds))
    return {"operations": operations, "cpu_us": round(cpu / operations * 1e6, 2)}


def measure_partition(setup, rows):
    """Measures one partition with rows of 1 KiB."""
    options = setup.options
    server = setup.start_partita()
    connect(server).create_table("Long")
    letters = Letters()

    def entity(row):
        return (f'{{"PartitionKey":"all","RowKey":"r{row:08}","Number":{row},"Text":"{letters.cut(500)}",'
                f'"Note":"{letters.cut(500)}"}}')

    def load():
        def write(client, index):
            for start in range(index * BATCH_ROWS, rows, WRITERS * BATCH_ROWS):
                client.insert_batch("Long", [entity(row) for row in range(start, min(start + BATCH_ROWS, rows))])
        in_parallel(server, write)
        server.settle(SETTLE_SECONDS_MAX)

    _, cpu = cpu_of(server, load)
    server.stop()
    server.start()
    server.settle()

    def get(client, chosen):
        client.get("Long", "all", f"r{chosen.randrange(rows):08}")

    def page(client, chosen):
        body = client.rows("Long", "all", f"r{chosen.randrange(rows - PAGE_ROWS):08}")
        if body.count(b'"RowKey"') != PAGE_ROWS:
            raise Trouble(f"a page has {body.count(b'RowKey')} rows and not {PAGE_ROWS}")

    line = {
        "rows": rows,
        "load_cpu_us": round(cpu / rows * 1e6, 2),
        "get": repeat(server, get, options),
        "page": repeat(server, page, options),
        "range": read_ranges(server, "Long", rows, rows, options, partition="all"),
    }
    setup.remove(server)
    return line


def measure_tables(setup, tables):
    server = setup.start_partita()

    def create():
        def write(client, index):
            for table in range(index, tables, WRITERS):
                client.create_table(f"t{table:08}")
        started = time.monotonic()
        in_parallel(server, write)
        return time.monotonic() - started

    created, cpu = cpu_of(server, create)
    started = time.monotonic()
    (listed, pages), list_cpu = cpu_of(server, connect(server).count_tables)
    listing = time.monotonic() - started
    if listed != tables:
        raise Trouble(f"{tables} tables were created, but {listed} are listed")
    stop, start = restart_times(server, 3)
    server.settle()
    line = {
        "tables": tables,
        "created_per_second": round(tables / created),
        "create_cpu_us": round(cpu / tables * 1e6, 2),
        "list_seconds": round(listing, 3),
        "list_pages": pages,
        "list_cpu_seconds": round(list_cpu, 3),
        "stop_seconds": round(stop, 4),
        "start_seconds": round(start, 4),
        "idle_mib": round(server.memory_mib()[0], 1),
    }
    setup.remove(server)
    return line


def in_parallel(server, write):
    """Runs `write(client, index)` for each writer; raises the first error."""
    errors = []

    def one(index):
        try:
            write(TableClient(server.port), index)
        except Exception as error:  # raised below, in the thread that can end the step
            errors.append(error)

    threads = [threading.Thread(target=one, args=(index,), daemon=True) for index in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def of_sizes(lines):
    return sorted((line for line in lines.values() if "entities" in line), key=lambda line: line["entities"])


def tables(lines):
    measured = of_sizes(lines)
    shown = []
    if measured:
        shown += [cost_table(measured), growth_table(measured), store_table(measured)]
    for line in lines.values():
        if "rows" in line:
            table = Table(f"One partition of {line['rows']:,} rows", ["CPU/op", "get", "page", "range", "load, per entity"])
            table.add("", *(micros(line[name]["cpu_us"]) for name in ("get", "page", "range")), micros(line["load_cpu_us"]))
            shown.append(table)
        if "tables" in line:
            table = Table(f"{line['tables']:,} tables", ["", "measured"])
            table.add("made a second", count(line["created_per_second"]))
            table.add("CPU to make one", micros(line["create_cpu_us"]))
            table.add(f"to list all, {line['list_pages']} pages", seconds(line["list_seconds"]))
            table.add("to start after a clean stop", seconds(line["start_seconds"]))
            table.add("memory at rest", mib(line["idle_mib"]))
            shown.append(table)
    return shown


def cost_table(measured):
    table = Table("CPU per operation by entities in the store", ["", *(f"{line['entities']:,}" for line in measured)])
    for name in COSTS:
        table.add(name, *(micros(line[name]["cpu_us"]) for line in measured))
    table.add("table-scan, per entity",
              *(micros(line["table-scan"]["cpu_us"] / line["entities"]) for line in measured))
    table.add("first table-scan after a start, per entity",
              *(micros(line["table-scan-cold"]["cpu_us"] / line["entities"]) for line in measured))
    table.add("load with compaction, per entity", *(micros(line["load_cpu_us"]) for line in measured))
    return table


def growth_table(measured):
    smallest, largest = measured[0], measured[-1]
    table = Table(f"CPU at {largest['entities']:,} entities over {smallest['entities']:,}",
                  ["workload", "target", "measured", "met"])
    for name in COSTS:
        growth = largest[name]["cpu_us"] / max(smallest[name]["cpu_us"], 1e-9)
        bound = name in ("get", "page", "range")
        table.add(name, f"≤ {times(GROWTH_MAX)}" if bound else "", times(growth),
                  ("yes" if MET["<="](growth, GROWTH_MAX) else "no") if bound else "")
    return table


def store_table(measured):
    table = Table("The store", ["", *(f"{line['entities']:,}" for line in measured)])

    def row(label, write, value):
        table.add(label, *(write(value(line)) for line in measured))

    row("loaded, entities/s", count, lambda line: line["load_per_second"])
    row("loaded in", seconds, lambda line: line["load_seconds"])
    row("and compacted in", seconds, lambda line: line["settled_seconds"])
    row("disk of an empty store", mib, lambda line: line["empty_mib"])
    row("disk beyond that, per byte of values", number, lambda line: line["disk_per_byte"])
    row("to stop", seconds, lambda line: line["stop_seconds"])
    row("to start after a clean stop", seconds, lambda line: line["start_seconds"])
    row("to start after kill -9 under writes", seconds, lambda line: line["start_killed_seconds"])
    row("memory at rest", mib, lambda line: line["idle_mib"])
    row("peak memory under mixed load", mib, lambda line: line["mixed_peak_mib"])
    row("drop of the table, to the answer", seconds, lambda line: line["drop_seconds"])
    row("to its space on disk", duration_or_none, lambda line: line["reclaim_seconds"])
    row("CPU of the drop", seconds, lambda line: line["drop_cpu_seconds"])
    return table

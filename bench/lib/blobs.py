"""The step `blobs`: the Blob service beside a server that only answers and syncs files, beside Azurite, with small and large
containers, and with a blob that is much larger than the memory it may take. What is compared is measured in turns."""

import statistics

from . import azurite
from .load import bench
from .process import disk_bytes, need_space
from .show import Table, bytes_text, count, mib, micros, millis, number, times

KIB, MIB, GIB = 2**10, 2**20, 2**30
BLOCK_BYTES = 8 * MIB
# Up to these sizes, so many connections, and these workloads. Reads are first, because writes leave work behind.
SMALL, MIDDLE = 64 * KIB, 64 * MIB
CONNECTIONS = {SMALL: 16, MIDDLE: 4, None: 1}
WORKLOADS = {SMALL: ["blob-get", "blob-mixed", "blob-put", "blob-append"],
             MIDDLE: ["blob-get", "blob-range", "blob-put", "blob-append"],
             None: ["blob-get", "blob-put", "blob-blocks"]}
# The longest blob that one Put may have.
PUT_BYTES_MAX = 5000 * MIB
# What is loaded for reads: so many bytes, and not more than so many blobs.
LOADED_BYTES, LOADED_BLOBS = 64 * MIB, 10_000
# From this size on, the part of bare's bytes a second that must be reached.
BARE_TARGET, BARE_TARGET_FROM = 0.7, MIB
# For small blobs, how many times more a processor second must do than Azurite's.
AZURITE_TARGET = 10
LISTS = ["blob-list", "blob-folders"]
LIST_BLOB_BYTES = 16
LIST_CONNECTIONS = 16
LOAD_CONNECTIONS = 256
# How much more a list by prefix may cost in a large container than in a small one.
GROWTH_TARGET = 1.15
# How much the server's memory may grow.
MEMORY_TARGET_MIB = 64
MEMORY = ["blob-blocks", "blob-get", "blob-put"]


def expected(options):
    """Names of the lines that a complete run writes."""
    servers = ["bare", "md5"] if options.no_azurite else ["bare", "md5", "azurite"]
    names = [line_name(server, size, workload) for server in servers for size in options.blob_sizes for workload in workloads(server, size)]
    names += [f"list/{workload}/{blobs}" for workload in LISTS for blobs in options.list_blobs]
    return names + [f"memory/{workload}" for workload in MEMORY]


def workloads(server, size):
    """An MD5 differs only for what is put whole."""
    if server == "md5":
        return ["blob-put"] if size >= BARE_TARGET_FROM else []
    return of_size(WORKLOADS, size)


def of_size(table, size):
    return next(value for limit, value in table.items() if limit is None or size <= limit)


def line_name(server, size, workload):
    return f"{server}/{size}/{workload}"


def run(setup, results):
    options = setup.options
    # Each of two servers holds the largest blob some times: loaded, written, overwritten.
    need_space(options.data, 12 * max(options.blob_sizes) + 5 * options.large_blob, "measure shorter --blob-sizes and --large-blob")
    beside(setup, results, "bare")
    beside(setup, results, "md5")
    if not options.no_azurite:
        beside(setup, results, "azurite")
    as_containers_grow(setup, results)
    memory(setup, results)


def beside(setup, results, name):
    """Beside Azurite all answers are checked. Bare makes up what it sends, so beside it none is, of both. The server `md5` is bare
    with an MD5 of each blob that is put."""
    options = setup.options
    for size in options.blob_sizes:
        wanted = [workload for workload in workloads(name, size) if not results.has(line_name(name, size, workload))]
        if not wanted:
            continue
        partita = setup.start_partita_with_blobs()
        other = azurite.start(setup, "blob") if name == "azurite" else setup.start_bare(md5=name == "md5")
        connections = of_size(CONNECTIONS, size)
        # A large blob takes longer than a round; each is measured once.
        timing = {"count": 1, "warmup": 0} if connections == 1 else {"warmup": options.warmup, "seconds": (
            options.azurite_seconds if name == "azurite" else options.seconds)}
        flags = {"blob_bytes": size, "blobs": max(1, min(LOADED_BYTES // size, LOADED_BLOBS)), "connections": connections,
                 "block_bytes": max(1, min(BLOCK_BYTES, size // 4)), "trust_answers": name != "azurite"}
        bench(setup.partita, "blob-get", partita, other, keep=True, rounds=1, **flags, count=1, warmup=0)
        for workload in wanted:
            for server in (partita, other):
                server.settle()
            ours, theirs = bench(setup.partita, workload, partita, other, reuse=True, rounds=options.rounds, **flags, **timing)
            line = {"workload": workload, "bytes": size, "connections": connections, "partita": ours, name: theirs}
            results.add(line_name(name, size, workload), line)
            print(f"   {workload} of {bytes_text(size)} beside {name}: {rate(ours)}, {name} {rate(theirs)}", flush=True)
        other.stop(kill=True)
        setup.remove(partita)
        setup.remove(other, "azurite")


def rate(found):
    return f"{count(found['ops_per_second'])}/s, {number(found['bytes_per_second'] / MIB)} MiB/s, {micros(found['cpu_us'])} of CPU"


def as_containers_grow(setup, results):
    """All containers are in one server, so that each is in a store of the same size."""
    options = setup.options
    sizes = options.list_blobs
    wanted = [workload for workload in LISTS if any(not results.has(f"list/{workload}/{blobs}") for blobs in sizes)]
    if not wanted:
        return
    server = setup.start_partita_with_blobs()
    for blobs in sizes:
        bench(setup.partita, "blob-get", server, keep=True, table=f"list{blobs}", blobs=blobs, blob_bytes=LIST_BLOB_BYTES,
              connections=LOAD_CONNECTIONS, count=1, warmup=0, rounds=1)
        print(f"   a container of {count(blobs)} blobs is loaded", flush=True)
    for workload in wanted:
        found = {blobs: [] for blobs in sizes}
        for _ in range(options.rounds):
            for blobs in sizes:
                server.settle()
                found[blobs].append(bench(setup.partita, workload, server, reuse=True, table=f"list{blobs}", blobs=blobs,
                                          blob_bytes=LIST_BLOB_BYTES, connections=LIST_CONNECTIONS, seconds=options.seconds,
                                          warmup=options.warmup, rounds=1))
        for blobs, rounds in found.items():
            median = {field: statistics.median(each[field] for each in rounds) for field in rounds[0]}
            results.add(f"list/{workload}/{blobs}", {"workload": workload, "blobs": blobs, "partita": median})
            print(f"   {workload} in {count(blobs)} blobs: {micros(median['cpu_us'])} of CPU", flush=True)
    setup.remove(server)


def memory(setup, results):
    """How much more memory than at its start the server has at most, while one blob goes in and out."""
    options = setup.options
    if all(results.has(f"memory/{workload}") for workload in MEMORY):
        return
    server = setup.start_partita_with_blobs()
    size = options.large_blob
    flags = {"blobs": 1, "connections": 1, "count": 1, "warmup": 0, "rounds": 1, "block_bytes": max(1, min(BLOCK_BYTES, size // 4))}
    server.settle()
    start = server.memory_mib()[0]

    def measured(workload, bytes_, **more):
        server.settle()
        before = server.memory_mib()[0]
        server.forget_peak()
        found = bench(setup.partita, workload, server, blob_bytes=bytes_, **flags, **more)
        after, peak = server.memory_mib()
        line = {"workload": workload, "bytes": bytes_, "start_mib": round(start, 1), "before_mib": round(before, 1), "peak_mib": round(peak, 1),
                "after_mib": round(after, 1), "disk_mib": round(disk_bytes(setup.store()) / MIB, 1), "partita": found}
        results.add(f"memory/{workload}", line)
        print(f"   {workload} of {bytes_text(bytes_)}: {rate(found)}, memory {mib(before)}, at most {mib(peak)}", flush=True)

    # With --trust-answers, what was written is not read in the same measurement.
    measured("blob-blocks", size, trust_answers=True)
    bench(setup.partita, "blob-get", server, blob_bytes=size, keep=True, **flags)
    measured("blob-get", size, reuse=True)
    measured("blob-put", min(size, PUT_BYTES_MAX), trust_answers=True)
    setup.remove(server)


def tables(lines):
    return [table for table in [beside_bare_table(lines), beside_md5_table(lines), beside_azurite_table(lines), lists_table(lines), memory_table(lines)] if table.rows]


def of_kind(lines, kind):
    return [line for name, line in lines.items() if name.startswith(f"{kind}/")]


def mib_a_second(found):
    return number(found["bytes_per_second"] / MIB)


def beside_bare_table(lines):
    table = Table("Beside a server that only answers, in turns",
                  ["workload", "size", "connections", "operations/s", "MiB/s", "bare's MiB/s", "of bare's", "target", "met", "CPU/op",
                   "bare's CPU/op", "p50", "p99"])
    for line in of_kind(lines, "bare"):
        ours, bare = line["partita"], line["bare"]
        part = ours["bytes_per_second"] / max(bare["bytes_per_second"], 1e-9)
        bound = line["bytes"] >= BARE_TARGET_FROM
        table.add(line["workload"], bytes_text(line["bytes"]), line["connections"], count(ours["ops_per_second"]), mib_a_second(ours),
                  mib_a_second(bare), f"{part:.0%}", f"≥ {BARE_TARGET:.0%}" if bound else "", yes(part >= BARE_TARGET) if bound else "",
                  micros(ours["cpu_us"]), micros(bare["cpu_us"]), millis(ours["p50_us"]), millis(ours["p99_us"]))
    return table


def beside_md5_table(lines):
    table = Table("Beside the same server when it also computes the MD5 of what is put, in turns",
                  ["workload", "size", "connections", "MiB/s", "that server's MiB/s", "of that server's", "CPU/op", "that server's CPU/op"])
    for line in of_kind(lines, "md5"):
        ours, theirs = line["partita"], line["md5"]
        table.add(line["workload"], bytes_text(line["bytes"]), line["connections"], mib_a_second(ours), mib_a_second(theirs),
                  f"{ours['bytes_per_second'] / max(theirs['bytes_per_second'], 1e-9):.0%}", micros(ours["cpu_us"]), micros(theirs["cpu_us"]))
    return table


def beside_azurite_table(lines):
    table = Table("Beside Azurite, in turns",
                  ["workload", "size", "connections", "CPU/op", "Azurite's", "MiB/s", "Azurite's", "target", "per CPU second", "met"])
    for line in of_kind(lines, "azurite"):
        ours, theirs, found = line["partita"], line["azurite"], azurite.ratio(line)
        bound = line["bytes"] <= SMALL
        table.add(line["workload"], bytes_text(line["bytes"]), line["connections"], micros(ours["cpu_us"]), micros(theirs["cpu_us"]),
                  mib_a_second(ours), mib_a_second(theirs), f"≥ {AZURITE_TARGET} ×" if bound else "", times(found),
                  yes(found >= AZURITE_TARGET) if bound else "")
    return table


def lists_table(lines):
    found = of_kind(lines, "list")
    sizes = sorted({line["blobs"] for line in found})
    table = Table("CPU of a list by prefix, by blobs in the container; a list has 100 names",
                  ["workload", *(f"{blobs:,}" for blobs in sizes), "largest over smallest", "target", "met"])
    for workload in LISTS:
        # A small container has fewer than a hundred folders.
        costs = {line["blobs"]: line["partita"]["cpu_us"] for line in found if line["workload"] == workload}
        full = [blobs for blobs in sizes if blobs in costs and (workload == "blob-list" or blobs >= 10_000 or len(sizes) < 3)]
        if full:
            growth = costs[full[-1]] / max(costs[full[0]], 1e-9)
            table.add(workload, *(micros(costs[blobs]) if blobs in full else "" for blobs in sizes), times(growth),
                      f"≤ {times(GROWTH_TARGET)}", yes(growth <= GROWTH_TARGET))
    return table


def memory_table(lines):
    table = Table("Memory while one blob goes through, 1 connection, 4 more for blocks",
                  ["workload", "size", "MiB/s", "memory at the start", "at most", "growth", "target", "met"])
    for line in of_kind(lines, "memory"):
        growth = line["peak_mib"] - line["start_mib"]
        table.add(line["workload"], bytes_text(line["bytes"]), mib_a_second(line["partita"]), mib(line["start_mib"]), mib(line["peak_mib"]),
                  mib(growth), f"≤ {MEMORY_TARGET_MIB} MiB", yes(growth <= MEMORY_TARGET_MIB))
    return table


def yes(met):
    return "yes" if met else "no"

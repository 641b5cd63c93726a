"""Runs `partita bench` and takes from its report what the results contain."""

import json
import subprocess

from . import file_cache
from .client import connection_string
from .process import Trouble


def bench(partita, workload, server, other=None, tolerate=None, fill=True, **flags):
    """Runs one workload; with `other`, on both servers in turns. Flags are those of `partita bench`, with _ for -; True
    stands for a flag without a value. Returns one result for each server. Failures with the status `tolerate` are only
    counted. Without `fill`, the caller has filled the file cache, because it takes the time."""
    command = [partita, "bench", workload, "--json", "--pid", str(server.pid),
               "--connection-string", connection_string(server.port, server.queue_port, server.blob_port)]
    if other:
        command += ["--compare", connection_string(other.port, other.queue_port, other.blob_port), "--compare-pid", str(other.pid)]
    for name, value in flags.items():
        if value is not None and value is not False:
            command += [f"--{name.replace('_', '-')}"] + ([] if value is True else [str(value)])
    if fill:
        file_cache.fill()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        raise Trouble(f"partita bench {workload} gave no report: {done.stderr.strip() or done.stdout.strip()}") from None
    results = [result(endpoint["workloads"][0]) for endpoint in report["endpoints"]]
    for found in results:
        if found["failed"] and not (tolerate and all(failure.startswith(str(tolerate)) for failure in found["failures"])):
            raise Trouble(f"{found['failed']} operations of {workload} failed: {found['failures']}")
        del found["failures"]
    if done.returncode != 0 and not any(found["failed"] for found in results):
        raise Trouble(f"partita bench {workload} ended with status {done.returncode}: {done.stderr.strip()}")
    return results if other else results[0]


def result(summary):
    latency, server = summary["latency_micros"], summary["server"]
    return {
        "operations": summary["operations"],
        "failed": summary["failed"],
        "failures": summary["failures"],
        "ops_per_second": round(summary["operations_per_second"], 1),
        "entities_per_second": round(summary["entities_per_second"], 1),
        **({"bytes_per_second": round(summary["bytes_per_second"])} if "bytes_per_second" in summary else {}),
        "p50_us": latency["p50"],
        "p99_us": latency["p99"],
        "max_us": latency["max"],
        "cpu_us": round(server["cpu_micros_per_operation"], 2),
        "client_cpu_us": round(summary["client_cpu_micros_per_operation"], 2),
        "resident_mib": round(server["resident_kib"] / 1024, 1),
        "peak_mib": round(server["peak_kib"] / 1024, 1),
    }

"""The step `minio`: blobs beside MinIO, a server for files of any size with the S3 protocol. `partita bench` does not speak
that, so clients that know neither protocol send both servers the same plain requests: wrk, and curl for a large blob. Partita
checks a token; MinIO lets anybody read and write the bucket. The same connections, in turns."""

import base64
import datetime
import hashlib
import hmac
import http.client
import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import urlencode

from .client import ACCOUNT, KEY
from .process import Trouble, accepts_connections, cpu_of
from .show import Table, bytes_text, count, micros, number, times

# The Go proxy has no released version, so this is a commit of its main branch.
VERSION = "v0.0.0-20260212201848-7aac2a2c5b7c"
USER, PASSWORD, BUCKET = "partita", "partita-bench", "bench"
KIB, MIB, GIB = 2**10, 2**20, 2**30
# By size: connections of wrk, and blobs that are read. Without connections curl sends one blob.
SIZES = {KIB: (16, 10_000), MIB: (4, 64), GIB: (None, 1)}
WORKLOADS = ["put", "get"]


def expected(options):
    """Names of the lines that a complete run writes."""
    return [f"{size}/{workload}" for size in options.minio_sizes for workload in WORKLOADS]


def install():
    """Compiles it into the cache that builds use too; returns the program."""
    for tool, how in (("go", "install Go"), ("wrk", "on Debian run: apt-get install wrk"), ("curl", "on Debian run: apt-get install curl")):
        if not shutil.which(tool):
            raise Trouble(f"{tool} is missing, which the step minio needs; {how}, or leave out the step")
    cache = os.environ.get("PARTITA_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "partita")
    folder = Path(cache) / f"minio-{VERSION}"
    if not (folder / "minio").exists():
        print("   compiling minio; this takes some minutes", flush=True)
        done = subprocess.run(["go", "install", f"github.com/minio/minio@{VERSION}"], env={**os.environ, "GOBIN": str(folder)},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Trouble(f"go could not install minio: {done.stderr.strip()[-600:]}")
    return str(folder / "minio")


def run(setup, results):
    program = install()
    for size in setup.options.minio_sizes:
        wanted = [workload for workload in WORKLOADS if not results.has(f"{size}/{workload}")]
        if not wanted:
            continue
        connections, blobs = SIZES[size]
        partita, minio = Partita(setup), Minio(setup, program)
        client = Large(setup, size) if connections is None else Small(setup, size, connections, blobs)
        for server in (partita, minio):
            client.load(server)
        for workload in wanted:
            found = {server.name: [] for server in (partita, minio)}
            for _ in range(setup.options.rounds):
                for server in (partita, minio):
                    server.process.settle()
                    found[server.name].append(client.measure(server, workload))
            medians = {name: {field: statistics.median(each[field] for each in rounds) for field in rounds[0]} for name, rounds in found.items()}
            results.add(f"{size}/{workload}", {"workload": workload, "bytes": size, "connections": connections or 1, **medians})
            print(f"   {workload} of {bytes_text(size)}: {shown(medians['partita'])}, minio {shown(medians['minio'])}", flush=True)
        minio.process.stop(kill=True)
        setup.remove(partita.process)
        shutil.rmtree(setup.store("minio"), ignore_errors=True)


def shown(found):
    return f"{count(found['ops_per_second'])}/s, {number(found['bytes_per_second'] / MIB)} MiB/s, {micros(found['cpu_us'])} of CPU"


class Partita:
    name = "partita"

    def __init__(self, setup):
        self.process = setup.start_partita_with_blobs()
        self.port = self.process.blob_port
        self.token = account_token()
        ask(self.port, "PUT", f"/{ACCOUNT}/{BUCKET}?restype=container&{self.token}", 201, {"x-ms-version": "2019-02-02"})

    def path(self, name):
        return f"/{ACCOUNT}/{BUCKET}/{name}"


def account_token():
    """A shared access signature for all that blobs can be asked."""
    fields = {"sp": "rwdlac", "ss": "b", "srt": "sco", "se": "2099-01-01T00:00:00Z", "sv": "2019-02-02"}
    signed = "\n".join([ACCOUNT, fields["sp"], fields["ss"], fields["srt"], "", fields["se"], "", "", fields["sv"], ""])
    signature = hmac.new(base64.b64decode(KEY), signed.encode(), hashlib.sha256).digest()
    return urlencode({**fields, "sig": base64.b64encode(signature).decode()})


class Minio:
    name = "minio"
    token = ""

    def __init__(self, setup, program):
        self.port = setup.port(7)
        # It refuses a directory on the system's own disk unless it is told that this is a test.
        variables = [f"MINIO_ROOT_USER={USER}", f"MINIO_ROOT_PASSWORD={PASSWORD}", "MINIO_BROWSER=off", "MINIO_UPDATE=off", "MINIO_CI_CD=1"]
        command = ["env", *variables, program, "server", str(setup.store("minio")), "--address", f"127.0.0.1:{self.port}", "--quiet"]
        self.process = setup.start("minio", command, self.port, accepts_connections)
        everybody = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": ["*"]}, "Resource": [f"arn:aws:s3:::{BUCKET}/*"],
                                                              "Action": ["s3:GetObject", "s3:PutObject"]}]}
        for _ in range(100):
            # It listens before it is ready.
            if self.signed("PUT", f"/{BUCKET}", "", b"") != 503:
                break
            time.sleep(0.1)
        if (status := self.signed("PUT", f"/{BUCKET}", "policy=", json.dumps(everybody).encode())) != 204:
            raise Trouble(f"minio answered {status} to the policy of the bucket")

    def path(self, name):
        return f"/{BUCKET}/{name}"

    def signed(self, method, path, query, body):
        """Sends a request with a signature of AWS, version 4; returns the status."""
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        scope = f"{now[:8]}/us-east-1/s3/aws4_request"
        headers = {"host": f"127.0.0.1:{self.port}", "x-amz-content-sha256": hashlib.sha256(body).hexdigest(), "x-amz-date": now}
        canonical = "\n".join([method, path, query, *(f"{name}:{value}" for name, value in headers.items()), "", ";".join(headers),
                               headers["x-amz-content-sha256"]])
        text = "\n".join(["AWS4-HMAC-SHA256", now, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        key = f"AWS4{PASSWORD}".encode()
        for part in scope.split("/"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        headers["Authorization"] = f"AWS4-HMAC-SHA256 Credential={USER}/{scope}, SignedHeaders={';'.join(headers)}, Signature={signature}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, f"{path}?{query}" if query else path, body, headers)
        return connection.getresponse().status


def ask(port, method, path, wanted, headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, b"", headers)
    response = connection.getresponse()
    content = response.read()
    if response.status != wanted:
        raise Trouble(f"{method} {path} answered {response.status} and not {wanted}: {content[:300]!r}")


# Names are numbers. What is put is new, unless it is loaded: then the first numbers are put once.
SCRIPT = """
local threads, id = 0, 0
function setup(thread) thread:set("id", threads) threads = threads + 1 end
local number, body
function init(arguments)
  method, before, after, blobs, started = arguments[1], arguments[2], arguments[3], tonumber(arguments[4]), arguments[6]
  math.randomseed(id + 1)
  if method == "PUT" then body = string.rep("0123456789abcdef", tonumber(arguments[5]) / 16) end
  number = 0
end
function request()
  number = number + 1
  local name = started .. "-" .. id .. "-" .. number
  if method == "GET" then name = "loaded-" .. math.random(blobs) - 1 end
  return wrk.format(method, before .. name .. after, {["x-ms-blob-type"] = "BlockBlob", ["x-ms-version"] = "2019-02-02"}, body)
end
"""


class Small:
    """wrk: so many connections, each with the next request after the answer."""

    def __init__(self, setup, size, connections, blobs):
        self.setup, self.size, self.connections, self.blobs, self.runs = setup, size, connections, blobs, 0
        self.script = setup.directory / "wrk.lua"
        self.script.write_text(SCRIPT)

    def load(self, server):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        body = b"0123456789abcdef" * (self.size // 16)
        for number in range(self.blobs):
            path = server.path(f"loaded-{number}") + (f"?{server.token}" if server.token else "")
            connection.request("PUT", path, body, {"x-ms-blob-type": "BlockBlob", "x-ms-version": "2019-02-02"})
            response = connection.getresponse()
            response.read()
            if response.status not in (200, 201):
                raise Trouble(f"{server.name} answered {response.status} to a blob")

    def measure(self, server, workload):
        self.runs += 1
        after = f"?{server.token}" if server.token else ""
        command = ["wrk", "--threads", "1", "--connections", str(self.connections), "--duration", f"{max(1, round(self.setup.options.seconds))}s",
                   "--script", str(self.script), f"http://127.0.0.1:{server.port}", "--",
                   workload.upper(), server.path(""), after, str(self.blobs), str(self.size), f"run{self.runs}"]
        done, seconds = cpu_of(server.process, lambda: subprocess.run(command, capture_output=True, text=True, check=False))
        made = re.search(r"([\d]+) requests in ", done.stdout)
        rate = re.search(r"Requests/sec:\s*([\d.]+)", done.stdout)
        if done.returncode != 0 or not made or not rate or "Non-2xx" in done.stdout or "Socket errors" in done.stdout:
            raise Trouble(f"wrk failed on {server.name}: {(done.stdout + done.stderr).strip()[-600:]}")
        rate = float(rate[1])
        return {"ops_per_second": rate, "bytes_per_second": rate * self.size, "cpu_us": seconds * 1e6 / int(made[1])}


class Large:
    """curl: one blob in one request."""

    def __init__(self, setup, size):
        self.size = size
        self.file = tempfile.NamedTemporaryFile(dir=setup.directory)
        for _ in range(size // MIB):
            self.file.write(os.urandom(MIB))
        self.file.flush()

    def load(self, server):
        self.measure(server, "put")

    def measure(self, server, workload):
        url = f"http://127.0.0.1:{server.port}{server.path('large')}" + (f"?{server.token}" if server.token else "")
        command = ["curl", "--silent", "--show-error", "--fail", "--output", "/dev/null", "--write-out", "%{time_total}", url,
                   "--header", "x-ms-blob-type: BlockBlob", "--header", "x-ms-version: 2019-02-02", "--header", "Expect:"]
        if workload == "put":
            command += ["--upload-file", self.file.name]
        done, seconds = cpu_of(server.process, lambda: subprocess.run(command, capture_output=True, text=True, check=False))
        if done.returncode != 0:
            raise Trouble(f"curl failed on {server.name}: {done.stderr.strip()}")
        rate = 1 / float(done.stdout)
        return {"ops_per_second": rate, "bytes_per_second": rate * self.size, "cpu_us": seconds * 1e6}


def tables(lines):
    table = Table("Beside MinIO, in turns", ["workload", "size", "connections", "MiB/s", "MinIO's", "CPU/op", "MinIO's", "per CPU second"])
    for line in lines.values():
        if "workload" not in line:
            continue
        ours, theirs = line["partita"], line["minio"]
        table.add(line["workload"], bytes_text(line["bytes"]), line["connections"], number(ours["bytes_per_second"] / MIB),
                  number(theirs["bytes_per_second"] / MIB), micros(ours["cpu_us"]), micros(theirs["cpu_us"]), times(theirs["cpu_us"] / ours["cpu_us"]))
    return [table]

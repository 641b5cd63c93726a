"""The storage commands of the Azure CLI, as a user types them, one after the other.

The CLI runs in this process, because starting it takes a second each time. Each check states what a command must have done.
"""

import io
import os
import secrets
import sys
import tempfile
import time
import traceback
import urllib.request
from contextlib import redirect_stderr, redirect_stdout

from azure.cli.core import get_default_cli

KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
TABLES = os.environ.get("PARTITA_ENDPOINT", "http://127.0.0.1:10002/devstoreaccount1")
QUEUES = os.environ.get("PARTITA_QUEUE_ENDPOINT", "http://127.0.0.1:10001/devstoreaccount1")
BLOBS = os.environ.get("PARTITA_BLOB_ENDPOINT", "http://127.0.0.1:10000/devstoreaccount1")
os.environ["AZURE_STORAGE_CONNECTION_STRING"] = (
    f"DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={KEY};"
    f"BlobEndpoint={BLOBS};QueueEndpoint={QUEUES};TableEndpoint={TABLES};"
)

cli = get_default_cli()
counts = {"passed": 0, "failed": 0}


class Refused(Exception):
    """A command ended with an error."""


def az(*words):
    """What `az storage WORDS` answers."""
    said = io.StringIO()
    try:
        with redirect_stdout(said), redirect_stderr(said):
            code = cli.invoke(["storage", *map(str, words)], out_file=said)
    except SystemExit as ended:
        code = ended.code
    if code:
        why = getattr(cli.result, "error", None) or said.getvalue().strip()
        raise Refused(f"az storage {' '.join(map(str, words))}: {why}")
    return cli.result.result


def refused(*words):
    try:
        az(*words)
    except Refused as refusal:
        return str(refusal)
    raise AssertionError(f"az storage {' '.join(map(str, words))} was not refused")


def holds(what, is_so):
    counts["passed" if is_so else "failed"] += 1
    if not is_so:
        print(f"FAILED: {what}")


def same(what, found, expected):
    holds(f"{what}: expected {expected!r}, found {found!r}", found == expected)


def write(path, content):
    with open(path, "wb") as file:
        file.write(content)
    return path


def read(path):
    with open(path, "rb") as file:
        return file.read()


def blob(folder):
    box = "az-" + secrets.token_hex(6)
    at = ["--container-name", box]
    same("a container is created", az("container", "create", "--name", box)["created"], True)
    same("and only once", az("container", "create", "--name", box)["created"], False)
    same("it exists", az("container", "exists", "--name", box)["exists"], True)
    holds("it is listed", box in [each["name"] for each in az("container", "list", "--prefix", "az-")])

    small, large = os.urandom(1000), os.urandom(20 << 20)
    source, target = os.path.join(folder, "source"), os.path.join(folder, "target")
    write(source, small)
    az("blob", "upload", *at, "--name", "a/small", "--file", source, "--metadata", "kind=cat")
    message = refused("blob", "upload", *at, "--name", "a/small", "--file", source)
    holds(f"what is there is not overwritten: {message}", "already exists" in message)
    write(source, large)
    az("blob", "upload", *at, "--name", "a/large", "--file", source, "--max-connections", "4")
    az("blob", "download", *at, "--name", "a/large", "--file", target, "--max-connections", "4")
    holds("a large blob comes back", read(target) == large)
    az("blob", "download", *at, "--name", "a/large", "--file", target, "--start-range", "100", "--end-range", "199")
    holds("a part of it comes back", read(target) == large[100:200])
    names = [each["name"] for each in az("blob", "list", *at, "--prefix", "a/")]
    same("blobs are listed", names, ["a/large", "a/small"])
    shown = az("blob", "show", *at, "--name", "a/small")
    same("its length", shown["properties"]["contentLength"], 1000)
    same("its metadata", shown["metadata"], {"kind": "cat"})
    az("blob", "metadata", "update", *at, "--name", "a/small", "--metadata", "kind=dog")
    same("new metadata", az("blob", "metadata", "show", *at, "--name", "a/small"), {"kind": "dog"})
    az("blob", "set-tier", *at, "--name", "a/small", "--tier", "Cool")
    same("a tier", az("blob", "show", *at, "--name", "a/small")["properties"]["blobTier"], "Cool")

    for kind in ("append", "page"):
        write(source, small[:512])
        az("blob", "upload", *at, "--name", kind, "--file", source, "--type", kind)
        az("blob", "download", *at, "--name", kind, "--file", target)
        holds(f"a blob of type {kind} comes back", read(target) == small[:512])

    write(source, small)
    snapshot = az("blob", "snapshot", *at, "--name", "a/small")["snapshot"]
    az("blob", "upload", *at, "--name", "a/small", "--file", write(source, b"new"), "--overwrite")
    az("blob", "download", *at, "--name", "a/small", "--file", target, "--snapshot", snapshot)
    holds("a snapshot keeps what was there", read(target) == small)
    # With --source-blob the CLI makes an address of the cloud, whatever the connection string says.
    az("blob", "copy", "start", "--destination-container", box, "--destination-blob", "copy",
       "--source-uri", f"{BLOBS}/{box}/a/large")
    same("a copy is done", az("blob", "show", *at, "--name", "copy")["properties"]["copy"]["status"], "success")

    lease = az("blob", "lease", "acquire", *at, "--blob-name", "a/large", "--lease-duration", "-1")
    message = refused("blob", "delete", *at, "--name", "a/large")
    holds(f"a leased blob stays: {message}", "LeaseIdMissing" in message)
    az("blob", "lease", "renew", *at, "--blob-name", "a/large", "--lease-id", lease)
    az("blob", "lease", "release", *at, "--blob-name", "a/large", "--lease-id", lease)

    url = az("blob", "generate-sas", *at, "--name", "a/small", "--permissions", "r", "--expiry", "2099-01-01T00:00Z",
             "--full-uri")
    same("a token reads its blob", urllib.request.urlopen(url).read(), b"new")
    token = az("container", "generate-sas", "--name", box, "--permissions", "rl", "--expiry", "2099-01-01T00:00Z")
    listed = urllib.request.urlopen(f"{BLOBS}/{box}?restype=container&comp=list&{token}").read()
    holds("a token lists its container", b"a/small" in listed)

    batch, back = os.path.join(folder, "batch"), os.path.join(folder, "back")
    os.makedirs(os.path.join(batch, "sub"))
    os.makedirs(back)
    for name in ("one.txt", "two.txt", "sub/three.txt"):
        write(os.path.join(batch, name), name.encode())
    az("blob", "upload-batch", "--destination", box, "--source", batch, "--destination-path", "batch")
    az("blob", "download-batch", "--destination", back, "--source", box, "--pattern", "batch/*")
    same("a folder comes back", read(os.path.join(back, "batch/sub/three.txt")), b"sub/three.txt")
    az("blob", "delete-batch", "--source", box, "--pattern", "batch/*")
    same("and is deleted", az("blob", "list", *at, "--prefix", "batch/"), [])

    az("blob", "delete", *at, "--name", "a/small", "--delete-snapshots", "include")
    same("a deleted blob is gone", az("blob", "exists", *at, "--name", "a/small")["exists"], False)
    same("the container is deleted", az("container", "delete", "--name", box)["deleted"], True)
    same("and gone", az("container", "exists", "--name", box)["exists"], False)


def table(_):
    name = "az" + secrets.token_hex(6)
    at = ["--table-name", name]
    same("a table is created", az("table", "create", "--name", name)["created"], True)
    holds("it is listed", name in [each["name"] for each in az("table", "list")])
    az("entity", "insert", *at, "--entity", "PartitionKey=p", "RowKey=r", "Title=Solaris", "Year=1961",
       "Year@odata.type=Edm.Int32")
    key = ["--partition-key", "p", "--row-key", "r"]
    same("an entity is read", az("entity", "show", *at, *key)["Title"], "Solaris")
    az("entity", "merge", *at, "--entity", "PartitionKey=p", "RowKey=r", "Author=Lem")
    found = az("entity", "query", *at, "--filter", "Year lt 1970")["items"]
    same("a query finds it", [(each["Title"], each["Author"]) for each in found], [("Solaris", "Lem")])
    az("entity", "delete", *at, *key)
    # The CLI ends with this code if something is not there.
    message = refused("entity", "show", *at, *key)
    holds(f"a deleted entity is gone: {message}", message.endswith(": 3"))
    same("the table is deleted", az("table", "delete", "--name", name)["deleted"], True)


def queue(_):
    name = "az-" + secrets.token_hex(6)
    at = ["--queue-name", name]
    same("a queue is created", az("queue", "create", "--name", name)["created"], True)
    az("message", "put", *at, "--content", "ship ann 1")
    same("a message is peeked", [each["content"] for each in az("message", "peek", *at)], ["ship ann 1"])
    [got] = az("message", "get", *at, "--visibility-timeout", "60")
    same("and got", got["content"], "ship ann 1")
    az("message", "delete", *at, "--id", got["id"], "--pop-receipt", got["popReceipt"])
    same("and deleted", az("message", "peek", *at), [])
    same("the queue is deleted", az("queue", "delete", "--name", name)["deleted"], True)


def logs(folder):
    az("logging", "update", "--services", "t", "--log", "rwd", "--retention", "1")
    shown = az("logging", "show", "--services", "t")["table"]
    same("logging is on", (shown["read"], shown["retentionPolicy"]["days"]), (True, 1))
    az("table", "list")
    found, waited = [], time.monotonic()
    while not found and time.monotonic() - waited < 60:
        time.sleep(0.5)
        if az("container", "exists", "--name", "$logs")["exists"]:
            found = az("blob", "list", "--container-name", "$logs", "--prefix", "table/", "--include", "m")
    holds("there is a log", bool(found))
    same("it says what it has", sorted(found[-1]["metadata"]), ["EndTime", "LogType", "LogVersion", "StartTime"])
    target = os.path.join(folder, "log")
    az("blob", "download", "--container-name", "$logs", "--name", found[-1]["name"], "--file", target)
    holds("it has the request", b";QueryTables;Success;200;" in read(target))
    az("logging", "off", "--services", "t")


groups = {"blob": blob, "table": table, "queue": queue, "logs": logs}
for name in sys.argv[1:] or groups:
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        try:
            groups[name](folder)
        except Exception:
            traceback.print_exc()
            counts["failed"] += 1
        print(f"{name}: {time.monotonic() - began:.1f} s")
print(f"{counts['passed']} passed, {counts['failed']} failed")
sys.exit(1 if counts["failed"] else 0)

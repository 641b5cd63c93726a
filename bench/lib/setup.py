"""What the steps have in common: binaries, options, a directory that is removed at the end, servers that are stopped."""

import os
import shutil
import tempfile
from pathlib import Path

from . import client
from .process import Server, accepts_connections, answers_http_200, free_port


# Several servers run beside each other, and most benchmarks are of tables. A variable, because older servers know no such flag.
os.environ.setdefault("PARTITA_QUEUE_LISTEN", "off")


class Setup:
    def __init__(self, options, partita, bare):
        self.options, self.partita, self.bare = options, partita, bare
        Path(options.data).mkdir(parents=True, exist_ok=True)
        self.directory = Path(tempfile.mkdtemp(prefix="partita-bench-", dir=options.data))
        self.servers = []

    def start_partita(self, folder="store"):
        """Starts it on a new store, which is kept until `remove` or the end."""
        port = self.port(0)
        command = [self.partita, "serve", "--listen", f"127.0.0.1:{port}", "--blob-listen", "off",
                   "--data", str(self.directory / folder), "--log-level", "error"]
        return self.start("partita", command, port, answers_http_200("/health/ready"))

    def start_partita_with_queues(self, folder="store", place=0):
        """The same, with queues. Servers that run side by side have different places."""
        port, queue_port = self.port(3 + 2 * place), self.port(4 + 2 * place)
        command = [self.partita, "serve", "--listen", f"127.0.0.1:{port}", "--queue-listen", f"127.0.0.1:{queue_port}",
                   "--blob-listen", "off", "--data", str(self.directory / folder), "--log-level", "error"]
        server = self.start("partita", command, port, answers_http_200("/health/ready"))
        server.queue_port = queue_port
        return server

    def start_partita_with_blobs(self, folder="store"):
        """The same, with blobs."""
        port, blob_port = self.port(5), self.port(6)
        command = [self.partita, "serve", "--listen", f"127.0.0.1:{port}", "--blob-listen", f"127.0.0.1:{blob_port}",
                   "--data", str(self.directory / folder), "--log-level", "error"]
        server = self.start("partita", command, port, answers_http_200("/health/ready"))
        server.blob_port = blob_port
        return server

    def start_bare(self, md5=False):
        port = self.port(1)
        command = [self.bare, "--listen", f"127.0.0.1:{port}", "--log", str(self.directory / "bare.log"), *(["--md5"] if md5 else [])]
        server = self.start("bare", command, port, accepts_connections)
        server.queue_port = server.blob_port = port
        return server

    def start(self, name, command, port, ready, quiet_seconds=None):
        server = Server(name, command, port, self.directory / f"{name}.output", ready, quiet_seconds or self.options.quiet_seconds)
        self.servers.append(server)
        server.start()
        return server

    def port(self, offset):
        return self.options.port + offset if self.options.port else free_port()

    def store(self, folder="store"):
        return self.directory / folder

    def remove(self, server, folder="store"):
        """Ends a server and removes its data."""
        server.stop(kill=True)
        shutil.rmtree(self.store(folder), ignore_errors=True)

    def close(self):
        for server in self.servers:
            if server.process and server.process.poll() is None:
                server.process.kill()
                server.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


def connect(server):
    return client.TableClient(server.port)

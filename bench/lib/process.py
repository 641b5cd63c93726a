"""Servers as processes: starts them, waits for them, reads their figures from /proc, and stops them."""

import os
import shutil
import signal
import socket
import statistics
import subprocess
import time
from pathlib import Path

# The most processor time that an idle server uses between two measurements, for its timers and for being measured.
IDLE_SECONDS = 0.01
START_SECONDS_MAX = 300
STOP_SECONDS_MAX = 120


class Trouble(Exception):
    """A step can't continue; the text says why and what to do."""


class Server:
    """A process that listens on a port of this machine."""

    def __init__(self, name, command, port, output, ready, quiet_seconds):
        """`quiet_seconds`: how long it must do nothing to have settled."""
        self.name, self.command, self.port, self.output, self.ready = name, command, port, output, ready
        self.quiet_seconds = quiet_seconds
        # Where it serves queues and blobs, if it does.
        self.queue_port = self.blob_port = None
        self.process = None

    def start(self):
        """Returns the seconds from exec until it is ready."""
        with open(self.output, "ab") as output:
            started = time.monotonic()
            # In its own session, so that Ctrl-C goes only to the script, which then stops its servers in order.
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)
        while not self.ready(self.port):
            if self.process.poll() is not None:
                raise Trouble(f"{self.name} ended with status {self.process.returncode}: {self.last_words()}")
            if time.monotonic() - started > START_SECONDS_MAX:
                raise Trouble(f"{self.name} was not ready after {START_SECONDS_MAX} s: {self.last_words()}")
            time.sleep(0.001)
        return time.monotonic() - started

    def stop(self, kill=False):
        """Returns the seconds that it took. With `kill` the server can't close cleanly."""
        started = time.monotonic()
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
            try:
                self.process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise Trouble(f"{self.name} did not stop within {STOP_SECONDS_MAX} s") from None
        return time.monotonic() - started

    @property
    def pid(self):
        return self.process.pid

    def last_words(self):
        lines = Path(self.output).read_text(errors="replace").strip().splitlines()
        return " / ".join(lines[-3:]) or "it printed nothing"

    def cpu_seconds(self):
        """Of all threads, also those that have ended."""
        try:
            return cpu_seconds(self.pid)
        except OSError:
            raise Trouble(f"{self.name} is gone: {self.last_words()}") from None

    def proc(self, file):
        try:
            return Path(f"/proc/{self.pid}/{file}").read_text()
        except OSError:
            raise Trouble(f"{self.name} is gone: {self.last_words()}") from None

    def memory_mib(self):
        """Resident memory now, and its peak since the start or `forget_peak`."""
        kib = dict(line.split(":", 1) for line in self.proc("status").splitlines())
        return tuple(int(kib[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))

    def forget_peak(self):
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def settle(self, seconds_max=60):
        """Waits until it has no work left, such as compaction, which would count for the next measurement."""
        end = time.monotonic() + seconds_max
        before = self.cpu_seconds()
        while time.monotonic() < end:
            time.sleep(self.quiet_seconds)
            now = self.cpu_seconds()
            if now - before <= IDLE_SECONDS:
                return
            before = now


def cpu_seconds(pid):
    """From the process's own clock, as in clock_getcpuclockid(3). It counts nanoseconds; /proc counts hundredths of a second,
    which is too coarse for a short measurement."""
    return time.clock_gettime((~pid << 3) | 2)


def cpu_of(server, work):
    """Runs `work` and returns its result, and the processor seconds that the server used meanwhile."""
    before = server.cpu_seconds()
    result = work()
    return result, server.cpu_seconds() - before


def restart_times(server, times):
    """Medians over clean stops and starts: (stop, start) in seconds."""
    stops, starts = [], []
    for _ in range(times):
        stops.append(server.stop())
        starts.append(server.start())
    return statistics.median(stops), statistics.median(starts)


def answers_http_200(path):
    """For `Server.ready`: whether this path answers 200."""
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode()

    def ready(port):
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
                connection.sendall(request)
                return b" 200 " in connection.recv(64)
        except OSError:
            return False

    return ready


def accepts_connections(port):
    """For `Server.ready`, if there is no path to ask."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        return True
    except OSError:
        return False


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def disk_bytes(directory):
    """The disk space of the files in a directory, as `du` counts it."""
    total = 0
    for folder, _, files in os.walk(directory):
        for file in files:
            try:
                total += os.lstat(os.path.join(folder, file)).st_blocks * 512
            except FileNotFoundError:
                pass  # deleted by the server just now
    return total


def need_space(directory, size, way_out):
    free = shutil.disk_usage(directory).free
    if free < size:
        raise Trouble(f"{directory} has {free / 2**30:.1f} GiB free and {size / 2**30:.1f} GiB are needed, "
                      f"{(size - free) / 2**30:.1f} more; free some, name another --data, or {way_out}")

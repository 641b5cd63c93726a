"""Fills the system's file cache, as it is on a machine that has been up for a while.

A virtual machine may get its memory from its host when it first touches it, and give free memory back. Then a page of 4 KiB that
was free costs the server up to 10 us when it writes a file, thirty times as much as copying into it: the host's time, counted as
the server's. With a full cache, the system takes such a page from the cache instead.
"""

import os
import tempfile
from pathlib import Path

# What stays free, for new processes.
FREE_BYTES = 768 * 2**20
# The file has no blocks on the disk. It is read from one end to the other, and never twice.
FILE_BYTES = 8 * 2**40
READ_BYTES = 2**20
# What is read between two looks at how much is free.
STEP_BYTES = 128 * 2**20

_file = None


def use(directory):
    """From now on, `fill` fills the cache with a file of this directory. It has no name, and goes with this process."""
    global _file
    _file = tempfile.TemporaryFile(dir=directory, buffering=0)
    os.truncate(_file.fileno(), FILE_BYTES)


def fill():
    if _file is None:
        return
    buffer, free = bytearray(READ_BYTES), free_bytes()
    while free > FREE_BYTES:
        for _ in range(STEP_BYTES // READ_BYTES):
            if _file.readinto(buffer) == 0:
                _file.seek(0)
        before, free = free, free_bytes()
        # A control group may have less memory than the machine has free. Then this only takes the place of other files.
        if before - free < STEP_BYTES // 2:
            return


def keep(directory):
    """Makes the system keep the files of this directory in its cache, as far as they fit: it gives up those that were read only once
    before those that were read again."""
    buffer = bytearray(READ_BYTES)
    for path in sorted(path for path in Path(directory).rglob("*") if path.is_file()):
        for _ in range(2):
            with open(path, "rb", buffering=0) as file:
                while file.readinto(buffer):
                    pass


def free_bytes():
    with open("/proc/meminfo", encoding="ascii") as meminfo:
        lines = dict(line.split(":", 1) for line in meminfo)
    return int(lines["MemFree"].split()[0]) * 1024

"""The eventually consistent pattern: an entity moves from one table to another, and a queue drives it to the end.

A former employee's entity goes from `Current` to `Archive`. No transaction spans two tables, so the request only puts a message;
a worker then inserts the copy, deletes the original and deletes the message last. A step that is done twice changes nothing: the
insert replaces, and a deletion that finds nothing is done. Whoever dies leaves the message, which is visible again after its lease.

    archive_worker.py CONNECTION_STRING SUFFIX [DIE_AFTER]

works off the messages in the queue. DIE_AFTER is a step (take, copy, delete) after which the process ends at once.
"""

import os
import sys

from azure.core.exceptions import ResourceNotFoundError
from azure.data.tables import TableServiceClient
from azure.storage.queue import QueueClient

LEASE = 1


class Shop:
    def __init__(self, connection, suffix):
        tables = TableServiceClient.from_connection_string(connection)
        self.current, self.archive = tables.get_table_client("Current" + suffix), tables.get_table_client("Archive" + suffix)
        self.steps = QueueClient.from_connection_string(connection, "archive-" + suffix)

    def request(self, partition, row):
        self.steps.send_message(f"{partition}/{row}")

    def work(self, die_after=None):
        """Takes messages until none is visible, and says how many were done."""
        done = 0
        while message := self.steps.receive_message(visibility_timeout=LEASE):
            self.step("take", die_after)
            partition, row = message.content.split("/")
            try:
                self.archive.upsert_entity(dict(self.current.get_entity(partition, row)))
            except ResourceNotFoundError:
                pass  # An earlier attempt has deleted it, and had copied it before.
            self.step("copy", die_after)
            self.current.delete_entity(partition, row)
            self.step("delete", die_after)
            self.steps.delete_message(message)
            done += 1
        return done

    def step(self, name, die_after):
        if name == die_after:
            os._exit(9)


if __name__ == "__main__":
    print(Shop(sys.argv[1], sys.argv[2]).work(*sys.argv[3:]))

"""The eventually consistent pattern over a table and a queue: killed after each of its steps, it is always finished."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from archive_worker import Shop
from conftest import CONNECTION, fresh_name

WORKER = Path(__file__).parent / "archive_worker.py"


@pytest.fixture
def shop():
    shop = Shop(CONNECTION, fresh_name(""))
    shop.current.create_table()
    shop.archive.create_table()
    shop.steps.create_queue()
    yield shop
    shop.current.delete_table()
    shop.archive.delete_table()
    shop.steps.delete_queue()


def rows(table):
    return [(entity["RowKey"], entity["Name"]) for entity in table.list_entities()]


@pytest.mark.parametrize("step", ["take", "copy", "delete"])
def test_a_worker_that_dies_is_taken_over(shop, step):
    people = [(f"{number}", f"Ann {number}") for number in range(3)]
    for row, name in people:
        shop.current.create_entity({"PartitionKey": "sales", "RowKey": row, "Name": name})
        shop.request("sales", row)
    suffix = shop.steps.queue_name.removeprefix("archive-")
    assert subprocess.run([sys.executable, WORKER, CONNECTION, suffix, step], check=False).returncode == 9
    until = time.monotonic() + 120
    while shop.steps.get_queue_properties().approximate_message_count > 0:
        assert time.monotonic() < until
        shop.work()
        time.sleep(0.1)
    assert (rows(shop.current), rows(shop.archive)) == ([], people)

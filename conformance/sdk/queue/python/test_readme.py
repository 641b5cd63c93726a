"""The worker in README.md, as it is written there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.data.tables import TableServiceClient
from azure.storage.queue import QueueClient

from conftest import CONNECTION, ENDPOINT, TABLES

README = Path(__file__).resolve().parents[4] / "README.md"
DEVELOPMENT = "UseDevelopmentStorage=true"
USUAL = (ENDPOINT, TABLES) == ("http://127.0.0.1:10001/devstoreaccount1", "http://127.0.0.1:10002/devstoreaccount1")


@pytest.fixture
def orders():
    """The table and the queue of the example, which nobody else may have used."""
    tables, steps = TableServiceClient.from_connection_string(CONNECTION), QueueClient.from_connection_string(CONNECTION, "steps")
    for remove in (lambda: tables.delete_table("Orders"), steps.delete_queue):
        try:
            remove()
        except ResourceNotFoundError:
            pass
    yield tables.get_table_client("Orders")
    tables.delete_table("Orders")
    steps.delete_queue()


def test_the_worker_in_python(orders):
    examples = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    (example,) = (text for text in examples if "azure.storage.queue" in text)
    # Where the usual ports are taken, the server is elsewhere.
    example = example if USUAL else example.replace(DEVELOPMENT, CONNECTION)
    subprocess.run([sys.executable, "-c", example], check=True, timeout=60)
    assert orders.get_entity("ann", "1")["State"] == "ship"
    assert QueueClient.from_connection_string(CONNECTION, "steps").get_queue_properties().approximate_message_count == 0

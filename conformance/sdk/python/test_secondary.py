"""The secondary endpoint: the same data, for reading only."""


import pytest
from azure.core.exceptions import HttpResponseError

from conftest import ENDPOINT, code_of, entity, fresh_name, service_client, table_client

SECONDARY = ENDPOINT + "-secondary"


@pytest.fixture
def secondary(table):
    table.create_entity(entity(A=1))
    with table_client(table.table_name, SECONDARY) as client:
        yield client


def test_entities_can_be_read(secondary):
    assert secondary.get_entity("p", "r")["A"] == 1
    assert len(list(secondary.query_entities("A eq 1"))) == 1


def test_tables_can_be_listed(secondary):
    assert secondary.table_name in [t.name for t in service_client(SECONDARY).list_tables()]


WRITES = {
    "insert": lambda t: t.create_entity(entity("new")),
    "upsert": lambda t: t.upsert_entity(entity("new")),
    "update": lambda t: t.update_entity(entity(A=2)),
    "delete": lambda t: t.delete_entity("p", "r"),
    "transaction": lambda t: t.submit_transaction([("upsert", entity("new"))]),
    "create table": lambda t: service_client(SECONDARY).create_table(fresh_name()),
    "delete table": lambda t: t.delete_table(),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_writes_are_refused(table, secondary, write):
    with pytest.raises(HttpResponseError) as refused:
        write(secondary)
    assert (refused.value.status_code, code_of(refused.value)) == (403, "InsufficientAccountPermissions")
    assert [e["A"] for e in table.list_entities()] == [1]

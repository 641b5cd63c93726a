"""Keys: any text but a few characters, in the body, in the URL and in a filter."""

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError

from conftest import cases, entity

KEYS = cases("keys.json")


@pytest.mark.parametrize("key", KEYS["legal"], ids=ascii)
def test_legal_key(shared_table, key):
    def keys_of(found):
        return found["PartitionKey"], found["RowKey"]

    shared_table.create_entity(entity(key, key, Turn="insert"))
    assert keys_of(shared_table.get_entity(key, key)) == (key, key)

    shared_table.upsert_entity(entity(key, key, Turn="upsert"))
    by_key = {"query_filter": "PartitionKey eq @key and RowKey eq @key", "parameters": {"key": key}}
    found = list(shared_table.query_entities(**by_key))
    assert [(*keys_of(e), e["Turn"]) for e in found] == [(key, key, "upsert")]

    shared_table.submit_transaction([("update", entity(key, key, Turn="transaction"))])
    assert shared_table.get_entity(key, key)["Turn"] == "transaction"

    shared_table.delete_entity(key, key)
    with pytest.raises(ResourceNotFoundError):
        shared_table.get_entity(key, key)


@pytest.mark.parametrize("key", KEYS["forbidden"], ids=ascii)
def test_forbidden_key_is_refused(shared_table, key):
    for refused_entity in entity(row_key=key), entity(partition_key=key):
        with pytest.raises(HttpResponseError) as refused:
            shared_table.create_entity(refused_entity)
        assert refused.value.status_code == 400
        with pytest.raises(HttpResponseError) as refused:
            shared_table.upsert_entity(refused_entity)
        assert refused.value.status_code == 400


@pytest.mark.parametrize("missing, words", [("PartitionKey", "PartitionKey must be"), ("RowKey", "RowKey must be")])
def test_insert_needs_both_keys(shared_table, missing, words):
    incomplete = entity()
    del incomplete[missing]
    with pytest.raises(ValueError, match=words):  # the SDK's reading of PropertiesNeedValue
        shared_table.create_entity(incomplete)


def test_keys_are_case_sensitive(shared_table, partition):
    for key in "a", "A":
        shared_table.create_entity(entity(key, partition))
    assert shared_table.get_entity(partition, "a")["RowKey"] == "a"
    assert shared_table.get_entity(partition, "A")["RowKey"] == "A"


def test_keys_sort_by_utf16_code_unit(shared_table, partition):
    keys = ["", " ", "'", "A", "Z", "a", "aa", "b", "é", "日", "😀", "ﬁ"]  # U+1F600 is D83D DE00, below U+FB01
    for key in reversed(keys):
        shared_table.create_entity(entity(key, partition))
    found = shared_table.query_entities("PartitionKey eq @p", parameters={"p": partition})
    assert [e["RowKey"] for e in found] == keys

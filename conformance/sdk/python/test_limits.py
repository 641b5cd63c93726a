"""Limits of one entity: the last size that fits and the first that does not."""

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import EdmType, EntityProperty

from conftest import code_of, entity

MEBIBYTE_OF_TEXT = {f"Text{i:02}": "x" * 32768 for i in range(16)}
FITS = {
    "text of 64 KiB": {"Text": "x" * 32768},
    "text of 64 KiB in surrogate pairs": {"Text": "😀" * 16384},
    "binary of 64 KiB": {"Blob": bytes(65536)},
    "252 properties": {f"P{i}": i for i in range(252)},
    "name of 255 characters": {"N" * 255: 1},
    "just under 1 MiB": {**MEBIBYTE_OF_TEXT, "Text15": "x" * 32000},
}
REFUSED = {
    "text above 64 KiB": ({"Text": "x" * 32769}, "PropertyValueTooLarge"),
    "text above 64 KiB in surrogate pairs": ({"Text": "😀" * 16384 + "x"}, "PropertyValueTooLarge"),
    "binary above 64 KiB": ({"Blob": bytes(65537)}, "PropertyValueTooLarge"),
    "253 properties": ({f"P{i}": i for i in range(253)}, "TooManyProperties"),
    "name of 256 characters": ({"N" * 256: 1}, "PropertyNameTooLong"),
    "above 1 MiB": (MEBIBYTE_OF_TEXT, "EntityTooLarge"),
}


@pytest.mark.parametrize("properties", FITS.values(), ids=FITS.keys())
def test_fits(shared_table, partition, properties):
    shared_table.create_entity(entity(partition_key=partition, **properties))
    assert shared_table.get_entity(partition, "r") == entity(partition_key=partition, **properties)


@pytest.mark.parametrize("properties, code", REFUSED.values(), ids=REFUSED.keys())
@pytest.mark.parametrize("write", ["create_entity", "upsert_entity"])
def test_refused(shared_table, partition, write, properties, code):
    with pytest.raises(HttpResponseError) as refused:
        getattr(shared_table, write)(entity(partition_key=partition, **properties))
    assert (refused.value.status_code, code_of(refused.value)) == (400, code)


def test_a_merge_may_not_grow_an_entity_past_its_limits(shared_table, partition):
    shared_table.create_entity(entity(partition_key=partition, **{f"P{i}": i for i in range(252)}))
    with pytest.raises(HttpResponseError) as refused:
        shared_table.upsert_entity(entity(partition_key=partition, OneMore=1))
    assert code_of(refused.value) == "TooManyProperties"


@pytest.mark.parametrize("key", ["x" * 512, "é" * 512])
def test_keys_of_a_kibibyte_fit(shared_table, key):
    shared_table.create_entity(entity(key, key))
    assert shared_table.get_entity(key, key)["RowKey"] == key
    shared_table.delete_entity(key, key)


def test_longer_keys_are_refused(shared_table):
    with pytest.raises(HttpResponseError) as refused:
        shared_table.create_entity(entity("x" * 2048))
    assert refused.value.status_code == 400


def test_dates_before_1601_are_refused(shared_table, partition):
    early = EntityProperty("1600-12-31T23:59:59Z", EdmType.DATETIME)
    with pytest.raises(HttpResponseError) as refused:
        shared_table.create_entity(entity(partition_key=partition, Value=early))
    assert code_of(refused.value) == "OutOfRangeInput"

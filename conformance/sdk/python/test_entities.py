"""Entities: every type survives the round trip, and each way to write means what it says."""

import math
import uuid
from datetime import datetime, timedelta, timezone

import pytest
from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.data.tables import EdmType, EntityProperty, UpdateMode

from conftest import code_of, entity


def custom(found) -> dict:
    return {name: value for name, value in found.items() if name not in ("PartitionKey", "RowKey")}


def int64(value) -> EntityProperty:
    return EntityProperty(value, EdmType.INT64)


VALUES = {
    "string": "text",
    "string empty": "",
    "string blank": "  \t\r\n ",
    "string quotes": "'\"\\/<&>",
    "string accents": "Grüße, Ελλάδα, 日本語",
    "string emoji": "😀👩‍👩‍👧",
    "string like a date": "2021-01-01T00:00:00Z",
    "string like a number": "42",
    "bool true": True,
    "bool false": False,
    "int32": 42,
    "int32 min": -(2**31),
    "int32 max": 2**31 - 1,
    "int64": int64(42),
    "int64 min": int64(-(2**63)),
    "int64 max": int64(2**63 - 1),
    "double": 3.25,
    "double whole": 20.0,
    "double zero": 0.0,
    "double huge": 1e300,
    "double tiny": 5e-324,
    "double max": 1.7976931348623157e308,
    "double long": 0.1 + 0.2,
    "double beyond int32": 8589934592.0,
    "double infinity": math.inf,
    "double minus infinity": -math.inf,
    "datetime": datetime(2021, 3, 4, 5, 6, 7, tzinfo=timezone.utc),
    "datetime micros": datetime(2021, 3, 4, 5, 6, 7, 123456, tzinfo=timezone.utc),
    "datetime millis": datetime(2021, 3, 4, 5, 6, 7, 120000, tzinfo=timezone.utc),
    "datetime earliest": datetime(1601, 1, 1, tzinfo=timezone.utc),
    "datetime latest": datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=timezone.utc),
    "guid": uuid.UUID("0f8fad5b-d9cb-469f-a165-70867728950e"),
    "binary": bytes(range(256)),
    "binary empty": b"",
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
def test_value_round_trips(shared_table, partition, value):
    shared_table.create_entity(entity(partition_key=partition, Value=value))
    found = shared_table.get_entity(partition, "r")["Value"]
    listed = next(shared_table.query_entities("PartitionKey eq @p", parameters={"p": partition}))["Value"]
    assert found == value and listed == value
    assert isinstance(found, type(value))


def test_nan_round_trips(shared_table, partition):
    shared_table.create_entity(entity(partition_key=partition, Value=math.nan))
    assert math.isnan(shared_table.get_entity(partition, "r")["Value"])


def test_datetime_keeps_100_ns(shared_table, partition):
    """Python's datetime stops at microseconds; the SDK passes text through and keeps the service's own."""
    written = "2021-03-04T05:06:07.1234567Z"
    shared_table.create_entity(entity(partition_key=partition, Value=EntityProperty(written, EdmType.DATETIME)))
    assert shared_table.get_entity(partition, "r")["Value"].tables_service_value == written


def test_datetime_with_offset_becomes_utc(shared_table, partition):
    written = datetime(2021, 3, 4, 5, 6, 7, tzinfo=timezone(timedelta(hours=2)))
    shared_table.create_entity(entity(partition_key=partition, Value=written))
    assert shared_table.get_entity(partition, "r")["Value"] == datetime(2021, 3, 4, 3, 6, 7, tzinfo=timezone.utc)


def test_none_is_no_property(shared_table, partition):
    shared_table.create_entity(entity(partition_key=partition, Kept=1, Gone=None))
    assert custom(shared_table.get_entity(partition, "r")) == {"Kept": 1}


def test_property_names_keep_case_and_script(shared_table, partition):
    properties = {"name": 1, "Name": 2, "_x": 3, "Größe": 4, "名前": 5, "etag": 6, "timestamp": 7, "id": 8}
    shared_table.create_entity(entity(partition_key=partition, **properties))
    assert custom(shared_table.get_entity(partition, "r")) == properties


def test_insert_existing_is_refused_and_changes_nothing(shared_table, partition):
    shared_table.create_entity(entity(partition_key=partition, A=1))
    with pytest.raises(ResourceExistsError) as refused:
        shared_table.create_entity(entity(partition_key=partition, A=2))
    assert code_of(refused.value) == "EntityAlreadyExists"
    assert shared_table.get_entity(partition, "r")["A"] == 1


# How each write treats the entity {A: 1, B: 1} when it sends {B: 2, C: 2}.
UPDATE, UPSERT = "update_entity", "upsert_entity"
WRITES = [
    (UPDATE, UpdateMode.REPLACE, {"B": 2, "C": 2}),
    (UPDATE, UpdateMode.MERGE, {"A": 1, "B": 2, "C": 2}),
    (UPSERT, UpdateMode.REPLACE, {"B": 2, "C": 2}),
    (UPSERT, UpdateMode.MERGE, {"A": 1, "B": 2, "C": 2}),
]


@pytest.mark.parametrize("verb, mode, expected", WRITES)
def test_write_over_an_existing_entity(shared_table, partition, verb, mode, expected):
    shared_table.create_entity(entity(partition_key=partition, A=1, B=1))
    getattr(shared_table, verb)(entity(partition_key=partition, B=2, C=2), mode=mode)
    assert custom(shared_table.get_entity(partition, "r")) == expected


@pytest.mark.parametrize("mode", UpdateMode)
def test_upsert_creates_the_missing(shared_table, partition, mode):
    shared_table.upsert_entity(entity(partition_key=partition, A=1), mode=mode)
    assert custom(shared_table.get_entity(partition, "r")) == {"A": 1}


@pytest.mark.parametrize("mode", UpdateMode)
def test_update_of_the_missing_is_refused(shared_table, partition, mode):
    with pytest.raises(ResourceNotFoundError) as refused:
        shared_table.update_entity(entity(partition_key=partition, A=1), mode=mode)
    assert code_of(refused.value) == "ResourceNotFound"


def test_merge_may_change_a_type(shared_table, partition):
    shared_table.create_entity(entity(partition_key=partition, A=1))
    shared_table.upsert_entity(entity(partition_key=partition, A="one"), mode=UpdateMode.MERGE)
    assert shared_table.get_entity(partition, "r")["A"] == "one"


def test_delete_removes(shared_table, partition):
    shared_table.create_entity(entity(partition_key=partition))
    shared_table.delete_entity(partition, "r")
    with pytest.raises(ResourceNotFoundError):
        shared_table.get_entity(partition, "r")


def test_delete_missing_is_404_which_the_sdk_forgives(shared_table, partition):
    seen = []
    shared_table.delete_entity(partition, "r", raw_response_hook=lambda r: seen.append(r.http_response.status_code))
    assert seen == [404]


def test_timestamp_is_the_servers_and_grows(shared_table, partition):
    shared_table.create_entity(entity(partition_key=partition, Timestamp=datetime(1999, 1, 1, tzinfo=timezone.utc)))
    first = shared_table.get_entity(partition, "r").metadata["timestamp"].tables_service_value
    shared_table.upsert_entity(entity(partition_key=partition))
    second = shared_table.get_entity(partition, "r").metadata["timestamp"].tables_service_value
    assert "2021" < first != second


def test_get_with_select(shared_table, partition):
    shared_table.create_entity(entity(partition_key=partition, A=1, B=2))
    assert dict(shared_table.get_entity(partition, "r", select=["A", "RowKey"])) == {"A": 1, "RowKey": "r"}

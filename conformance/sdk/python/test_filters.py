"""Filters: the shared table of cases, and the SDK's own parameter formatting."""

import uuid
from datetime import datetime, timezone

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import EdmType, EntityProperty

from conftest import cases, entity, row_keys

FILTERS = cases("filters.json")


def row(i) -> dict:
    """Row i of the table described in filters.json."""
    properties = {
        "Name": f"s{i}",
        "Small": i,
        "Big": EntityProperty(i * 10**10, EdmType.INT64),
        "Ratio": i + 0.5,
        "Even": i % 2 == 0,
        "When": datetime(2021, 1, i + 1, tzinfo=timezone.utc),
        "Uid": uuid.UUID(int=i),
        "Blob": bytes([i]),
    }
    if i % 2:
        properties["Odd"] = "yes"
    return entity(f"r{i}", "p0" if i < 5 else "p1", **properties)


@pytest.fixture(scope="module")
def rows(shared_table):
    for i in reversed(range(10)):  # so that an answer in key order is not an answer in order of arrival
        shared_table.create_entity(row(i))
    return shared_table


def keys(digits) -> list:
    return ["r" + digit for digit in digits]


@pytest.mark.parametrize("case", FILTERS["cases"], ids=lambda case: case["filter"])
def test_filter(rows, case):
    assert row_keys(rows.query_entities(case["filter"])) == keys(case["rows"])


@pytest.mark.parametrize("case", FILTERS["refused"], ids=lambda case: case["filter"])
def test_filter_is_refused(rows, case):
    with pytest.raises(HttpResponseError) as refused:
        list(rows.query_entities(case["filter"]))
    assert refused.value.status_code == case["status"]


@pytest.mark.parametrize(
    "name, value",
    [
        ("Name", "s4"),
        ("Small", 4),
        ("Big", 4 * 10**10),
        ("Ratio", 4.5),
        ("When", datetime(2021, 1, 5, tzinfo=timezone.utc)),
        ("Uid", uuid.UUID(int=4)),
        ("Blob", b"\x04"),
    ],
)
def test_parameter(rows, name, value):
    assert row_keys(rows.query_entities(f"{name} eq @value", parameters={"value": value})) == ["r4"]


def test_boolean_parameter(rows):
    assert row_keys(rows.query_entities("Even eq @value", parameters={"value": True})) == keys("02468")


def test_listing_is_in_key_order(rows):
    assert row_keys(rows.list_entities()) == keys("0123456789")


def test_select_gives_only_what_is_named(rows):
    found = list(rows.query_entities("RowKey eq 'r3'", select=["Name", "Small"]))
    assert [dict(e) for e in found] == [{"Name": "s3", "Small": 3}]


def test_select_of_a_missing_property_is_none(rows):
    found = list(rows.query_entities("RowKey le 'r1'", select=["Odd"]))
    assert [dict(e) for e in found] == [{"Odd": None}, {"Odd": "yes"}]


def test_long_filters_are_accepted(rows):
    chain = " or ".join(f"(Name eq 's{i % 3}' and Small ne {i + 100})" for i in range(200))
    assert row_keys(rows.query_entities(chain)) == keys("012")

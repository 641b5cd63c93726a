"""Transactions: all of it or none of it, and which operation was to blame."""

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.core import MatchConditions
from azure.data.tables import RequestTooLargeError, TableTransactionError, UpdateMode

from conftest import entity, fresh_name, row_keys


def rows(table, partition):
    return list(table.query_entities("PartitionKey eq @p", parameters={"p": partition}))


def refuse(table, operations) -> TableTransactionError:
    with pytest.raises(TableTransactionError) as refused:
        table.submit_transaction(operations)
    return refused.value


def test_a_hundred_mixed_operations(shared_table, partition):
    def e(i, turn):
        return entity(f"r{i:03}", partition, **{turn: 1})

    shared_table.submit_transaction([("create", e(i, "Before")) for i in range(80)])
    operations = (
        [("delete", e(i, "")) for i in range(20)]
        + [("update", e(i, "After"), {"mode": UpdateMode.REPLACE}) for i in range(20, 35)]
        + [("update", e(i, "After"), {"mode": UpdateMode.MERGE}) for i in range(35, 50)]
        + [("upsert", e(i, "After"), {"mode": UpdateMode.REPLACE}) for i in range(50, 65)]
        + [("upsert", e(i, "After"), {"mode": UpdateMode.MERGE}) for i in range(65, 90)]
        + [("create", e(i, "After")) for i in range(90, 100)]
    )
    answers = shared_table.submit_transaction(operations)
    assert len(operations) == len(answers) == 100

    def expected(i):
        merged = 35 <= i < 50 or 65 <= i < 80
        return {"Before": 1, "After": 1} if merged else {"After": 1}

    found = rows(shared_table, partition)
    assert found == [entity(f"r{i:03}", partition, **expected(i)) for i in range(20, 100)]
    assert [e.metadata["etag"] for e in found] == [answer["etag"] for answer in answers[20:]]
    assert all("etag" not in answer for answer in answers[:20])


def failing(kind, partition, stale):
    existing, missing = entity("existing", partition), entity("missing", partition)
    only_if_current = {"etag": stale, "match_condition": MatchConditions.IfNotModified}
    return {
        "EntityAlreadyExists": ("create", existing),
        "ResourceNotFound": ("update", missing),
        "UpdateConditionNotSatisfied": ("update", existing, only_if_current),
        "PropertyValueTooLarge": ("upsert", {**missing, "Text": "x" * 32769}),
        "OutOfRangeInput": ("create", entity("a?b", partition)),
    }[kind]


@pytest.mark.parametrize("index", [0, 2, 4])
@pytest.mark.parametrize(
    "kind",
    ["EntityAlreadyExists", "ResourceNotFound", "UpdateConditionNotSatisfied", "PropertyValueTooLarge", "OutOfRangeInput"],
)
def test_one_failure_undoes_all_and_is_named(shared_table, partition, kind, index):
    stale = shared_table.create_entity(entity("existing", partition))["etag"]
    shared_table.upsert_entity(entity("existing", partition))
    operations = [("create", entity(f"new{i}", partition)) for i in range(4)]
    operations.insert(index, failing(kind, partition, stale))

    error = refuse(shared_table, operations)
    assert (error.error_code, error.index) == (kind, index)
    assert row_keys(rows(shared_table, partition)) == ["existing"]


def test_deleting_the_missing_fails_the_transaction(shared_table, partition):
    error = refuse(shared_table, [("create", entity("a", partition)), ("delete", entity("b", partition))])
    assert (error.error_code, error.index) == ("ResourceNotFound", 1)
    assert rows(shared_table, partition) == []


def test_single_operation(shared_table, partition):
    [answer] = shared_table.submit_transaction([("create", entity(partition_key=partition, A=1))])
    assert shared_table.get_entity(partition, "r").metadata["etag"] == answer["etag"]


def test_single_failing_operation(shared_table, partition):
    error = refuse(shared_table, [("update", entity(partition_key=partition))])
    assert (error.status_code, error.error_code, error.index) == (404, "ResourceNotFound", 0)


def test_a_row_may_appear_once(shared_table, partition):
    error = refuse(shared_table, [("upsert", entity(r, partition)) for r in "aba"])
    assert (error.error_code, error.index) == ("InvalidDuplicateRow", 2)
    assert rows(shared_table, partition) == []


def test_one_partition_only(shared_table, partition):
    with pytest.raises(ValueError):  # the SDK does not let it out
        shared_table.submit_transaction([("upsert", entity("a", partition)), ("upsert", entity("a", partition + "x"))])


def test_more_than_a_hundred_operations_are_refused(shared_table, partition):
    error = refuse(shared_table, [("upsert", entity(f"r{i:03}", partition)) for i in range(101)])
    assert (error.error_code, error.index) == ("InvalidInput", 99)
    assert rows(shared_table, partition) == []


def test_more_than_four_mebibytes_are_refused(shared_table, partition):
    with pytest.raises(RequestTooLargeError):
        big = {"A": "x" * 30000, "B": "x" * 20000}
        shared_table.submit_transaction([("upsert", entity(f"r{i}", partition, **big)) for i in range(90)])
    assert rows(shared_table, partition) == []


def test_missing_table(service, partition):
    missing = service.get_table_client(fresh_name())
    error = refuse(missing, [("upsert", entity(r, partition)) for r in "ab"])
    assert (error.status_code, error.error_code, error.index) == (404, "TableNotFound", 0)


def test_quotes_and_unicode_travel(shared_table, partition):
    shared_table.submit_transaction([("create", entity("o'clock 日本 😀 100%", partition, Text="--changeset_x\r\n\r\n{'é'}"))])
    found = shared_table.get_entity(partition, "o'clock 日本 😀 100%")
    assert found["Text"] == "--changeset_x\r\n\r\n{'é'}"


def test_nothing_of_a_failed_transaction_is_read_back(shared_table, partition):
    refuse(shared_table, [("create", entity("a", partition)), ("update", entity("b", partition))])
    with pytest.raises(ResourceNotFoundError):
        shared_table.get_entity(partition, "a")

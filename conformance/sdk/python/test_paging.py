"""Paging: 2,500 entities, whole pages, small pages, and tokens that outlive their client."""

import pytest

from conftest import entity, table_client

PARTITIONS, ROWS = 25, 100
ALL = [(f"p{p:02}", f"r{r:02}") for p in range(PARTITIONS) for r in range(ROWS)]


@pytest.fixture(scope="module")
def many(shared_table):
    for p in range(PARTITIONS):
        shared_table.submit_transaction([("create", entity(f"r{r:02}", f"p{p:02}")) for r in range(ROWS)])
    return shared_table


def keys(entities):
    return [(e["PartitionKey"], e["RowKey"]) for e in entities]


def pages_of(paged, token=None):
    return [keys(page) for page in paged.by_page(token)]


def test_a_full_page_is_a_thousand(many):
    pages = pages_of(many.list_entities())
    assert [len(page) for page in pages] == [1000, 1000, 500]
    assert sum(pages, []) == ALL


def test_pages_of_seven_lose_and_repeat_nothing(many):
    pages = pages_of(many.list_entities(results_per_page=7))
    assert max(map(len, pages)) == 7
    assert sum(pages, []) == ALL


def test_no_page_follows_an_exact_end(many):
    assert [len(page) for page in pages_of(many.list_entities(results_per_page=500))] == [500] * 5


def test_token_resumes_in_another_client(many):
    pages = many.list_entities(results_per_page=150).by_page()
    first = keys(next(pages))
    assert len(first) == 150  # page size is $top

    with table_client(many.table_name) as other:
        rest = pages_of(other.list_entities(results_per_page=150), pages.continuation_token)
    assert first + sum(rest, []) == ALL


def test_token_survives_the_deletion_of_the_row_it_names(table):
    for r in "abcd":
        table.create_entity(entity(r))
    pages = table.list_entities(results_per_page=2).by_page()
    next(pages)
    table.delete_entity("p", "c")
    assert sum(pages_of(table.list_entities(results_per_page=2), pages.continuation_token), []) == [("p", "d")]


def test_token_keeps_to_its_filter(many):
    only = "PartitionKey ge 'p03' and PartitionKey lt 'p06' and RowKey ge 'r90'"
    expected = [(p, r) for p, r in ALL if "p03" <= p < "p06" and r >= "r90"]
    assert sum(pages_of(many.query_entities(only, results_per_page=7)), []) == expected


@pytest.mark.parametrize("key", ["", "o'clock", "a+b&c", "日本語", "😀", "100%"])
def test_token_carries_any_key(table, key):
    """The second page starts at the key in question."""
    table.create_entity(entity("1", key))
    table.create_entity(entity("2", key))
    table.create_entity(entity(key, key + "x"))
    assert sum(pages_of(table.list_entities(results_per_page=1)), []) == [(key, "1"), (key, "2"), (key + "x", key)]

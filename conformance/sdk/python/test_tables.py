"""Tables: create, list, delete, and which names are names."""

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError

from conftest import code_of, entity, fresh_name, service_client


@pytest.fixture
def three(service):
    """Three tables sharing a prefix no other table has."""
    prefix = fresh_name()
    names = [prefix + suffix for suffix in "abc"]
    for name in names:
        service.create_table(name)
    yield prefix, names
    for name in names:
        service.delete_table(name)


def by_prefix(prefix):
    return {"query_filter": "TableName ge @from and TableName lt @to", "parameters": {"from": prefix, "to": prefix + "z"}}


def test_create_makes_an_empty_table(table):
    assert list(table.list_entities()) == []


def test_create_existing_is_refused(service, table):
    with pytest.raises(ResourceExistsError) as refused:
        service.create_table(table.table_name)
    assert code_of(refused.value) == "TableAlreadyExists"


def test_create_if_not_exists_keeps_what_is_there(service, table):
    table.create_entity(entity())
    again = service.create_table_if_not_exists(table.table_name)
    assert len(list(again.list_entities())) == 1


def test_create_if_not_exists_creates(service):
    client = service.create_table_if_not_exists(fresh_name())
    assert list(client.list_entities()) == []
    client.delete_table()


def test_list_holds_every_table_in_name_order(service, three):
    listed = [t.name for t in service.list_tables()]
    assert [name for name in listed if name in three[1]] == three[1]
    assert listed == sorted(listed, key=str.lower)


def test_list_by_name(service, three):
    found = service.query_tables("TableName eq @name", parameters={"name": three[1][1]})
    assert [t.name for t in found] == [three[1][1]]


def test_list_by_prefix(service, three):
    prefix, names = three
    assert [t.name for t in service.query_tables(**by_prefix(prefix))] == names


def test_list_pages_of_two_resume_in_another_client(service, three):
    prefix, names = three
    pages = service.query_tables(**by_prefix(prefix), results_per_page=2).by_page()
    assert [t.name for t in next(pages)] == names[:2]

    with service_client() as other:
        rest = other.query_tables(**by_prefix(prefix), results_per_page=2).by_page(pages.continuation_token)
        assert [t.name for page in rest for t in page] == names[2:]


def test_delete_removes_the_table_and_its_entities(service):
    client = service.create_table(fresh_name())
    client.create_entity(entity())
    client.delete_table()
    assert list(service.query_tables("TableName eq @name", parameters={"name": client.table_name})) == []

    client.create_table()
    assert list(client.list_entities()) == []
    client.delete_table()


def test_delete_missing_is_404_which_the_sdk_forgives(service):
    seen = []
    service.delete_table(fresh_name(), raw_response_hook=lambda r: seen.append(r.http_response.status_code))
    assert seen == [404]


def test_names_ignore_case_and_keep_the_case_of_creation(service):
    name = fresh_name("Py")
    client = service.create_table(name)
    client.create_entity(entity())
    with pytest.raises(ResourceExistsError):
        service.create_table(name.upper())
    assert len(list(service.get_table_client(name.upper()).list_entities())) == 1
    assert name in [t.name for t in service.list_tables()]

    service.delete_table(name.lower())
    assert name not in [t.name for t in service.list_tables()]


# The SDK turns both of the service's refusals of a name into ValueError, by code and by text.
@pytest.mark.parametrize("name", ["ab", "a" * 64, "1abc", "a-b", "a_b", "a.b", "tablé"])
def test_malformed_names_are_refused(service, name):
    with pytest.raises(ValueError):
        service.create_table(name)


def test_reserved_name_is_refused(service):
    with pytest.raises(HttpResponseError) as refused:
        service.create_table("tables")
    assert refused.value.status_code == 400


@pytest.mark.parametrize("name", ["p" + fresh_name()[-2:], fresh_name().ljust(63, "x")], ids=["3", "63"])
def test_shortest_and_longest_names(service, name):
    service.create_table(name)
    assert name in [t.name for t in service.list_tables()]
    service.delete_table(name)

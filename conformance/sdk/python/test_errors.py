"""Errors: the SDK's exception for each refusal, which it chooses by the service's status and code."""

import base64

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import (
    ClientAuthenticationError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.data.tables import TableServiceClient

from conftest import ACCOUNT, ENDPOINT, KEY, OPTIONS, code_of, entity, fresh_name, service_client, table_client

STALE = {"etag": "W/\"datetime'2001-01-01T00%3A00%3A00Z'\"", "match_condition": MatchConditions.IfNotModified}

REFUSALS = {
    "get missing": (lambda t: t.get_entity("p", "missing"), ResourceNotFoundError, 404, "ResourceNotFound"),
    "update missing": (lambda t: t.update_entity(entity("missing")), ResourceNotFoundError, 404, "ResourceNotFound"),
    "insert existing": (lambda t: t.create_entity(entity()), ResourceExistsError, 409, "EntityAlreadyExists"),
    "create table": (lambda t: t.create_table(), ResourceExistsError, 409, "TableAlreadyExists"),
    "stale update": (lambda t: t.update_entity(entity(), **STALE), ResourceModifiedError, 412, "UpdateConditionNotSatisfied"),
    "stale delete": (lambda t: t.delete_entity("p", "r", **STALE), ResourceModifiedError, 412, "UpdateConditionNotSatisfied"),
}


@pytest.mark.parametrize("act, kind, status, code", REFUSALS.values(), ids=REFUSALS.keys())
def test_refusal(table, act, kind, status, code):
    table.create_entity(entity())
    with pytest.raises(kind) as refused:
        act(table)
    assert (refused.value.status_code, code_of(refused.value)) == (status, code)


ON_A_MISSING_TABLE = {
    "get": lambda t: t.get_entity("p", "r"),
    "query": lambda t: list(t.list_entities()),
    "insert": lambda t: t.create_entity(entity()),
    "update": lambda t: t.update_entity(entity()),
    "upsert": lambda t: t.upsert_entity(entity()),
}


@pytest.mark.parametrize("act", ON_A_MISSING_TABLE.values(), ids=ON_A_MISSING_TABLE.keys())
def test_missing_table(service, act):
    with pytest.raises(ResourceNotFoundError) as refused:
        act(service.get_table_client(fresh_name()))
    assert code_of(refused.value) == "TableNotFound"


WRONG_KEY = base64.b64encode(b"not the key" * 5).decode()


@pytest.mark.parametrize(
    "act",
    [
        lambda name: list(service_client(key=WRONG_KEY).list_tables()),
        lambda name: service_client(key=WRONG_KEY).create_table(fresh_name()),
        lambda name: list(table_client(name, key=WRONG_KEY).list_entities()),
        lambda name: table_client(name, key=WRONG_KEY).upsert_entity(entity()),
    ],
    ids=["list tables", "create table", "query", "upsert"],
)
def test_wrong_key(table, act):
    with pytest.raises(ClientAuthenticationError) as refused:
        act(table.table_name)
    assert (refused.value.status_code, code_of(refused.value)) == (403, "AuthenticationFailed")


def test_message_names_the_request(table):
    with pytest.raises(ResourceNotFoundError) as refused:
        table.get_entity("p", "r")
    request_id = refused.value.response.headers["x-ms-request-id"]
    assert f"The specified resource does not exist.\nRequestId:{request_id}\nTime:" in refused.value.message


def test_connection_string(table):
    text = f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint={ENDPOINT};"
    with TableServiceClient.from_connection_string(text, **OPTIONS) as client:
        assert table.table_name in [t.name for t in client.list_tables()]

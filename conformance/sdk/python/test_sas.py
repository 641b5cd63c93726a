"""Shared access signatures: the SDK's tokens do what they grant, and nothing else."""

from datetime import datetime, timedelta, timezone
from urllib.parse import parse_qsl, urlencode

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError, ResourceNotFoundError
from azure.data.tables import (
    ResourceTypes,
    TableAccessPolicy,
    TableClient,
    TableServiceClient,
    TableTransactionError,
    UpdateMode,
    generate_account_sas,
    generate_table_sas,
)

from conftest import ACCOUNT, ENDPOINT, KEY, OPTIONS, cases, code_of, entity, fresh_name

CREDENTIAL = AzureNamedKeyCredential(ACCOUNT, KEY)


def hours(count):
    return datetime.now(timezone.utc) + timedelta(hours=count)


def table_token(table, permission="raud", expiry=hours(1), **more):
    return generate_table_sas(CREDENTIAL, table.table_name, permission=permission, expiry=expiry, **more)


def account_token(types, permission, **more):
    return generate_account_sas(CREDENTIAL, ResourceTypes.from_string(types), permission, hours(1), **more)


def with_token(table, token, endpoint=ENDPOINT):
    return TableClient(endpoint, table.table_name, credential=AzureSasCredential(token), **OPTIONS)


def service_with(token):
    return TableServiceClient(ENDPOINT, credential=AzureSasCredential(token), **OPTIONS)


def holder(table, permission="raud", **more):
    return with_token(table, table_token(table, permission, **more))


def refused(code, act, kind=HttpResponseError):
    with pytest.raises(kind) as refusal:
        act()
    assert (refusal.value.status_code, code_of(refusal.value)) == (403, code)


def unauthenticated(act):
    refused("AuthenticationFailed", act, ClientAuthenticationError)


def keys(entities):
    return [[e["PartitionKey"], e["RowKey"]] for e in entities]


@pytest.fixture
def filled(table):
    table.create_entity(entity(A=1))
    return table


OPERATIONS = {
    "get": ("r", lambda t, p, r: t.get_entity(p, r)),
    "query": ("r", lambda t, p, r: list(t.query_entities("PartitionKey eq @p", parameters={"p": p}))),
    "insert": ("a", lambda t, p, r: t.create_entity(entity(r + "new", p))),
    "merge": ("u", lambda t, p, r: t.update_entity(entity(r, p))),
    "replace": ("u", lambda t, p, r: t.update_entity(entity(r, p), mode=UpdateMode.REPLACE)),
    "insert or merge": ("au", lambda t, p, r: t.upsert_entity(entity(r, p))),
    "insert or replace": ("au", lambda t, p, r: t.upsert_entity(entity(r, p), mode=UpdateMode.REPLACE)),
    "delete": ("d", lambda t, p, r: t.delete_entity(p, r)),
}
LACKING = [(name, letter) for name, (needs, _) in OPERATIONS.items() for letter in needs]


@pytest.mark.parametrize("needs, act", OPERATIONS.values(), ids=OPERATIONS.keys())
def test_permission_suffices(filled, needs, act):
    act(holder(filled, needs), "p", "r")


@pytest.mark.parametrize("name, letter", LACKING)
def test_permission_is_needed(filled, name, letter):
    client = holder(filled, "raud".replace(letter, ""))
    refused("AuthorizationPermissionMismatch", lambda: OPERATIONS[name][1](client, "p", "r"))


def test_permission_is_decided_before_existence(filled):
    refused("AuthorizationPermissionMismatch", lambda: holder(filled, "r").update_entity(entity("missing")))


RANGES = cases("ranges.json")
SNAKE = {"startPartitionKey": "start_pk", "startRowKey": "start_rk", "endPartitionKey": "end_pk", "endRowKey": "end_rk"}


@pytest.fixture(scope="module")
def rows(shared_table):
    for p, r in RANGES["rows"]:
        shared_table.create_entity(entity(r, p))
    return shared_table


def in_range(table, case):
    return holder(table, **{SNAKE[name]: value for name, value in case.items() if name in SNAKE})


@pytest.mark.parametrize("case", RANGES["ranges"].values(), ids=RANGES["ranges"].keys())
def test_query_is_cut_to_the_range(rows, case):
    assert keys(in_range(rows, case).list_entities()) == case["inside"]
    assert keys(in_range(rows, case).list_entities(results_per_page=1)) == case["inside"]


@pytest.mark.parametrize("case", RANGES["ranges"].values(), ids=RANGES["ranges"].keys())
def test_point_read_in_the_range(rows, case):
    client = in_range(rows, case)
    for p, r in RANGES["rows"]:
        if [p, r] in case["inside"]:
            assert client.get_entity(p, r)["RowKey"] == r
        else:
            with pytest.raises(ResourceNotFoundError) as refusal:
                client.get_entity(p, r)
            assert code_of(refusal.value) == "ResourceNotFound"


WRITES = [name for name, (needs, _) in OPERATIONS.items() if needs != "r"]


@pytest.mark.parametrize("name", WRITES)
def test_write_in_the_range(filled, name):
    OPERATIONS[name][1](holder(filled, start_pk="p", end_pk="p"), "p", "r")


@pytest.mark.parametrize("bounds", [{"start_pk": "q"}, {"end_pk": "p", "end_rk": "q"}], ids=["below", "above"])
@pytest.mark.parametrize("name", WRITES)
def test_write_outside_the_range(filled, name, bounds):
    refused("AuthorizationFailure", lambda: OPERATIONS[name][1](holder(filled, **bounds), "p", "r"))
    assert [e["A"] for e in filled.list_entities()] == [1]


def test_range_of_other_letters(table):
    table.create_entity(entity("日本 & + 😀", "o'clock é"))
    client = holder(table, start_pk="o'clock é", start_rk="日本 & + 😀", end_pk="o'clock é", end_rk="日本 & + 😀")
    assert len(list(client.list_entities())) == 1


WHEN = {
    "started": ({"start": hours(-1)}, True),
    "not yet": ({"start": hours(0.5)}, False),
    "expired": ({"expiry": hours(-0.01)}, False),
    "from a date": ({"start": "2020-01-01"}, True),
    "to a date": ({"expiry": "2020-01-01"}, False),
    "minutes": ({"expiry": hours(1).strftime("%Y-%m-%dT%H:%MZ")}, True),
}


@pytest.mark.parametrize("times, valid", WHEN.values(), ids=WHEN.keys())
def test_time(filled, times, valid):
    client = holder(filled, **times)
    if valid:
        client.get_entity("p", "r")
    else:
        unauthenticated(lambda: client.get_entity("p", "r"))


def test_source_address(filled):
    holder(filled, ip_address_or_range="0.0.0.0-255.255.255.255").get_entity("p", "r")
    elsewhere = holder(filled, ip_address_or_range="203.0.113.1-203.0.113.9")
    refused("AuthorizationSourceIPMismatch", lambda: elsewhere.get_entity("p", "r"))


@pytest.mark.skipif(ENDPOINT.startswith("https:"), reason="the endpoint is secure")
def test_protocol(filled):
    holder(filled, protocol="https,http").get_entity("p", "r")
    refused("AuthorizationProtocolMismatch", lambda: holder(filled, protocol="https").get_entity("p", "r"))


TAMPERED = {
    "permission": {"sp": "raud"},
    "expiry": {"se": "2099-01-01"},
    "start": {"st": "2020-01-01"},
    "table": {"tn": "another"},
    "version": {"sv": "2020-12-06"},
    "range": {"spk": "a"},
    "address": {"sip": "127.0.0.1"},
    "protocol": {"spr": "https,http"},
    "policy": {"si": "policy"},
    "signature": {"sig": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="},
}


@pytest.mark.parametrize("change", TAMPERED.values(), ids=TAMPERED.keys())
def test_tampered(filled, change):
    token = urlencode(dict(parse_qsl(table_token(filled, "r"))) | change)
    unauthenticated(lambda: with_token(filled, token).get_entity("p", "r"))


def test_table_names_ignore_case(filled):
    token = generate_table_sas(CREDENTIAL, filled.table_name.upper(), permission="r", expiry=hours(1))
    assert with_token(filled, token).get_entity("p", "r")["A"] == 1


def test_another_table(filled, rows):
    client = with_token(rows, table_token(filled))
    for _, act in OPERATIONS.values():
        refused("AuthorizationFailure", lambda: act(client, "A", "4"))


def test_missing_table(service):
    with pytest.raises(ResourceNotFoundError) as refusal:
        list(holder(service.get_table_client(fresh_name())).list_entities())
    assert code_of(refusal.value) == "TableNotFound"


BEYOND_A_TABLE = {
    "list tables": lambda s, t: list(s.list_tables()),
    "create table": lambda s, t: s.create_table(fresh_name()),
    "delete table": lambda s, t: s.delete_table(t),
    "get policies": lambda s, t: s.get_table_client(t).get_table_access_policy(),
    "set policies": lambda s, t: s.get_table_client(t).set_table_access_policy({}),
    "get properties": lambda s, t: s.get_service_properties(),
    "set properties": lambda s, t: s.set_service_properties(),
}


@pytest.mark.parametrize("act", BEYOND_A_TABLE.values(), ids=BEYOND_A_TABLE.keys())
def test_table_token_is_for_entities_only(filled, act):
    refused("AuthorizationFailure", lambda: act(service_with(table_token(filled)), filled.table_name))


def test_secondary(filled):
    assert with_token(filled, table_token(filled, "r"), ENDPOINT + "-secondary").get_entity("p", "r")["A"] == 1


# Transactions


def test_transaction(filled):
    holder(filled).submit_transaction([("create", entity("new")), ("update", entity(A=2)), ("upsert", entity("up"))])
    assert [e.get("A") for e in filled.list_entities()] == [None, 2, None]


@pytest.mark.parametrize("permission", ["rud", "rad", "rau"])
def test_transaction_needs_every_permission(filled, permission):
    acts = [("create", entity("new")), ("update", entity(A=2)), ("delete", entity("other"))]
    filled.create_entity(entity("other", A=3))
    refused("AuthorizationPermissionMismatch", lambda: holder(filled, permission).submit_transaction(acts))
    assert [e["A"] for e in filled.list_entities()] == [3, 1]


def test_transaction_keeps_to_the_range(filled):
    client = holder(filled, start_pk="p", end_pk="p", end_rk="r")
    client.submit_transaction([("create", entity("a")), ("create", entity("b"))])
    with pytest.raises(TableTransactionError) as refusal:
        client.submit_transaction([("create", entity("c")), ("create", entity("s"))])
    assert (refusal.value.status_code, code_of(refusal.value)) == (403, "AuthorizationFailure")
    assert len(list(filled.list_entities())) == 3


# Stored access policies

POLICY = TableAccessPolicy(permission="r", expiry=hours(1))


def by_policy(table, id="reader", **more):
    return with_token(table, generate_table_sas(CREDENTIAL, table.table_name, policy_id=id, **more))


def test_policy_grants(filled):
    filled.set_table_access_policy({"other": None, "reader": POLICY})
    assert by_policy(filled).get_entity("p", "r")["A"] == 1
    refused("AuthorizationPermissionMismatch", lambda: by_policy(filled).upsert_entity(entity()))


def test_policy_may_change(filled):
    client = by_policy(filled)
    filled.set_table_access_policy({"reader": POLICY})
    refused("AuthorizationPermissionMismatch", lambda: client.create_entity(entity("new")))
    filled.set_table_access_policy({"reader": TableAccessPolicy(permission="a", expiry=hours(1))})
    client.create_entity(entity("new"))


REVOKED = {
    "cleared": {},
    "renamed": {"reader2": POLICY},
    "expired": {"reader": TableAccessPolicy(permission="r", expiry=hours(-1))},
    "not yet": {"reader": TableAccessPolicy(permission="r", start=hours(1), expiry=hours(2))},
    "without expiry": {"reader": TableAccessPolicy(permission="r")},
    "without permission": {"reader": TableAccessPolicy(expiry=hours(1))},
    "empty": {"reader": None},
}


@pytest.mark.parametrize("policies", REVOKED.values(), ids=REVOKED.keys())
def test_policy_revoked_and_revived(filled, policies):
    client = by_policy(filled)
    filled.set_table_access_policy({"reader": POLICY})
    client.get_entity("p", "r")
    filled.set_table_access_policy(policies)
    unauthenticated(lambda: client.get_entity("p", "r"))
    filled.set_table_access_policy({"reader": POLICY})
    client.get_entity("p", "r")


PARTS = {
    "expiry in token": ({"permission": "r"}, {"expiry": hours(1)}),
    "permission in token": ({"expiry": hours(1)}, {"permission": "r"}),
    "all in token": ({}, {"permission": "r", "expiry": hours(1), "start": hours(-1)}),
}


@pytest.mark.parametrize("policy, token", PARTS.values(), ids=PARTS.keys())
def test_policy_and_token_complete_each_other(filled, policy, token):
    filled.set_table_access_policy({"reader": TableAccessPolicy(**policy)})
    assert by_policy(filled, **token).get_entity("p", "r")["A"] == 1


@pytest.mark.parametrize("field", [{"permission": "r"}, {"expiry": hours(1)}], ids=["permission", "expiry"])
def test_policy_and_token_do_not_overlap(filled, field):
    filled.set_table_access_policy({"reader": POLICY})
    unauthenticated(lambda: by_policy(filled, **field).get_entity("p", "r"))


def test_policy_with_range(filled):
    filled.set_table_access_policy({"reader": POLICY})
    assert keys(by_policy(filled, start_pk="p", end_pk="p").list_entities()) == [["p", "r"]]
    assert keys(by_policy(filled, start_pk="q").list_entities()) == []


def test_policies_end_with_their_table(service):
    table = service.create_table(fresh_name())
    table.set_table_access_policy({"reader": POLICY})
    table.delete_table()
    table.create_table()
    assert table.get_table_access_policy() == {}
    unauthenticated(lambda: list(by_policy(table).list_entities()))
    table.delete_table()


# Account tokens: what each operation needs of resource types and permissions, more than one if any of them will do.

ON_ACCOUNT = {
    "list tables": (["c"], ["l"], lambda s, t: list(s.list_tables())),
    "create table": (["c"], ["c", "w"], lambda s, t: service_with(account_token("c", "d")).delete_table(made(s))),
    "delete table": (["c"], ["d"], lambda s, t: s.delete_table(t)),
    "get properties": (["s"], ["r"], lambda s, t: s.get_service_properties()),
    "set properties": (["s"], ["w"], lambda s, t: s.set_service_properties()),
    **{
        name: (["o"], [needs], lambda s, t, act=act: act(s.get_table_client(t), "p", "r"))
        for name, (needs, act) in OPERATIONS.items()
    },
    "transaction": (["o"], ["a"], lambda s, t: s.get_table_client(t).submit_transaction([("create", entity("new"))])),
}


def made(service):
    return service.create_table(fresh_name()).table_name


def all_but(letters, given):
    return "".join(letter for letter in letters if letter not in "".join(given))


@pytest.mark.parametrize("types, permissions, act", ON_ACCOUNT.values(), ids=ON_ACCOUNT.keys())
def test_account_token_suffices(filled, types, permissions, act):
    for kind in types:
        for permission in permissions:
            act(service_with(account_token(kind, permission)), filled.table_name)


@pytest.mark.parametrize("types, permissions, act", ON_ACCOUNT.values(), ids=ON_ACCOUNT.keys())
def test_account_token_needs_the_resource_type(filled, types, permissions, act):
    client = service_with(account_token(all_but("sco", types), "rwdlacu"))
    refused("AuthorizationResourceTypeMismatch", lambda: act(client, filled.table_name))


@pytest.mark.parametrize("types, permissions, act", ON_ACCOUNT.values(), ids=ON_ACCOUNT.keys())
def test_account_token_needs_the_permission(filled, types, permissions, act):
    client = service_with(account_token("sco", all_but("rwdlacu", permissions)))
    refused("AuthorizationPermissionMismatch", lambda: act(client, filled.table_name))


@pytest.mark.parametrize("lacking", ["a", "u"])
def test_account_token_upsert_needs_both(filled, lacking):
    client = service_with(account_token("sco", "rwdlacu".replace(lacking, ""))).get_table_client(filled.table_name)
    refused("AuthorizationPermissionMismatch", lambda: client.upsert_entity(entity()))


def test_account_token_is_not_for_policies(filled):
    client = service_with(account_token("sco", "rwdlacu")).get_table_client(filled.table_name)
    refused("AuthorizationFailure", client.get_table_access_policy)
    refused("AuthorizationFailure", lambda: client.set_table_access_policy({}))


def test_account_token_tampered():
    token = urlencode(dict(parse_qsl(account_token("c", "l"))) | {"sp": "lc"})
    unauthenticated(lambda: list(service_with(token).list_tables()))


def test_account_token_times():
    refused_before = account_token("sco", "l", start=hours(0.5))
    unauthenticated(lambda: list(service_with(refused_before).list_tables()))
    list(service_with(account_token("sco", "l", start=hours(-1))).list_tables())


def test_connection_string_with_token(filled):
    text = f"SharedAccessSignature={account_token('sco', 'rl')};TableEndpoint={ENDPOINT};"
    with TableServiceClient.from_connection_string(text, **OPTIONS) as client:
        assert client.get_table_client(filled.table_name).get_entity("p", "r")["A"] == 1

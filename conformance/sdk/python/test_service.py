"""Stored access policies as they are kept, service properties and service statistics."""

from datetime import datetime, timezone
from urllib.parse import urlparse

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.data.tables import (
    TableAccessPolicy,
    TableAnalyticsLogging,
    TableCorsRule,
    TableMetrics,
    TableRetentionPolicy,
)

from conftest import ENDPOINT, code_of, fresh_name, service_client

START = datetime(2030, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
EXPIRY = datetime(2031, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
FULL = {"start": START, "expiry": EXPIRY, "permission": "raud"}


def plain(model):
    """The fields of a model of the SDK, and of the models in it."""
    if isinstance(model, list):
        return [plain(one) for one in model]
    if isinstance(model, datetime) or not hasattr(model, "__dict__"):
        return model
    return {name: plain(value) for name, value in vars(model).items() if name != "additional_properties"}


def policies_of(table):
    return {id: policy and plain(policy) for id, policy in table.get_table_access_policy().items()}


POLICIES = {
    "none": {},
    "one": {"a": FULL},
    "five": {f"id{i}": FULL for i in range(5)},
    "only an id": {"a": None},
    "permission": {"a": {"permission": "r"}},
    "expiry": {"a": {"expiry": EXPIRY}},
    "start": {"a": {"start": START}},
    "long id": {"x" * 64: FULL},
    "other letters": {"o'clock <é> & 日本 😀": FULL},
    "case of ids": {"a": FULL, "A": FULL},
}


@pytest.mark.parametrize("given", POLICIES.values(), ids=POLICIES.keys())
def test_policies_round_trip(table, given):
    table.set_table_access_policy({id: policy and TableAccessPolicy(**policy) for id, policy in given.items()})
    nothing = {"start": None, "expiry": None, "permission": None}
    assert policies_of(table) == {id: policy and nothing | policy for id, policy in given.items()}


def test_policies_are_replaced(table):
    assert policies_of(table) == {}
    table.set_table_access_policy({"a": None, "b": None})
    table.set_table_access_policy({"c": None})
    assert list(policies_of(table)) == ["c"]
    table.set_table_access_policy({})
    assert policies_of(table) == {}


def test_six_policies_are_refused(table):
    table.set_table_access_policy({"kept": None})
    with pytest.raises(ValueError, match="Too many access policies"):
        table.set_table_access_policy({f"id{i}": TableAccessPolicy(**FULL) for i in range(6)})
    assert list(policies_of(table)) == ["kept"]


MALFORMED_POLICIES = {
    "long id": {"x" * 65: None},
    "unknown permission": {"a": TableAccessPolicy(permission="rx")},
    "time": {"a": TableAccessPolicy(expiry="tomorrow")},
}


@pytest.mark.parametrize("given", MALFORMED_POLICIES.values(), ids=MALFORMED_POLICIES.keys())
def test_malformed_policies(table, given):
    with pytest.raises(HttpResponseError) as refusal:
        table.set_table_access_policy(given)
    assert (refusal.value.status_code, code_of(refusal.value)) == (400, "InvalidXmlDocument")


def test_policies_of_a_missing_table(service):
    table = service.get_table_client(fresh_name())
    for act in (table.get_table_access_policy, lambda: table.set_table_access_policy({})):
        with pytest.raises(ResourceNotFoundError) as refusal:
            act()
        assert code_of(refusal.value) == "TableNotFound"


# Service properties are the account's: every test puts them back.


@pytest.fixture
def properties(service):
    before = service.get_service_properties()
    yield lambda: {name: plain(value) for name, value in service.get_service_properties().items()}
    service.set_service_properties(**before)


def days(count):
    return TableRetentionPolicy(enabled=True, days=count)


RULES = [
    TableCorsRule(["http://a.example", "http://b.example"], ["GET", "PUT", "MERGE"], allowed_headers=["accept", "x-ms-*"],
                  exposed_headers=["etag", "x-ms-meta-*"], max_age_in_seconds=200),
    TableCorsRule(["*"], ["DELETE", "HEAD", "OPTIONS", "POST"]),
]
PROPERTIES = {
    "logging": ("analytics_logging", TableAnalyticsLogging(read=True, write=True, delete=True, retention_policy=days(1))),
    "part of logging": ("analytics_logging", TableAnalyticsLogging(write=True)),
    "no logging": ("analytics_logging", TableAnalyticsLogging()),
    "hour metrics": ("hour_metrics", TableMetrics(enabled=True, include_apis=True, retention_policy=days(365))),
    "hour metrics without APIs": ("hour_metrics", TableMetrics(enabled=True, include_apis=False)),
    "no hour metrics": ("hour_metrics", TableMetrics()),
    "minute metrics": ("minute_metrics", TableMetrics(enabled=True, include_apis=True, retention_policy=days(5))),
    "no minute metrics": ("minute_metrics", TableMetrics()),
    "cors": ("cors", RULES),
    "five rules": ("cors", RULES[:1] * 5),
    "no rules": ("cors", []),
}


@pytest.mark.parametrize("name, value", PROPERTIES.values(), ids=PROPERTIES.keys())
def test_properties_round_trip(service, properties, name, value):
    service.set_service_properties(**{name: value})
    assert properties()[name] == plain(value)


def test_whole_header_names_come_before_prefixes(service, properties):
    headers = ["x-ms-meta-data*", "x-ms-meta-target*", "x-ms-meta-xyz", "x-ms-meta-foo"]
    service.set_service_properties(cors=[TableCorsRule(["*"], ["GET"], allowed_headers=headers, exposed_headers=headers)])
    (rule,) = properties()["cors"]
    assert rule["allowed_headers"] == rule["exposed_headers"] == headers[2:] + headers[:2]


@pytest.mark.parametrize("name, value", PROPERTIES.values(), ids=PROPERTIES.keys())
def test_properties_not_given_are_kept(service, properties, name, value):
    service.set_service_properties(
        analytics_logging=TableAnalyticsLogging(read=True, retention_policy=days(3)),
        hour_metrics=TableMetrics(enabled=True, include_apis=False, retention_policy=days(4)),
        minute_metrics=TableMetrics(enabled=True, include_apis=False, retention_policy=days(6)),
        cors=RULES[1:],
    )
    before = properties()
    service.set_service_properties(**{name: value})
    assert properties() == before | {name: plain(value)}


MALFORMED_PROPERTIES = {
    "366 days of logging": {"analytics_logging": TableAnalyticsLogging(retention_policy=days(366))},
    "366 days of metrics": {"hour_metrics": TableMetrics(enabled=True, include_apis=True, retention_policy=days(366))},
    "no days": {"minute_metrics": TableMetrics(enabled=True, include_apis=True, retention_policy=days(0))},
    "version": {"analytics_logging": TableAnalyticsLogging(version="3.0")},
    "metrics without APIs": {"hour_metrics": TableMetrics(enabled=True)},
    "six rules": {"cors": RULES[:1] * 6},
    "no origins": {"cors": [TableCorsRule([], ["GET"])]},
    "no methods": {"cors": [TableCorsRule(["*"], [])]},
    "unknown method": {"cors": [TableCorsRule(["*"], ["FETCH"])]},
    "negative age": {"cors": [TableCorsRule(["*"], ["GET"], max_age_in_seconds=-1)]},
}


@pytest.mark.parametrize("given", MALFORMED_PROPERTIES.values(), ids=MALFORMED_PROPERTIES.keys())
def test_malformed_properties(service, properties, given):
    before = properties()
    with pytest.raises(HttpResponseError) as refusal:
        service.set_service_properties(**given)
    assert (refusal.value.status_code, code_of(refusal.value)) == (400, "InvalidXmlDocument")
    assert properties() == before


def test_properties_at_the_secondary(service, properties):
    service.set_service_properties(cors=RULES)
    secondary = service_client(ENDPOINT + "-secondary")
    assert plain(secondary.get_service_properties()["cors"]) == plain(RULES)
    with pytest.raises(HttpResponseError) as refusal:
        secondary.set_service_properties(cors=[])
    assert (refusal.value.status_code, code_of(refusal.value)) == (403, "InsufficientAccountPermissions")


def test_stats():
    # The SDK puts its secondary host in place of the primary's, and leaves the path.
    host = urlparse(ENDPOINT).netloc
    stats = service_client(ENDPOINT + "-secondary", secondary_hostname=host).get_service_stats()
    assert stats["geo_replication"]["status"] == "live"
    late = datetime.now(timezone.utc) - stats["geo_replication"]["last_sync_time"]
    assert 0 <= late.total_seconds() < 600


def test_no_stats_at_the_primary():
    with pytest.raises(HttpResponseError) as refusal:
        service_client(secondary_hostname=urlparse(ENDPOINT).netloc).get_service_stats()
    assert refusal.value.status_code == 400

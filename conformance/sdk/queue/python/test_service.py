"""The service as a whole: properties, statistics, the secondary endpoint, connection strings, keys."""

import base64
from urllib.parse import urlsplit

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.data.tables import TableServiceClient
from azure.storage.queue import CorsRule, Metrics, QueueAnalyticsLogging, QueueClient, QueueServiceClient, RetentionPolicy

from conftest import ACCOUNT, CONNECTION, ENDPOINT, KEY, OPTIONS, TABLES, fresh_name, queue_client, refused, service_client


@pytest.fixture
def properties(service):
    before = service.get_service_properties()
    yield service
    service.set_service_properties(
        before["analytics_logging"], before["hour_metrics"], before["minute_metrics"], before["cors"]
    )


def test_properties_come_back(properties):
    logging = QueueAnalyticsLogging(read=True, write=True, delete=True, retention_policy=RetentionPolicy(True, 5))
    metrics = Metrics(enabled=True, include_apis=True, retention_policy=RetentionPolicy(True, 7))
    rules = [
        CorsRule(["www.xyz.com"], ["GET"]),
        CorsRule(
            ["www.xyz.com", "www.ab.com"],
            ["GET", "PUT"],
            allowed_headers=["x-ms-meta-xyz", "x-ms-meta-data*"],
            exposed_headers=["x-ms-meta-source*"],
            max_age_in_seconds=500,
        ),
    ]
    properties.set_service_properties(logging, metrics, metrics, rules)
    found = properties.get_service_properties()
    assert (found["analytics_logging"].read, found["analytics_logging"].delete) == (True, True)
    assert found["analytics_logging"].retention_policy.days == 5
    for which in ("hour_metrics", "minute_metrics"):
        assert (found[which].enabled, found[which].include_apis, found[which].retention_policy.days) == (True, True, 7)
    assert [rule.allowed_origins for rule in found["cors"]] == ["www.xyz.com", "www.xyz.com,www.ab.com"]
    assert found["cors"][1].max_age_in_seconds == 500


def test_a_section_that_is_not_named_stays(properties):
    properties.set_service_properties(cors=[CorsRule(["*"], ["GET"])])
    properties.set_service_properties(hour_metrics=Metrics(enabled=False))
    assert [rule.allowed_origins for rule in properties.get_service_properties()["cors"]] == ["*"]
    properties.set_service_properties(cors=[])
    assert properties.get_service_properties()["cors"] == []


def test_properties_have_limits(properties):
    with refused(400, "InvalidXmlDocument"):
        properties.set_service_properties(cors=[CorsRule(["www.xyz.com"], ["GET"])] * 6)
    with refused(400, "InvalidXmlDocument"):
        properties.set_service_properties(hour_metrics=Metrics(enabled=True, retention_policy=RetentionPolicy(True, 366)))


def test_properties_of_queues_are_not_those_of_tables(properties):
    properties.set_service_properties(cors=[CorsRule(["queues.example"], ["GET"])])
    with TableServiceClient(TABLES, credential=AzureNamedKeyCredential(ACCOUNT, KEY)) as tables:
        assert "queues.example" not in str([rule.allowed_origins for rule in tables.get_service_properties()["cors"]])


def test_statistics():
    # Of a path-style address, the SDK replaces only the host.
    with service_client(ENDPOINT + "-secondary", secondary_hostname=urlsplit(ENDPOINT).netloc) as service:
        found = service.get_service_stats()["geo_replication"]
        assert found["status"] in ("live", "unavailable", "bootstrap")


def test_the_secondary_reads(queue):
    queue.send_message("a")
    second = queue_client(queue.queue_name, ENDPOINT + "-secondary")
    assert second.peek_messages()[0].content == "a"
    assert second.get_queue_properties().approximate_message_count == 1
    with pytest.raises(HttpResponseError):
        second.send_message("b")


def test_connection_strings(queue):
    assert QueueClient.from_connection_string(CONNECTION, queue.queue_name, **OPTIONS).peek_messages() == []
    service = QueueServiceClient.from_connection_string(CONNECTION, **OPTIONS)
    assert [q.name for q in service.list_queues(name_starts_with=queue.queue_name)] == [queue.queue_name]
    assert QueueClient.from_queue_url(queue.url, credential=queue.credential, **OPTIONS).peek_messages() == []


def test_a_wrong_key():
    wrong = {"account_name": ACCOUNT, "account_key": base64.b64encode(b"x" * 64).decode()}
    with refused(403, "AuthenticationFailed", ClientAuthenticationError):
        queue_client(fresh_name(), credential=wrong).create_queue()


def test_the_answer_names_the_request(queue):
    seen = []
    queue.get_queue_properties(
        client_request_id="mine", raw_response_hook=lambda answer: seen.append(answer.http_response.headers)
    )
    (headers,) = seen
    assert headers["x-ms-client-request-id"] == "mine"
    assert headers["x-ms-request-id"] and headers["x-ms-version"] and headers["Date"]

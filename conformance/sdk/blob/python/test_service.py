"""The service as a whole: properties, CORS, account information, connection strings, keys, the secondary endpoint."""

import base64
from urllib.parse import urlsplit

import pytest
import requests
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.storage.blob import BlobAnalyticsLogging, BlobServiceClient, CorsRule, Metrics, RetentionPolicy, StaticWebsite

from conftest import ACCOUNT, CONNECTION, ENDPOINT, KEY, OPTIONS, blob_client, content, fresh_name, refused, service_client


def test_properties_come_back(own_service):
    retention = RetentionPolicy(True, 5)
    own_service.set_service_properties(
        analytics_logging=BlobAnalyticsLogging(read=True, write=True, delete=True, retention_policy=retention),
        hour_metrics=Metrics(enabled=True, include_apis=True, retention_policy=retention),
        minute_metrics=Metrics(enabled=True, include_apis=False, retention_policy=retention),
        cors=[CorsRule(["www.xyz.com", "www.ab.com"], ["GET", "PUT"], allowed_headers=["x-ms-meta-*"], max_age_in_seconds=500)],
        delete_retention_policy=RetentionPolicy(True, 9),
        static_website=StaticWebsite(enabled=True, index_document="index.html", error_document404_path="404.html"),
        target_version="2020-10-02",
    )
    found = own_service.get_service_properties()
    assert (found["analytics_logging"].read, found["analytics_logging"].retention_policy.days) == (True, 5)
    assert (found["hour_metrics"].include_apis, found["minute_metrics"].include_apis) == (True, False)
    assert (found["cors"][0].allowed_origins, found["cors"][0].max_age_in_seconds) == ("www.xyz.com,www.ab.com", 500)
    assert (found["delete_retention_policy"].enabled, found["delete_retention_policy"].days) == (True, 9)
    assert (found["static_website"].index_document, found["static_website"].error_document404_path) == ("index.html", "404.html")
    assert found["target_version"] == "2020-10-02"
    own_service.set_service_properties(delete_retention_policy=RetentionPolicy(False), cors=[])
    found = own_service.get_service_properties()
    assert (found["delete_retention_policy"].enabled, found["cors"], found["hour_metrics"].enabled) == (False, [], True)


def test_properties_have_limits(own_service):
    with refused(400, "InvalidXmlDocument"):
        own_service.set_service_properties(cors=[CorsRule(["www.xyz.com"], ["GET"])] * 6)
    with refused(400, "InvalidXmlDocument"):
        own_service.set_service_properties(delete_retention_policy=RetentionPolicy(True, 366))


def test_a_browser_of_another_site(own_service):
    own_service.set_service_properties(cors=[CorsRule(["http://site"], ["GET", "PUT"], allowed_headers=["*"], exposed_headers=["*"])])
    url = f"{own_service.url}any/blob"
    asked = {"Origin": "http://site", "Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "x-ms-blob-type"}
    answer = requests.options(url, headers=asked, timeout=30)
    assert (answer.status_code, answer.headers["Access-Control-Allow-Origin"]) == (200, "http://site")
    answer = requests.options(url, headers=asked | {"Origin": "http://other"}, timeout=30)
    assert (answer.status_code, "CorsPreflightFailure" in answer.text) == (403, True)


def test_account_information(service, container):
    for client in (service, container, container.get_blob_client("a")):
        found = client.get_account_information()
        assert found["account_kind"] == "StorageV2" and found["sku_name"].startswith("Standard_")
        assert found["is_hns_enabled"] is False


def test_statistics():
    # Of a path-style address, the SDK replaces only the host.
    with service_client(ENDPOINT + "-secondary", secondary_hostname=urlsplit(ENDPOINT).netloc) as client:
        assert client.get_service_stats()["geo_replication"]["status"] in ("live", "unavailable", "bootstrap")


def test_the_secondary_reads(filled):
    assert content(blob_client(filled.container_name, "blob", ENDPOINT + "-secondary")) == b"0123456789"


def test_a_connection_string():
    with BlobServiceClient.from_connection_string(CONNECTION, **OPTIONS) as client:
        container = client.create_container(fresh_name())
        container.upload_blob("a", b"1")
        assert content(container.get_blob_client("a")) == b"1"
        container.delete_container()


def test_a_named_key(filled):
    client = blob_client(filled.container_name, "blob", credential=AzureNamedKeyCredential(ACCOUNT, KEY))
    assert content(client) == b"0123456789"


def test_a_wrong_key(filled):
    wrong = {"account_name": ACCOUNT, "account_key": base64.b64encode(b"wrong").decode()}
    with refused(403, "AuthenticationFailed", ClientAuthenticationError):
        content(blob_client(filled.container_name, "blob", credential=wrong))


def test_nobody(filled):
    with refused(401, "NoAuthenticationInformation", ClientAuthenticationError):
        content(blob_client(filled.container_name, "blob", credential=None))


def test_what_an_error_says(container):
    with pytest.raises(HttpResponseError) as refusal:
        container.get_blob_client("missing").download_blob()
    error = refusal.value
    assert error.reason and error.message.startswith("The specified blob does not exist.\nRequestId:")
    assert error.response.headers["x-ms-error-code"] == "BlobNotFound"
    assert error.response.headers["x-ms-version"] == error.response.request.headers["x-ms-version"]


def test_the_request_id_of_the_client_comes_back(filled):
    answers = []
    content(filled, raw_response_hook=answers.append, client_request_id="an id of mine")
    assert answers[0].http_response.headers["x-ms-client-request-id"] == "an id of mine"


NOT_BUILT = {
    "query": lambda blob: blob.query_blob("SELECT * from BlobStorage").readall(),
    "legal hold": lambda blob: blob.set_legal_hold(True),
}


@pytest.mark.parametrize("act", NOT_BUILT.values(), ids=NOT_BUILT.keys())
def test_what_is_not_built_is_refused(filled, act):
    with pytest.raises(HttpResponseError) as refusal:
        act(filled)
    assert refusal.value.status_code in (400, 501)

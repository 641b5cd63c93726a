"""Code that the console copies as Python, run as it is. crates/console/web/test/code.ts writes it."""

import base64
import hashlib
import hmac
import json
import os
import subprocess
import sys
import urllib.request
from email.utils import formatdate
from urllib.parse import quote, urlsplit

from conftest import ACCOUNT, ENDPOINT, KEY, cases, service_client


def send(method, path, body=None):
    """A signed request without the SDK, because what is stored is compared as the service writes it."""
    date = formatdate(usegmt=True)
    to_sign = f"{date}\n/{ACCOUNT}{urlsplit(ENDPOINT).path}{path}"
    digest = hmac.new(base64.b64decode(KEY), to_sign.encode(), hashlib.sha256).digest()
    headers = {
        "x-ms-date": date,
        "x-ms-version": "2019-02-02",
        "Authorization": f"SharedKeyLite {ACCOUNT}:{base64.b64encode(digest).decode()}",
        "Accept": "application/json;odata=minimalmetadata",
        "Content-Type": "application/json",
    }
    request = urllib.request.Request(ENDPOINT + path, data=body, headers=headers, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read()


def stored(table, row):
    """The entity without what differs in any case; numbers as texts, so that 1 is not 1.0."""
    path = f"/{table}(PartitionKey='{quote(chr(39) * 2, safe='').join(['it', 's'])}',RowKey='{quote(row, safe='')}')"
    found = json.loads(send("GET", path), parse_float=str, parse_int=lambda text: f"whole {text}")
    return {name: value for name, value in found.items() if not name.startswith("odata.") and name not in ("Timestamp", "RowKey")}


def run(code):
    endpoint = f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint={ENDPOINT}"
    environment = {**os.environ, "AZURE_STORAGE_CONNECTION_STRING": endpoint}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_copied_code_writes_every_type_as_it_is_and_finds_it():
    all_cases = cases("console_code.json")
    code, entity = all_cases["code"]["Python"], json.loads(all_cases["entity"])
    with service_client() as service:
        service.create_table_if_not_exists(code["table"])
        try:
            reference = {**entity, "RowKey": "reference"}
            # Doubles that are whole numbers would lose their point in Python's JSON.
            body = all_cases["entity"].replace(json.dumps(entity["RowKey"], ensure_ascii=False), '"reference"')
            assert json.loads(body) == reference or "NaN" in body
            send("POST", f"/{code['table']}", body.encode())
            assert run(code["write"]) == ""
            assert stored(code["table"], entity["RowKey"]) == stored(code["table"], "reference")
            shown = run(code["read"])
            assert shown.count("RowKey") == 2 and "reference" in shown, shown
        finally:
            service.delete_table(code["table"])

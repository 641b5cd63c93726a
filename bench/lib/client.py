"""A small signing client of the Table service, for what `partita bench` does not do: drops, tables, ranges, a partition of
any length. It sends one request at a time."""

import base64
import hashlib
import hmac
import http.client
import json
import random
import string
from email.utils import formatdate

from .process import Trouble

ACCOUNT = "devstoreaccount1"
# Published, the same for every emulator.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def connection_string(port, queue_port=None, blob_port=None):
    text = f"AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint=http://127.0.0.1:{port}/{ACCOUNT}"
    for service, of_service in (("Queue", queue_port), ("Blob", blob_port)):
        if of_service:
            text += f";{service}Endpoint=http://127.0.0.1:{of_service}/{ACCOUNT}"
    return text


class TableClient:
    def __init__(self, port):
        self.port = port
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        self.key = base64.b64decode(KEY)

    def send(self, method, path, expected, query="", body=None, content_type="application/json"):
        """`path` begins with / and follows the account. Returns headers and body."""
        path = f"/{ACCOUNT}{path}"
        date = formatdate(usegmt=True)
        # Shared Key Lite of the Table service signs only the date and the resource.
        signed = f"{date}\n/{ACCOUNT}{path}".encode()
        signature = base64.b64encode(hmac.new(self.key, signed, hashlib.sha256).digest()).decode()
        headers = {
            "Authorization": f"SharedKeyLite {ACCOUNT}:{signature}",
            "x-ms-date": date,
            "x-ms-version": "2019-02-02",
            "DataServiceVersion": "3.0",
            "Accept": "application/json;odata=nometadata",
            "Prefer": "return-no-content",
        }
        if body is not None:
            headers["Content-Type"] = content_type
        self.connection.request(method, path + (f"?{query}" if query else ""), body, headers)
        response = self.connection.getresponse()
        content = response.read()
        if response.status != expected:
            raise Trouble(f"{method} {path}?{query} answered {response.status} and not {expected}: {content[:300]!r}")
        return response.headers, content

    def create_table(self, name):
        self.send("POST", "/Tables", 204, body=json.dumps({"TableName": name}))

    def delete_table(self, name):
        self.send("DELETE", f"/Tables('{name}')", 204)

    def count_tables(self):
        """Lists all tables; returns how many there are, and on how many pages."""
        count = pages = 0
        query = ""
        while True:
            headers, body = self.send("GET", "/Tables", 200, query=query)
            count, pages = count + len(json.loads(body)["value"]), pages + 1
            following = headers.get("x-ms-continuation-NextTableName")
            if not following:
                return count, pages
            query = f"NextTableName={following}"

    def get(self, table, partition, row):
        return self.send("GET", f"/{table}(PartitionKey='{partition}',RowKey='{row}')", 200)[1]

    def rows(self, table, partition, first, end=None):
        """The rows of one page from `first` on, up to but without `end`."""
        query = f"$filter=PartitionKey%20eq%20'{partition}'%20and%20RowKey%20ge%20'{first}'"
        if end:
            query += f"%20and%20RowKey%20lt%20'{end}'"
        return self.send("GET", f"/{table}()", 200, query=query)[1]

    def insert_batch(self, table, entities):
        """Inserts up to 100 entities of one partition, given as JSON."""
        part = (f"--changeset_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
                f"POST http://127.0.0.1:{self.port}/{ACCOUNT}/{table} HTTP/1.1\r\nContent-Type: application/json\r\n"
                f"Accept: application/json;odata=nometadata\r\nPrefer: return-no-content\r\n\r\n")
        body = "".join([
            "--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n",
            *(f"{part}{entity}\r\n" for entity in entities),
            "--changeset_1--\r\n--batch_1--\r\n"])
        answer = self.send("POST", "/$batch", 202, body=body, content_type="multipart/mixed; boundary=batch_1")[1]
        if answer.count(b"HTTP/1.1 204") != len(entities):
            raise Trouble(f"a batch of {len(entities)} was not accepted: {answer[:600]!r}")


class Letters:
    """Texts cut from a long random text, so that they compress no better than real data."""

    def __init__(self):
        self.random = random.Random(0)
        self.text = "".join(self.random.choices(string.ascii_letters + string.digits + " -", k=1 << 18))

    def cut(self, length):
        start = self.random.randrange(len(self.text) - length)
        return self.text[start:start + length]

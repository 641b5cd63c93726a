"""Encrypts or decrypts entities with the Python library that has the same format (azure-cosmosdb-table).

    library.py encrypt|decrypt

Entities come in and go out as the service's JSON, one per line. All properties whose names begin with "secret" are
encrypted, by the key 80..9F as `A256KW`.
"""

import json
import sys
from types import SimpleNamespace

from azure.cosmosdb.table._deserialization import _convert_json_response_to_entity
from azure.cosmosdb.table._encryption import _encrypt_entity
from azure.cosmosdb.table._serialization import _convert_entity_to_json
from cryptography.hazmat.primitives.keywrap import aes_key_unwrap, aes_key_wrap


class Key:
    secret = bytes(range(0x80, 0xA0))

    def get_kid(self):
        return "local:kek1"

    def get_key_wrap_algorithm(self):
        return "A256KW"

    def wrap_key(self, key):
        return aes_key_wrap(self.secret, key)

    def unwrap_key(self, key, algorithm):
        assert algorithm == "A256KW", algorithm
        return aes_key_unwrap(self.secret, key)


def encrypt(line):
    encrypted = _encrypt_entity(json.loads(line), Key(), lambda _partition, _row, name: name.startswith("secret"))
    return _convert_entity_to_json(encrypted)


def decrypt(line):
    response = SimpleNamespace(body=line.encode())
    entity = _convert_json_response_to_entity(response, None, True, Key(), None)
    entity.pop("etag", None)  # added by the library, even if there is none
    return _convert_entity_to_json(entity)


work = {"encrypt": encrypt, "decrypt": decrypt}[sys.argv[1]]
for line in sys.stdin:
    print(work(line))

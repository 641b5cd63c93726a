// What every test needs: clients of the server under test, fresh containers, and what the server said.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { createInterface } from "node:readline";
import {
  AnonymousCredential,
  BlobSASPermissions,
  BlobServiceClient,
  ContainerClient,
  StorageSharedKeyCredential,
} from "@azure/storage-blob";

export const ENDPOINT = (process.env.PARTITA_BLOB_ENDPOINT ?? "http://127.0.0.1:10000/devstoreaccount1").replace(/\/$/, "");
export const ACCOUNT = "devstoreaccount1";
export const KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
export const credential = new StorageSharedKeyCredential(ACCOUNT, KEY);
export const nobody = new AnonymousCredential();
export const MIB = 1024 * 1024;

// A retry would hide a wrong answer.
export const OPTIONS = { retryOptions: { maxTries: 1 } };

export const serviceClient = (endpoint = ENDPOINT, who = credential) => new BlobServiceClient(endpoint, who, OPTIONS);

export const containerClient = (name, endpoint = ENDPOINT, who = credential) =>
  new ContainerClient(`${endpoint}/${name}`, who, OPTIONS);

export const fresh = (prefix = "js-") => prefix + randomBytes(10).toString("hex");

export const hours = (count) => new Date(Date.now() + count * 3600 * 1000);

export async function withContainer(act, service = serviceClient()) {
  const container = service.getContainerClient(fresh());
  await container.create();
  try {
    return await act(container);
  } finally {
    await container.deleteIfExists();
  }
}

// A block blob with ten bytes.
export const withBlob = (act, service) =>
  withContainer(async (container) => {
    const blob = container.getBlockBlobClient("blob");
    await blob.upload("0123456789", 10);
    return act(blob, container);
  }, service);

export const put = (container, name, body = name, options) =>
  container.getBlockBlobClient(name).upload(body, Buffer.byteLength(body), options);

export const content = async (blob, ...range) => (await blob.downloadToBuffer(...range)).toString();

// Downloads, also of an empty blob, as one stream.
export async function streamed(blob, ...options) {
  const { readableStreamBody } = await blob.download(...options);
  return Buffer.concat(await all(readableStreamBody));
}

// The address of a blob with a token of its own.
export const signed = (blob, permissions = "r") =>
  blob.generateSasUrl({ permissions: BlobSASPermissions.parse(permissions), expiresOn: hours(1) });

export async function all(iterator) {
  const found = [];
  for await (const one of iterator) found.push(one);
  return found;
}

export const names = async (iterator) => (await all(iterator)).map((one) => one.name);

export async function refusal(promise, statusCode, code) {
  const error = await promise.then(
    () => assert.fail(`expected ${statusCode} ${code ?? ""}, but it was done`),
    (error) => error,
  );
  assert.equal(error.name, "RestError", String(error.stack));
  assert.deepEqual([error.statusCode, error.code], [statusCode, code], error.message);
  return error;
}

// The Blob endpoint of a new server with these settings, for as long as `act` runs.
export async function withServer(settings, act) {
  const server = spawn(process.env.PARTITA_BINARY, ["serve", "--listen", "127.0.0.1:0", "--in-memory", "--log-level", "error", ...settings], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  try {
    for await (const line of createInterface({ input: server.stdout })) {
      const found = /BlobEndpoint=(http:[^;]+)/.exec(line);
      if (found) return await act(found[1]);
    }
    assert.fail("the server did not start");
  } finally {
    server.kill();
  }
}
export const noBinary = process.env.PARTITA_BINARY ? false : "PARTITA_BINARY names no server to start";

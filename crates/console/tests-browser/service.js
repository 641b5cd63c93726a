// Requests to the services from outside the browser, to make what a test needs and to see what is stored.

import { createHmac } from "node:crypto";

const ACCOUNT = "devstoreaccount1";
export const KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
export const CONSOLE = (process.env.PARTITA_CONSOLE ?? "http://127.0.0.1:10004").replace(/\/$/, "");
const TABLES = `http://${process.env.PARTITA_TABLES ?? "127.0.0.1:10002"}/${ACCOUNT}`;
const QUEUES = `http://${process.env.PARTITA_QUEUES ?? "127.0.0.1:10001"}/${ACCOUNT}`;
export const BLOBS = `http://${process.env.PARTITA_BLOBS ?? "127.0.0.1:10000"}/${ACCOUNT}`;
export const CONNECTION = `AccountName=${ACCOUNT};AccountKey=${KEY};TableEndpoint=${TABLES};`;
const VERSION = "2021-12-02";

const sign = (text) => createHmac("sha256", Buffer.from(KEY, "base64")).update(text, "utf8").digest("base64");

async function send(url, stringToSign, method, headers, body) {
  const signed = { ...headers, Authorization: `SharedKeyLite ${ACCOUNT}:${sign(stringToSign)}` };
  const answer = await fetch(url, { method, headers: signed, body });
  const bytes = Buffer.from(await answer.arrayBuffer());
  const text = bytes.toString();
  if (!answer.ok && answer.status !== 404 && answer.status !== 409) throw new Error(`${method} ${url}: ${answer.status} ${text}`);
  return { status: answer.status, headers: answer.headers, text, bytes };
}

export function tables(method, path, body, more = {}) {
  const date = new Date().toUTCString();
  const url = new URL(TABLES + path);
  const comp = url.searchParams.get("comp");
  const headers = { "x-ms-date": date, "x-ms-version": VERSION, Accept: comp ? "application/xml" : "application/json;odata=minimalmetadata", ...(body && { "Content-Type": "application/json" }), ...more };
  return send(url, `${date}\n/${ACCOUNT}${url.pathname}${comp ? `?comp=${comp}` : ""}`, method, headers, body);
}

export function queues(method, path, body) {
  const date = new Date().toUTCString();
  const url = new URL(QUEUES + path);
  const comp = url.searchParams.get("comp");
  const headers = { "x-ms-date": date, "x-ms-version": VERSION, ...(body && { "Content-Type": "application/xml" }) };
  const text = `${method}\n\n${body ? "application/xml" : ""}\n\nx-ms-date:${date}\nx-ms-version:${VERSION}\n/${ACCOUNT}${url.pathname}${comp ? `?comp=${comp}` : ""}`;
  return send(url, text, method, headers, body);
}

/** A container, or a blob in it. */
export function blobs(method, { container, name, query = "" }, body, more = {}) {
  const date = new Date().toUTCString();
  // In one part, so that nothing takes `..` out of it.
  const url = new URL(`${BLOBS}/${encodeURIComponent(name === undefined ? container : `${container}/${name}`)}${query && `?${query}`}`);
  const comp = url.searchParams.get("comp");
  const headers = { "x-ms-date": date, "x-ms-version": VERSION, ...(body !== undefined && { "Content-Type": "application/octet-stream" }), ...more };
  const own = Object.keys(headers).filter((header) => header.toLowerCase().startsWith("x-ms-"));
  const canonical = own.sort((a, b) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1)).map((header) => `${header.toLowerCase()}:${headers[header]}\n`).join("");
  const text = `${method}\n\n${headers["Content-Type"] ?? ""}\n\n${canonical}/${ACCOUNT}${url.pathname}${comp ? `?comp=${comp}` : ""}`;
  return send(url, text, method, headers, body);
}

export const putBlob = (container, name, body, more = {}) => blobs("PUT", { container, name }, body, { "x-ms-blob-type": "BlockBlob", ...more });
export const getBlob = (container, name) => blobs("GET", { container, name });
export const headBlob = (container, name) => blobs("HEAD", { container, name });

/** An empty container of this name: leases are broken, and what was in it is gone. */
export async function freshContainer(container) {
  await blobs("PUT", { container, query: "restype=container&comp=lease" }, undefined, { "x-ms-lease-action": "break", "x-ms-lease-break-period": "0" });
  await blobs("DELETE", { container, query: "restype=container" });
  await blobs("PUT", { container, query: "restype=container" });
}

export const createTable = (name) => tables("POST", "/Tables", JSON.stringify({ TableName: name }));
export const dropTable = (name) => tables("DELETE", `/Tables('${name}')`);
export const insert = (table, entity) => tables("POST", `/${table}`, JSON.stringify(entity));

/** All entities, with annotations; undefined if there is no such table. */
export async function entities(table, query = "") {
  const found = await tables("GET", `/${table}()${query}`);
  return found.status === 404 ? undefined : JSON.parse(found.text).value;
}

export async function entity(table, pk, rk) {
  const found = await tables("GET", `/${table}(PartitionKey='${encodeURIComponent(pk)}',RowKey='${encodeURIComponent(rk)}')`);
  return found.status === 404 ? undefined : JSON.parse(found.text);
}

/** Inserts rows of one partition, 100 at a time. */
export async function insertMany(table, pk, rows) {
  for (let at = 0; at < rows.length; at += 100) {
    const parts = rows.slice(at, at + 100).map((row) => {
      const body = JSON.stringify({ PartitionKey: pk, ...row });
      return `--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nPOST ${TABLES}/${table} HTTP/1.1\r\nContent-Type: application/json\r\nPrefer: return-no-content\r\n\r\n${body}\r\n`;
    });
    const body = `--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n${parts.join("")}--c--\r\n--b--\r\n`;
    const { text } = await tables("POST", "/$batch", body, { "Content-Type": "multipart/mixed; boundary=b" });
    if (/HTTP\/1\.1 [45]/.test(text)) throw new Error(text);
  }
}

export const putMessage = (queue, text) =>
  queues("POST", `/${queue}/messages`, `<QueueMessage><MessageText>${text.replace(/&/g, "&amp;").replace(/</g, "&lt;")}</MessageText></QueueMessage>`);

export async function peekTexts(queue) {
  const { text } = await queues("GET", `/${queue}/messages?peekonly=true&numofmessages=32`);
  return [...text.matchAll(/<MessageText>([^<]*)<\/MessageText>/g)].map(([, inner]) => inner.replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&"));
}

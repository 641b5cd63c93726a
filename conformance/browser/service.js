// Requests to the service under test from outside the browser: tables, properties, tokens.

import { createHmac } from "node:crypto";

export const ENDPOINT = (process.env.PARTITA_ENDPOINT ?? "http://127.0.0.1:10002/devstoreaccount1").replace(/\/$/, "");
const ACCOUNT = "devstoreaccount1";
const KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const VERSION = "2019-02-02";

const sign = (text) => createHmac("sha256", Buffer.from(KEY, "base64")).update(text, "utf8").digest("base64");

// Signed with Shared Key Lite: the date, then the account and the path, with `comp` if there is one.
export async function send(method, path, body, type = "application/json") {
  const date = new Date().toUTCString();
  const url = new URL(ENDPOINT + path);
  const comp = url.searchParams.get("comp");
  const resource = `/${ACCOUNT}${url.pathname}${comp ? `?comp=${comp}` : ""}`;
  const headers = {
    "x-ms-date": date,
    "x-ms-version": VERSION,
    Authorization: `SharedKeyLite ${ACCOUNT}:${sign(`${date}\n${resource}`)}`,
    Accept: comp ? "application/xml" : "application/json",
    ...(body && { "Content-Type": type }),
  };
  const answer = await fetch(url, { method, headers, body });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return text;
}

export const properties = () => send("GET", "/?restype=service&comp=properties");

export const setProperties = (document) =>
  send("PUT", "/?restype=service&comp=properties", document, "application/xml");

// Only these rules; other properties stay as they are.
export function setRules(...rules) {
  const written = rules.map(
    ({ origins, methods, headers = "", exposed = "" }) =>
      `<CorsRule><AllowedOrigins>${origins}</AllowedOrigins><AllowedMethods>${methods}</AllowedMethods>` +
      `<MaxAgeInSeconds>0</MaxAgeInSeconds><ExposedHeaders>${exposed}</ExposedHeaders>` +
      `<AllowedHeaders>${headers}</AllowedHeaders></CorsRule>`,
  );
  return setProperties(
    `<?xml version="1.0" encoding="utf-8"?><StorageServiceProperties><Cors>${written.join("")}</Cors></StorageServiceProperties>`,
  );
}

// A table's token for everything that can be done with its entities.
export function token(table) {
  const expiry = new Date(Date.now() + 3_600_000).toISOString().replace(/\.\d+Z$/, "Z");
  const resource = `/table/${ACCOUNT}/${table.toLowerCase()}`;
  // Permissions, start, expiry, resource, policy, addresses, protocol, version, then the range of keys.
  const text = ["raud", "", expiry, resource, "", "", "", VERSION, "", "", "", ""].join("\n");
  return new URLSearchParams({ sv: VERSION, tn: table, sp: "raud", se: expiry, sig: sign(text) }).toString();
}

// Tokens, stored policies and service properties.

import { child, children, escape, parse, textAt } from "../lib/xml.ts";
import { leaseHeader } from "./blobs.ts";
import { call, postJson } from "./http.ts";

export type Service = "table" | "queue" | "blob";

export interface SasRequest {
  kind: "account" | "table" | "queue" | "container" | "blob";
  resource?: string;
  blob?: string;
  permissions: string;
  start?: string;
  expiry?: string;
  ip?: string;
  protocol?: string;
  policy?: string;
  start_pk?: string;
  start_rk?: string;
  end_pk?: string;
  end_rk?: string;
  services?: string;
  resource_types?: string;
}

export interface MadeSas {
  token: string;
  url: string;
  explanation: string[];
}

export const makeSas = (request: SasRequest): Promise<MadeSas> => postJson("/api/sas", request);

export interface Policy {
  id: string;
  start: string;
  expiry: string;
  permissions: string;
}

const xml = { "content-type": "application/xml", accept: "application/xml" };
const forward = (service: Service, resource = ""): string => `/api/forward/${service}/${encodeURIComponent(resource)}`;
const acl = (service: Service, resource: string): string => `${forward(service, resource)}?${service === "blob" ? "restype=container&" : ""}comp=acl`;

export interface Policies {
  list: Policy[];
  /** Of a container: who may read it without a key. It is replaced together with the policies. */
  access: string;
}

export async function policies(service: Service, resource: string): Promise<Policies> {
  const answer = await call("GET", acl(service, resource), { headers: { accept: "application/xml" } });
  const list = children(parse((await answer.text()).replace(/^\ufeff/, "")), "SignedIdentifier").map((element) => ({
    id: textAt(element, "Id"),
    start: textAt(element, "AccessPolicy", "Start"),
    expiry: textAt(element, "AccessPolicy", "Expiry"),
    permissions: textAt(element, "AccessPolicy", "Permission"),
  }));
  return { list, access: answer.headers.get("x-ms-blob-public-access") ?? "" };
}

export async function setPolicies(service: Service, resource: string, { list, access }: Policies): Promise<void> {
  const optional = (name: string, text: string): string => (text ? `<${name}>${escape(text)}</${name}>` : "");
  const written = list.map(
    ({ id, start, expiry, permissions }) =>
      `<SignedIdentifier><Id>${escape(id)}</Id><AccessPolicy>${optional("Start", start)}${optional("Expiry", expiry)}${optional("Permission", permissions)}</AccessPolicy></SignedIdentifier>`,
  );
  const body = `<?xml version="1.0" encoding="utf-8"?><SignedIdentifiers>${written.join("")}</SignedIdentifiers>`;
  const own = service === "blob" ? { ...leaseHeader(resource), ...(access && { "x-ms-blob-public-access": access }) } : {};
  await call("PUT", acl(service, resource), { body, headers: { ...xml, ...own } });
}

export interface Retention {
  isOn: boolean;
  days: string;
}

export interface CorsRule {
  origins: string;
  methods: string;
  allowed: string;
  exposed: string;
  seconds: string;
}

export interface Metrics {
  isOn: boolean;
  apis: boolean;
  retention: Retention;
}

export interface Properties {
  logging: { read: boolean; write: boolean; delete: boolean; retention: Retention };
  hour: Metrics;
  minute: Metrics;
  cors: CorsRule[];
  /** How long deleted blobs can be restored. Of blobs only. */
  deleted?: Retention;
}

export async function properties(service: Service): Promise<Properties> {
  const answer = await call("GET", `${forward(service)}?restype=service&comp=properties`, { headers: { accept: "application/xml" } });
  const root = parse((await answer.text()).replace(/^\ufeff/, ""));
  const isTrue = (...path: string[]): boolean => textAt(root, ...path) === "true";
  const retention = (part: string): Retention => ({ isOn: isTrue(part, "RetentionPolicy", "Enabled"), days: textAt(root, part, "RetentionPolicy", "Days") || "7" });
  const metrics = (part: string): Metrics => ({ isOn: isTrue(part, "Enabled"), apis: isTrue(part, "IncludeAPIs"), retention: retention(part) });
  return {
    logging: { read: isTrue("Logging", "Read"), write: isTrue("Logging", "Write"), delete: isTrue("Logging", "Delete"), retention: retention("Logging") },
    hour: metrics("HourMetrics"),
    minute: metrics("MinuteMetrics"),
    ...(service === "blob" && { deleted: { isOn: isTrue("DeleteRetentionPolicy", "Enabled"), days: textAt(root, "DeleteRetentionPolicy", "Days") || "7" } }),
    cors: children(child(root, "Cors"), "CorsRule").map((rule) => ({
      origins: textAt(rule, "AllowedOrigins"),
      methods: textAt(rule, "AllowedMethods"),
      allowed: textAt(rule, "AllowedHeaders"),
      exposed: textAt(rule, "ExposedHeaders"),
      seconds: textAt(rule, "MaxAgeInSeconds"),
    })),
  };
}

export function writeProperties({ logging, hour, minute, cors, deleted }: Properties): string {
  const kept = (name: string, { isOn, days }: Retention): string => `<${name}><Enabled>${isOn}</Enabled>${isOn ? `<Days>${escape(days)}</Days>` : ""}</${name}>`;
  const retention = (value: Retention): string => kept("RetentionPolicy", value);
  const metrics = (name: string, { isOn, apis, retention: days }: Metrics): string =>
    `<${name}><Version>1.0</Version><Enabled>${isOn}</Enabled>${isOn ? `<IncludeAPIs>${apis}</IncludeAPIs>` : ""}${retention(days)}</${name}>`;
  const rules = cors.map(
    (rule) =>
      `<CorsRule><AllowedOrigins>${escape(rule.origins)}</AllowedOrigins><AllowedMethods>${escape(rule.methods)}</AllowedMethods>` +
      `<MaxAgeInSeconds>${escape(rule.seconds)}</MaxAgeInSeconds><ExposedHeaders>${escape(rule.exposed)}</ExposedHeaders>` +
      `<AllowedHeaders>${escape(rule.allowed)}</AllowedHeaders></CorsRule>`,
  );
  return (
    `<?xml version="1.0" encoding="utf-8"?><StorageServiceProperties><Logging><Version>1.0</Version><Delete>${logging.delete}</Delete>` +
    `<Read>${logging.read}</Read><Write>${logging.write}</Write>${retention(logging.retention)}</Logging>` +
    `${metrics("HourMetrics", hour)}${metrics("MinuteMetrics", minute)}<Cors>${rules.join("")}</Cors>${deleted ? kept("DeleteRetentionPolicy", deleted) : ""}</StorageServiceProperties>`
  );
}

export async function setProperties(service: Service, value: Properties): Promise<void> {
  await call("PUT", `${forward(service)}?restype=service&comp=properties`, { body: writeProperties(value), headers: xml });
}

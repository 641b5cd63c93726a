// The download of a blob in other languages, and its address. As in `snippets.ts`, credentials are never part of it.

import { type Language, quote, rust, shell, VARIABLE } from "./snippets.ts";

export interface BlobSnippet {
  endpoint: string;
  container: string;
  name: string;
  snapshot?: string;
}

/** The path of a blob. Programs take the parts `.` and `..` out of a path; none of them touches a slash that is encoded. */
export function blobPath(container: string, name: string): string {
  const slash = name.split("/").some((part) => part === "" || part === "." || part === "..") ? "%2F" : "/";
  // Also those that `encodeURIComponent` leaves alone, and that shells or lists of addresses use.
  const encode = (text: string): string => encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
  return [container, ...name.split("/")].map(encode).join(slash);
}

/** What follows the last slash, without what a file can't be called, or what would be taken for an option or hidden. */
export function fileName(name: string): string {
  const last = name.split("/").filter(Boolean).at(-1) ?? "";
  return last.replace(/[^\p{L}\p{N}._ -]/gu, "_").replace(/^[.\s-]+|[.\s]+$/g, "").slice(-100) || "blob";
}

export function blobSnippet(language: Language, { endpoint, container, name, snapshot }: BlobSnippet): string {
  const file = fileName(name);
  switch (language) {
    case "curl":
      return `# SAS: a token with the permission to read, from the tab SAS
curl -sS --fail --output ${shell(file)} ${shell(`${endpoint}/${blobPath(container, name)}?${snapshot ? `snapshot=${encodeURIComponent(snapshot)}&` : ""}`)}"$SAS"`;
    case "Python":
      return `import os
from azure.storage.blob import BlobClient

blob = BlobClient.from_connection_string(os.environ["${VARIABLE}"], ${quote(container)}, ${quote(name)}${snapshot ? `, snapshot=${quote(snapshot)}` : ""})
with open(${quote(file)}, "wb") as file:
    blob.download_blob().readinto(file)`;
    case "C#":
      return `using Azure.Storage.Blobs;

var blob = new BlobClient(Environment.GetEnvironmentVariable("${VARIABLE}"), ${quote(container)}, ${quote(name)})${snapshot ? `.WithSnapshot(${quote(snapshot)})` : ""};
await blob.DownloadToAsync(${quote(file)});`;
    case "JavaScript":
      return `import { BlobServiceClient } from "@azure/storage-blob";

const service = BlobServiceClient.fromConnectionString(process.env.${VARIABLE});
const blob = service.getContainerClient(${quote(container)}).getBlobClient(${quote(name)})${snapshot ? `.withSnapshot(${quote(snapshot)})` : ""};
await blob.downloadToFile(${quote(file)});`;
    case "Rust":
      return `use std::io::Write as _;
use partita_client::BlobService;

let service = BlobService::from_connection_string(&std::env::var("${VARIABLE}")?)?;
let blob = service.container(${rust(container)})?.blob(${rust(name)})?${snapshot ? `.at_snapshot(${rust(snapshot)})` : ""};
let mut download = blob.download().await?;
let mut file = std::fs::File::create(${rust(file)})?;
while let Some(piece) = download.next().await? {
    file.write_all(&piece)?;
}`;
  }
}

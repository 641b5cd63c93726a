// Data that looks like somebody's: for pictures, and for the checks that browse.

import { png } from "./picture.js";
import { blobs, createTable, dropTable, freshContainer, insert, insertMany, putBlob, putMessage, queues, tables } from "./service.js";

const GENRES = ["crime", "fantasy", "history", "poetry", "sf", "travel"];
const AUTHORS = ["Stanisław Lem", "Ursula K. Le Guin", "Arkady Strugatsky", "Octavia Butler", "Italo Calvino", "Agatha Christie", "Wisława Szymborska", "Bruce Chatwin"];
const WORDS = ["Star", "Solaris", "Winter", "Roadside", "Invisible", "Hand", "Night", "Left", "Darkness", "River", "City", "Glass", "Return", "Picnic", "Orient", "Garden", "Letters", "Songlines"];
/** The same numbers in every run. */
function dice(seed) {
  let state = seed;
  return (below) => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return Math.floor((state / 2147483648) * below);
  };
}

export function book(index, roll) {
  const entity = {
    RowKey: `b${String(index).padStart(5, "0")}`,
    Title: `${WORDS[roll(WORDS.length)]} ${WORDS[roll(WORDS.length)]}`,
    Author: AUTHORS[roll(AUTHORS.length)],
    Year: 1920 + roll(105),
    Price: (roll(3999) * 10 + 5) / 1000,
    InStock: roll(3) > 0,
    "Copies@odata.type": "Edm.Int64",
    Copies: String(roll(5_000_000)),
    "Bought@odata.type": "Edm.DateTime",
    Bought: new Date(1_700_000_000_000 + roll(60_000_000) * 1000).toISOString(),
  };
  if (roll(3) === 0) entity.Translator = AUTHORS[roll(AUTHORS.length)];
  return entity;
}

export async function seedBooks(name, perGenre = 400) {
  await createTable(name);
  const roll = dice(7);
  for (const genre of GENRES) await insertMany(name, genre, Array.from({ length: perGenre }, (_, index) => book(index, roll)));
}

async function seedBlobs() {
  const deleted = (days) => blobs("PUT", { container: "", query: "restype=service&comp=properties" }, `<StorageServiceProperties><DeleteRetentionPolicy><Enabled>${!!days}</Enabled>${days ? `<Days>${days}</Days>` : ""}</DeleteRetentionPolicy></StorageServiceProperties>`);
  for (const name of ["photos", "backups", "invoices"]) await freshContainer(name);
  await deleted(7);
  const waves = png(960, 540);
  for (const name of ["2026/april/harbour.png", "2026/may/waves.png", "2026/may/dunes.png"]) await putBlob("photos", name, waves, { "x-ms-blob-content-type": "image/png" });
  const notes = ["# Photos", "", "Everything from the coast, by month.", "", "- *waves* is the one for the poster", "- Zürich follows in June", ""].join("\n");
  await putBlob("photos", "notes.md", notes, { "x-ms-blob-content-type": "text/markdown", "x-ms-meta-author": "Ann", "x-ms-meta-reviewedBy": "Bo", "x-ms-tags": "project=coast&status=draft" });
  await putBlob("photos", "2026/old.tar", Buffer.alloc(300_000), { "x-ms-access-tier": "Cool", "x-ms-blob-content-type": "application/x-tar" });
  await putBlob("photos", "2026/draft.png", waves, { "x-ms-blob-content-type": "image/png" });
  for (const name of ["notes.md", "2026/may/waves.png"]) await blobs("PUT", { container: "photos", name, query: "comp=snapshot" });
  await blobs("DELETE", { container: "photos", name: "2026/draft.png" });
  await blobs("PUT", { container: "photos", name: "2026/old.tar", query: "comp=lease" }, undefined, { "x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1" });
  await blobs("PUT", { container: "backups", query: "restype=container&comp=lease" }, undefined, { "x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1" });
  await blobs("PUT", { container: "invoices", query: "restype=container&comp=acl" }, undefined, { "x-ms-blob-public-access": "blob" });
  await deleted(0);
}

export async function seedAll() {
  for (const name of ["Books", "Customers", "Orders", "Sessions", "AuditLog"]) await dropTable(name);
  await seedBooks("Books");
  await seedBlobs();
  for (const [name, rows] of [["Customers", 300], ["Orders", 900], ["Sessions", 120], ["AuditLog", 40]]) {
    await createTable(name);
    await insertMany(name, "p", Array.from({ length: rows }, (_, index) => ({ RowKey: String(index).padStart(6, "0"), Name: `${name} ${index}`, Amount: index * 1.25 + 0.5 })));
  }
  await insert("Books", {
    PartitionKey: "sf",
    RowKey: "all-types",
    Title: "One of each type",
    Year: 1961,
    Price: 12.5,
    InStock: true,
    "Copies@odata.type": "Edm.Int64",
    Copies: "9007199254740993",
    "Bought@odata.type": "Edm.DateTime",
    Bought: "2026-01-31T18:30:00.1234567Z",
    "Isbn@odata.type": "Edm.Guid",
    Isbn: "7c9e6679-7425-40de-944b-e07fc1f90ae7",
    "Cover@odata.type": "Edm.Binary",
    Cover: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB",
  });
  for (const name of ["jobs", "jobs-poison", "mail"]) {
    await queues("DELETE", `/${name}/messages`);
    await queues("PUT", `/${name}`);
  }
  for (let index = 1; index <= 5; index += 1) await putMessage("jobs", JSON.stringify({ id: index, task: "ship", order: `A-${1000 + index}`, customer: "Ann" }));
  await putMessage("jobs", Buffer.from(JSON.stringify({ id: 6, task: "invoice" })).toString("base64"));
  await putMessage("jobs-poison", JSON.stringify({ id: 0, task: "ship", order: "no such order" }));
  await tables("PUT", "/Books?comp=acl", `<SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy><Expiry>2027-12-31T00:00:00Z</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>`, { "Content-Type": "application/xml" });
  await tables(
    "PUT",
    "/?restype=service&comp=properties",
    `<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>https://shop.example</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods><MaxAgeInSeconds>3600</MaxAgeInSeconds><ExposedHeaders>x-ms-*</ExposedHeaders><AllowedHeaders>*</AllowedHeaders></CorsRule></Cors></StorageServiceProperties>`,
    { "Content-Type": "application/xml" },
  );
}

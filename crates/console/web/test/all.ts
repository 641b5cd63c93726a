// What the parts promise, as tables of cases.

import assert from "node:assert/strict";
import { complete, type Seen } from "../src/filter/complete.ts";
import { check as checkFilter } from "../src/filter/check.ts";
import { Scroll, TRACK_MAX } from "../src/grid/scroll.ts";
import { CsvReader, csvLine, rawOfCsv } from "../src/lib/csv.ts";
import * as xml from "../src/lib/xml.ts";
import { type EdmType, fault, literal, parsePage, readEntity, prettyEntity, valueOf, writeEntity, draftOf, type Raw } from "../src/model/edm.ts";
import { blobPath, blobSnippet, fileName } from "../src/model/blob_code.ts";
import { hexOf, pictureOf, textOf } from "../src/model/preview.ts";
import { pieces } from "../src/lib/unseen.ts";
import { entitySnippet, LANGUAGES, querySnippet } from "../src/model/snippets.ts";
import { stale } from "./code.ts";

let passed = 0;
function test(name: string, act: () => void): void {
  try {
    act();
    passed += 1;
  } catch (error) {
    console.log(`not ok: ${name}`);
    throw error;
  }
}

test("filters that the service takes are not called wrong", () => {
  for (const filter of [
    "",
    "Year lt 1970",
    "Year lt 1970 and Author eq 'Lem'",
    "not (A eq 1) or B",
    "((A eq 1))",
    "PartitionKey ge 'a' and PartitionKey lt 'b'",
    "Title eq 'it''s'",
    "When gt datetime'2026-01-31T18:30:00Z' and Id eq guid'7c9e6679-7425-40de-944b-e07fc1f90ae7'",
    "Bytes eq X'00ff' or Bytes eq binary'00FF'",
    "Long ge -9223372036854775808L and D le -1.5e10 and E eq INF and F eq -INF and G eq NaN",
    "eq eq 1 and and eq 2",
    "1 eq A",
    "true",
    "Ünïcode_1 eq 'x'",
  ])
    assert.equal(checkFilter(filter), undefined, filter);
});

test("the first fault of a filter has its place", () => {
  for (const [filter, at, part] of [
    ["Year = 1", 5, "Write eq"],
    ["Year <= 1", 5, "Write le"],
    ["Year eq", 7, "ends here"],
    ["Year eq 1 and", 13, "ends here"],
    ["Year eq 'open", 8, "not closed"],
    ["(Year eq 1", 10, "bracket"],
    ["Year eq 1)", 9, "never opened"],
    ["Year EQ 1", 5, "written small"],
    ["startswith(Title,'a')", 0, "no function"],
    ["Year eq 3000000000", 8, "Between"],
    ["Id eq guid'x'", 6, "hexadecimal"],
    ["Year eq null", 8, "no null"],
    ["'a'", 0, "value alone"],
    ["A eq 1 B eq 2", 7, "and, or"],
  ] as const) {
    const found = checkFilter(filter);
    assert.equal(found?.at, at, `${filter}: ${found?.message}`);
    assert.ok(found?.message.includes(part), `${filter}: ${found?.message}`);
  }
});

test("completion proposes what fits at the cursor", () => {
  const seen: Seen = new Map<string, Set<EdmType>>([
    ["Year", new Set<EdmType>(["Int32"])],
    ["Yes", new Set<EdmType>(["Boolean"])],
  ]);
  const labels = (text: string): string[] => complete(text, text.length, seen).map(({ label }) => label);
  assert.deepEqual(labels("Ye"), ["Year", "Yes"]);
  assert.deepEqual(labels("Year "), ["eq", "ne", "gt", "ge", "lt", "le"]);
  assert.deepEqual(labels("Year l"), ["lt", "le"]);
  assert.deepEqual(labels("Yes eq "), ["true", "false"]);
  assert.deepEqual(labels("Year eq 5 "), ["and", "or"]);
  assert.deepEqual(labels("Year eq 'in a text "), []);
});

test("a page keeps the types of numbers", () => {
  const page = parsePage('{"value":[{"A":1,"B":1.0,"C":1E+20,"D":-0.0,"E":"x\\":1.5,","F@odata.type":"Edm.Int64","F":"9007199254740993","G":true,"H":"{\\"B\\":1.0}"}]}');
  const raw = page.value[0] as Raw;
  const shown = Object.fromEntries(["A", "B", "C", "D", "E", "F", "G", "H"].map((name) => [name, valueOf(raw, name)]));
  assert.deepEqual(shown, {
    A: { type: "Int32", text: "1" },
    B: { type: "Double", text: "1.0" },
    C: { type: "Double", text: "1E+20" },
    D: { type: "Double", text: "-0.0" },
    E: { type: "String", text: 'x":1.5,' },
    F: { type: "Int64", text: "9007199254740993" },
    G: { type: "Boolean", text: "true" },
    H: { type: "String", text: '{"B":1.0}' },
  });
});

test("an entity that is written and read again is the same", () => {
  const text = '{"PartitionKey":"p","RowKey":"r","A":1,"B":1.0,"C@odata.type":"Edm.Double","C":"NaN","D@odata.type":"Edm.Guid","D":"7c9e6679-7425-40de-944b-e07fc1f90ae7","E":"a\\n\\"b\\""}';
  const draft = draftOf(parsePage(text));
  assert.equal(writeEntity(draft), text);
  assert.deepEqual(readEntity(prettyEntity(draft)), draft);
});

test("values are judged by their types", () => {
  for (const [type, right, wrong] of [
    ["Int32", ["0", "-2147483648", "2147483647"], ["2147483648", "1.5", "", "x"]],
    ["Int64", ["9223372036854775807"], ["9223372036854775808"]],
    ["Double", ["1", "-1.5e10", "NaN", "-Infinity", ".5"], ["1,5", "e", ""]],
    ["DateTime", ["2026-01-31T18:30:00Z", "2026-01-31T18:30:00.1234567Z"], ["2026-01-31", "2026-13-01T00:00:00Z", "1500-01-01T00:00:00Z"]],
    ["Guid", ["7c9e6679-7425-40de-944b-e07fc1f90ae7"], ["7c9e6679742540de944be07fc1f90ae7"]],
    ["Binary", ["", "AAEC", "AAE="], ["A", "AA", "a b="]],
    ["Boolean", ["true", "false"], ["True", "1"]],
  ] as const) {
    for (const text of right) assert.equal(fault({ type, text }), undefined, `${type} ${text}`);
    for (const text of wrong) assert.notEqual(fault({ type, text }), undefined, `${type} ${text}`);
  }
});

test("literals are those of filters", () => {
  for (const [type, text, expected] of [
    ["String", "it's", "'it''s'"],
    ["Int64", "5", "5L"],
    ["Double", "5", "5.0"],
    ["Binary", "AP8=", "X'00ff'"],
    ["DateTime", "2026-01-31T18:30:00Z", "datetime'2026-01-31T18:30:00Z'"],
  ] as const)
    assert.equal(literal({ type, text }), expected);
});

test("CSV is read as it is written, also in pieces", () => {
  const cells = ["plain", 'quote " and, comma', "two\r\nlines", "", "end"];
  const text = csvLine(["a", "b", "c", "d", "e"]) + csvLine(cells);
  for (const size of [1, 3, 1000]) {
    const reader = new CsvReader();
    const records: string[][] = [];
    for (let at = 0; at < text.length; at += size) for (const record of reader.push(text.slice(at, at + size))) records.push(record.cells);
    for (const record of reader.end()) records.push(record.cells);
    assert.deepEqual(records[1], cells, `pieces of ${size}`);
  }
});

test("a CSV record gets its types", () => {
  const raw = rawOfCsv(["PartitionKey", "RowKey", "A", "A@type", "B", "B@type", "C"], ["p", "r", "7", "Edm.Int64", "", "", "text"]);
  assert.deepEqual(raw, { PartitionKey: "p", RowKey: "r", A: "7", "A@odata.type": "Edm.Int64", C: "text" });
  assert.throws(() => rawOfCsv(["PartitionKey", "RowKey", "A", "A@type"], ["p", "r", "7", "Edm.Money"]), /Money/);
});

test("XML is read without a parser of the browser", () => {
  const root = xml.parse('<?xml version="1.0"?><A xmlns="x"><B>1 &lt; 2 &#x41;</B><B/><C><D>d</D></C></A>');
  assert.deepEqual(xml.children(root, "B").map(({ text }) => text), ["1 < 2 A", ""]);
  assert.equal(xml.textAt(root, "C", "D"), "d");
  assert.throws(() => xml.parse("<A><B></A>"), /closes/);
  assert.throws(() => xml.parse("<A>"), /not closed/);
});

test("a list that fits has no offset, a longer one reaches its last row", () => {
  const short = new Scroll(28);
  short.resize(1000, 600);
  short.scrolled(5000);
  assert.deepEqual([short.offset, short.rows()[0]], [0, Math.floor(5000 / 28)]);
  const long = new Scroll(28);
  long.resize(10_000_000, 600);
  assert.equal(long.track, TRACK_MAX);
  long.scrolled(TRACK_MAX - 600);
  assert.equal(long.rows()[1], 10_000_000, "the end of the track is the end of the list");
  const middle = long.show(5_000_000 * 28);
  assert.equal(long.rows()[0], 5_000_000);
  // From there, one notch of the wheel moves as many pixels as it says.
  const before = long.y;
  const stand = long.scrolled(middle + 100);
  assert.equal(long.y - before, 100);
  assert.ok(stand === undefined || stand >= 0);
});

test("small steps reach every row of a long list, in order", () => {
  const list = new Scroll(28);
  list.resize(2_000_000, 600);
  let [top, last] = [list.show(999_000 * 28), -1];
  for (let step = 0; step < 2000; step += 1) {
    const first = list.rows()[0];
    assert.ok(first >= last && (last < 0 || first - last <= 11), `${last} to ${first}`);
    last = first;
    top += 280;
    top = list.scrolled(top) ?? top;
  }
});

test("code quotes what could end a text early", () => {
  const draft = { partitionKey: "it's", rowKey: 'a"#b', properties: [["T", { type: "String" as EdmType, text: `'; rm -rf "$HOME" \`x\` "# ` }]] as [string, { type: EdmType; text: string }][] };
  const curl = entitySnippet("curl", { endpoint: "http://x", table: "T", draft });
  assert.ok(curl.includes(`'\\''; rm -rf`), curl);
  const rust = entitySnippet("Rust", { endpoint: "http://x", table: "T", draft });
  assert.ok(!/r#"/.test(rust) && /r##"/.test(rust), rust);
});

test("code has no character that is not seen, or that changes how the rest is seen", () => {
  const filter = "T eq '\u001b[201~\u0003\u202e\u2028\u009b\u200b'";
  for (const language of ["curl", "Python", "C#", "JavaScript", "Rust"] as const) {
    const code = querySnippet(language, { endpoint: "http://x", table: "T\u202e", filter });
    assert.ok(!/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e]/.test(code), `${language}: ${JSON.stringify(code)}`);
  }
});

test("the code that the SDKs' suites run is what the console copies", () => {
  assert.deepEqual(stale(), [], "run: npm run code");
});

test("C# is as .NET's compiler reads it", () => {
  // No compiler runs here, so the text is compared.
  const draft = { partitionKey: "p", rowKey: 'r"', properties: [["A", { type: "Int64" as EdmType, text: "5" }], ["B", { type: "Double" as EdmType, text: "1" }], ["C", { type: "Double" as EdmType, text: "-Infinity" }], ["D", { type: "Guid" as EdmType, text: "7c9e6679-7425-40de-944b-e07fc1f90ae7" }], ["E", { type: "String" as EdmType, text: "\u2028" }]] as [string, { type: EdmType; text: string }][] };
  assert.equal(
    entitySnippet("C#", { endpoint: "http://x", table: "T", draft }),
    `using Azure.Data.Tables;

var table = new TableClient(Environment.GetEnvironmentVariable("AZURE_STORAGE_CONNECTION_STRING"), "T");
await table.UpsertEntityAsync(new TableEntity("p", "r\\"")
{
    ["A"] = 5L,
    ["B"] = 1d,
    ["C"] = double.NegativeInfinity,
    ["D"] = Guid.Parse("7c9e6679-7425-40de-944b-e07fc1f90ae7"),
    ["E"] = "\\u2028",
}, TableUpdateMode.Replace);`,
  );
});

test("a name that XML can't carry is decoded, and only if the document says so", () => {
  const document = xml.parse(`<R a="Encoded=&quot;true&quot;"><Name Encoded="true">a%2Fb%EF%BF%BF%26</Name><Name>a%2Fb</Name><Name>&lt;b&gt; &amp;amp;&#xD;</Name><Name Encoded="true" /></R>`);
  assert.deepEqual(document.children.map(({ text }) => text), ["a/b\uffff&", "a%2Fb", "<b> &amp;\r", ""]);
});

test("the path of a blob is the same to a browser, whatever its name", () => {
  for (const name of ["a b", "..", ".", "a/../../b", "a/", "/", "//", "%2e%2e", "100%", "?#", "it's(1)*!", "é\u202e\uffff", "[1-3]{a,b}"]) {
    const path = blobPath("box", name);
    const read = new URL(`http://x/account/${path}?sig=1`);
    assert.equal(decodeURIComponent(read.pathname), `/account/box/${name}`, path);
    assert.equal(read.search, "?sig=1");
    assert.ok(/^[\w%./~-]+$/.test(path), path);
  }
  assert.equal(blobPath("box", "a/b.txt"), "box/a/b.txt");
});

test("a blob is saved under a name that is one file, and no option", () => {
  for (const [name, expected] of [
    ["2024/may/ä b.txt", "ä b.txt"],
    ["..", "blob"],
    ["a/../", "blob"],
    ["-rf", "rf"],
    [".bashrc", "bashrc"],
    ["a\u0000b\u202e/x:y*?.txt", "x_y__.txt"],
    ["con\"sole'$HOME`x`", "con_sole__HOME_x_"],
  ] as const)
    assert.equal(fileName(name), expected, name);
  assert.equal(fileName("x".repeat(1024)).length, 100);
});

test("code for a blob has no character that is not seen, and quotes what could end a text early", () => {
  const name = `it's "x" $HOME \`y\` \u202e\u001b\u2028.txt`;
  for (const language of LANGUAGES) {
    const code = blobSnippet(language, { endpoint: "http://x", container: "box", name, snapshot: "2026-01-01T00:00:00.0000000Z" });
    assert.ok(!/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e]/.test(code), `${language}: ${JSON.stringify(code)}`);
    assert.ok(/snapshot/i.test(code), code);
  }
  assert.ok(blobSnippet("curl", { endpoint: "http://x", container: "box", name }).includes("'http://x/box/it%27s%20%22x%22%20%24HOME%20%60y%60"));
});

test("pictures are known by their bytes, with their size", () => {
  const bytes = (...parts: (string | number[])[]): Uint8Array => Uint8Array.from(parts.flatMap((part) => (typeof part === "string" ? [...part].map((c) => c.charCodeAt(0)) : part)));
  const cases: [string, Uint8Array, string | undefined][] = [
    ["png", bytes("\x89PNG\r\n\x1a\n", [0, 0, 0, 13], "IHDR", [0, 0, 1, 0, 0, 0, 0, 2]), "image/png 256 2"],
    ["gif", bytes("GIF89a", [4, 1, 3, 0]), "image/gif 260 3"],
    ["jpeg", bytes([255, 216, 255, 224, 0, 4, 1, 2, 255, 255, 194, 0, 17, 8, 0, 5, 1, 0, 3]), "image/jpeg 256 5"],
    ["webp, lossy", bytes("RIFF", [0, 0, 0, 0], "WEBPVP8 ", [0, 0, 0, 0, 0, 0, 0, 157, 1, 42, 7, 0, 9, 0]), "image/webp 7 9"],
    ["webp, lossless", bytes("RIFF", [0, 0, 0, 0], "WEBPVP8L", [0, 0, 0, 0, 47, 6, 0, 2, 0, 0, 0, 0, 0, 0]), "image/webp 7 9"],
    ["webp, more", bytes("RIFF", [0, 0, 0, 0], "WEBPVP8X", [0, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 8, 0, 0]), "image/webp 7 9"],
    ["svg", bytes("<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'></svg>"), undefined],
    ["html that begins like a picture", bytes("GIF8<script>"), undefined],
    ["jpeg without a frame", bytes([255, 216, 255, 224, 0, 4, 1, 2]), undefined],
    ["jpeg whose segment goes on for ever", bytes([255, 216, 255, 224, 0, 0, 255, 224, 0, 0, 0, 0, 0, 0, 0]), undefined],
    ["cut off", bytes("\x89PNG\r\n"), undefined],
    ["nothing", bytes(), undefined],
  ];
  for (const [name, content, expected] of cases) {
    const found = pictureOf(content);
    assert.equal(found && `${found.type} ${found.width} ${found.height}`, expected, name);
  }
});

test("a text may be cut in a character, and bytes are no text", () => {
  const utf8 = new TextEncoder().encode("Zürich 🎵");
  assert.equal(textOf(utf8), "Zürich 🎵");
  assert.equal(textOf(utf8.subarray(0, utf8.length - 2)), "Zürich ");
  assert.equal(textOf(Uint8Array.from([0xff, 0xfe, 0x41, 0, 0x42, 0])), "AB");
  assert.equal(textOf(Uint8Array.from([0x41, 0])), undefined);
  assert.equal(textOf(Uint8Array.from([0x41, 0xff, 0xfe])), undefined);
  assert.equal(hexOf(Uint8Array.from([0, 65, 255])), `00000000  00 41 ff${" ".repeat(39)}  ·A·`);
});

test("a character that is not seen is shown as its number", () => {
  assert.deepEqual(pieces("a\u202eb\n").map(({ text, isUnseen }) => (isUnseen ? `<${text}>` : text)), ["a", "<U+202E>", "b", "<U+000A>"]);
  assert.deepEqual(pieces("plain ä 🎵"), [{ text: "plain ä 🎵", isUnseen: false }]);
});

console.log(`${passed} passed`);

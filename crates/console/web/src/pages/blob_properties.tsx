// Properties of a blob, and what of them can be changed: headers of the content, metadata, tags, tier.

import { useEffect, useState } from "preact/hooks";
import { type BlobProperties, type BlobRef, CONTENT_HEADERS, setContentHeaders, setMetadata, setTags, setTier, tags, TIERS } from "../api/blob.ts";
import { words } from "../api/http.ts";
import { bytes, count, moment } from "../lib/format.ts";
import { toast } from "../ui/dialog.tsx";
import { Button, Failure, Field, Notice, useLoaded } from "../ui/parts.tsx";
import { leaseWords } from "./containers.tsx";

interface PartProps {
  blob: BlobRef;
  value: BlobProperties;
  again: () => void;
}

export function Properties({ blob, value, again }: PartProps) {
  const facts: [string, string][] = [
    ["Type", value.type.replace("Blob", " blob")],
    ["Size", `${bytes(value.size)}${value.size >= 1024 ? ` (${count(value.size)} bytes)` : ""}`],
    ["Modified", moment(value.modified)],
    ["Created", moment(value.created)],
    ["ETag", value.etag],
    ["MD5 of the content", value.md5],
    ["Tier", value.tier && `${value.tier}${value.isInferred ? ", by default" : ""}${value.archive ? `, ${value.archive}` : ""}`],
    ["Lease", value.lease.state && leaseWords(value.lease)],
    ...value.more,
  ];
  return (
    <div class="columns">
      <div class="stack">
        <section class="card">
          <dl class="facts padded">
            {facts
              .filter(([, text]) => text)
              .map(([name, text]) => (
                <div key={name} class="fact">
                  <dt>{name}</dt>
                  <dd class="mono">{text}</dd>
                </div>
              ))}
          </dl>
        </section>
        {value.type === "BlockBlob" && !blob.snapshot && <Tier blob={blob} value={value} again={again} />}
        <Headers blob={blob} value={value} again={again} />
      </div>
      <div class="stack">
        <Pairs
          title="Metadata"
          hint="Sent with the blob as headers. Blobs are not found by it."
          kind="name"
          pairs={value.metadata}
          fault={metadataFault}
          {...(!blob.snapshot && { save: (pairs) => setMetadata(blob, pairs, value.etag) })}
          saved={again}
        />
        <TagPairs blob={blob} />
      </div>
    </div>
  );
}

function Tier({ blob, value, again }: PartProps) {
  const [tier, choose] = useState(value.tier);
  const [error, fail] = useState<unknown>();
  const save = async (): Promise<void> => {
    fail(undefined);
    try {
      await setTier(blob, tier);
      toast(`The tier is ${tier}.`);
      again();
    } catch (wrong) {
      fail(wrong);
    }
  };
  return (
    <section class="card form">
      <div class="with-button">
        <Field label="Tier">
          {(ids) => (
            <select {...ids} value={tier} onChange={(event) => choose(event.currentTarget.value)}>
              {TIERS.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          )}
        </Field>
        <Button disabled={tier === value.tier && !value.isInferred} onClick={() => void save()}>
          Set the tier
        </Button>
      </div>
      {tier === "Archive" && <p class="hint">An archived blob can't be read until it is in another tier again.</p>}
      {error !== undefined && <Notice>{words(error)}</Notice>}
    </section>
  );
}

function Headers({ blob, value, again }: PartProps) {
  const [content, set] = useState(value.content);
  const [error, fail] = useState<unknown>();
  const [isBusy, busy] = useState(false);
  const isChanged = CONTENT_HEADERS.some((name) => content[name] !== value.content[name]);
  const isWrong = CONTENT_HEADERS.some((name) => headerFault(content[name]));
  const save = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (isWrong) return;
    busy(true);
    fail(undefined);
    try {
      await setContentHeaders(blob, { ...value, content });
      toast("The headers were saved.");
      again();
    } catch (wrong) {
      fail(wrong);
    }
    busy(false);
  };
  return (
    <form class="card form" onSubmit={save}>
      <h2>HTTP headers</h2>
      {CONTENT_HEADERS.map((name) => (
        <Field key={name} label={name} fault={headerFault(content[name])}>
          {(ids) => <input {...ids} class="mono" value={content[name]} readOnly={!!blob.snapshot} spellcheck={false} autocomplete="off" onInput={(event) => set({ ...content, [name]: event.currentTarget.value })} />}
        </Field>
      ))}
      {error !== undefined && <Notice>{words(error)}</Notice>}
      {!blob.snapshot && (
        <div class="actions">
          <Button kind="primary" submit busy={isBusy} disabled={!isChanged || isWrong}>
            Save the headers
          </Button>
        </div>
      )}
    </form>
  );
}

/** What a browser can send in a header. */
const headerFault = (text: string): string | undefined => (/^[\x20-\x7e]*$/.test(text) ? undefined : "Only letters, digits and signs of ASCII.");

function metadataFault([name, value]: [string, string]): string | undefined {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) return "A name has letters, digits and underscores, and begins with no digit.";
  return headerFault(value);
}

function tagFault([key, value]: [string, string]): string | undefined {
  if (!key || key.length > 128) return "A key has 1 to 128 characters.";
  if (value.length > 256) return "A value has at most 256 characters.";
  return /^[A-Za-z0-9 +\-./:=_]*$/.test(key + value) ? undefined : "Letters, digits, spaces and + - . / : = _ only.";
}

function TagPairs({ blob }: { blob: BlobRef }) {
  const { value, error, again } = useLoaded(() => tags(blob), [blob.container, blob.name, blob.snapshot]);
  if (error) return <Failure error={error} retry={again} />;
  return <Pairs title="Tags" hint="Up to ten. Blobs can be found by them." kind="key" most={10} pairs={value ?? []} fault={tagFault} {...(!blob.snapshot && { save: (pairs) => setTags(blob, pairs) })} saved={again} />;
}

interface PairsProps {
  title: string;
  hint: string;
  kind: "name" | "key";
  most?: number;
  pairs: [string, string][];
  fault: (pair: [string, string]) => string | undefined;
  /** None if it can't be changed. */
  save?: (pairs: [string, string][]) => Promise<void>;
  saved: () => void;
}

function Pairs({ title, hint, kind, most = 200, pairs, fault, save, saved }: PairsProps) {
  const [list, set] = useState(pairs);
  const [error, fail] = useState<unknown>();
  const [isBusy, busy] = useState(false);
  const written = JSON.stringify(pairs);
  useEffect(() => set(pairs), [written]);
  const one = title.toLowerCase();
  const change = (index: number, pair: [string, string]): void => set(list.map((old, at) => (at === index ? pair : old)));
  const faults = list.map((pair, index) => fault(pair) ?? (list.findIndex(([name]) => same(kind, name, pair[0])) < index ? `This ${kind} is there twice.` : undefined));
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (!save || faults.some(Boolean)) return;
    busy(true);
    fail(undefined);
    try {
      await save(list);
      toast(`The ${one} ${kind === "name" ? "was" : "were"} saved.`);
      saved();
    } catch (wrong) {
      fail(wrong);
    }
    busy(false);
  };
  return (
    <form class="card form" onSubmit={submit}>
      <h2>{title}</h2>
      <p class="hint">{hint}</p>
      {list.map((pair, index) => (
        <div key={index} class="pair-row">
          <input class="mono" aria-label={`The ${kind} of ${one} ${index + 1}`} value={pair[0]} readOnly={!save} spellcheck={false} autocomplete="off" aria-invalid={!!faults[index]} onInput={(event) => change(index, [event.currentTarget.value, pair[1]])} />
          <input class="mono" aria-label={`The value of ${one} ${index + 1}`} value={pair[1]} readOnly={!save} spellcheck={false} autocomplete="off" aria-invalid={!!faults[index]} onInput={(event) => change(index, [pair[0], event.currentTarget.value])} />
          {save && <Button kind="quiet" icon="trash" label={`Remove ${one} ${index + 1}`} onClick={() => set(list.filter((_, at) => at !== index))} />}
          {faults[index] && (pair[0] || pair[1]) && <p class="fault">{faults[index]}</p>}
        </div>
      ))}
      {!list.length && <p class="faint">None.</p>}
      {error !== undefined && <Notice>{words(error)}</Notice>}
      {save && (
        <div class="actions between">
          <Button icon="plus" disabled={list.length >= most} onClick={() => set([...list, ["", ""]])}>
            Add {one}
          </Button>
          <Button kind="primary" submit busy={isBusy} disabled={JSON.stringify(list) === written || faults.some(Boolean)}>
            Save the {one}
          </Button>
        </div>
      )}
    </form>
  );
}

/** Names of metadata are equal without case, keys of tags are not. */
const same = (kind: "name" | "key", a: string, b: string): boolean => (kind === "name" ? a.toLowerCase() === b.toLowerCase() : a === b);

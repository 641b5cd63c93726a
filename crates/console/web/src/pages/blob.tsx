// One blob, or one of its snapshots: what it is, what is in it, who holds it; download, snapshot, delete.

import { useState } from "preact/hooks";
import { type BlobProperties, blobProperties, type BlobRef, contentPath, deleteBlob, takeSnapshot } from "../api/blob.ts";
import { listSnapshots } from "../api/blobs.ts";
import { ApiError, words } from "../api/http.ts";
import { session } from "../api/session.ts";
import { bytes, moment } from "../lib/format.ts";
import { go, href, replace, route } from "../lib/router.ts";
import { blobSnippet, fileName } from "../model/blob_code.ts";
import { LANGUAGES, type Language } from "../model/snippets.ts";
import { Confirm, copyText, openDialog, toast } from "../ui/dialog.tsx";
import { Icon } from "../ui/icons.tsx";
import { Name } from "../ui/name.tsx";
import { Button, Empty, Failure, Tabs, useLoaded } from "../ui/parts.tsx";
import { Preview } from "./blob_preview.tsx";
import { Properties } from "./blob_properties.tsx";
import { DeleteWords, Folders } from "./container.tsx";
import { LeaseCard } from "./lease.tsx";
import { SasMaker } from "./sas_maker.tsx";

const TABS = [
  ["preview", "Preview"],
  ["properties", "Properties"],
  ["lease", "Lease"],
  ["snapshots", "Snapshots"],
  ["sas", "SAS"],
  ["code", "Code"],
] as const;
type Tab = (typeof TABS)[number][0];

export function BlobPage({ container, name, snapshot }: { container: string; name: string; snapshot: string }) {
  const blob: BlobRef = { container, name, snapshot };
  const { value, error, isLoading, again } = useLoaded(() => blobProperties(blob), [container, name, snapshot]);
  const isMissing = error instanceof ApiError && error.status === 404;
  const tabs = TABS.filter(([tab]) => (tab !== "sas" || session.value?.rights === "owner") && (!snapshot || !["lease", "snapshots", "sas"].includes(tab)));
  const asked = route.value.query.get("tab");
  const tab = tabs.find(([known]) => known === asked)?.[0] ?? "preview";
  const folder = name.slice(0, name.lastIndexOf("/") + 1);
  const remove = (): void =>
    openDialog(() => (
      <Confirm
        title="Delete this blob?"
        verb="Delete"
        what={<DeleteWords name={name} snapshot={snapshot} />}
        act={async () => {
          await deleteBlob(blob);
          toast(snapshot ? "The snapshot was deleted." : "The blob was deleted.");
          go(["blobs", container], { prefix: folder });
        }}
      />
    ));
  const freeze = async (): Promise<void> => {
    try {
      toast(`The snapshot of ${moment(await takeSnapshot(blob))} was taken.`);
      replace(["blobs", container], { blob: name, tab: "snapshots" });
      again();
    } catch (wrong) {
      toast(words(wrong), "error");
    }
  };
  return (
    <div class="page">
      <header class="page-head">
        <div>
          <p class="crumbs">
            <a href={href(["blobs"])}>Blobs</a> / <Folders container={container} prefix={folder} all />
          </p>
          <h1 class="mono">
            <Name text={name.slice(folder.length) || "/"} />
          </h1>
          <p class="lead">
            {snapshot && (
              <>
                snapshot of {moment(snapshot)}, <a href={href(["blobs", container], { blob: name })}>see the blob</a>,{" "}
              </>
            )}
            {value ? `${bytes(value.size)}, ${value.content["Content-Type"] || "without a type"}, modified ${moment(value.modified)}` : " "}
          </p>
        </div>
        <div class="actions">
          <Button kind="quiet" icon="refresh" label="Read again" busy={isLoading} onClick={again} />
          <Button kind="quiet" icon="trash" label={snapshot ? "Delete this snapshot" : "Delete this blob"} onClick={remove} />
          {!snapshot && (
            <Button icon="camera" onClick={() => void freeze()}>
              Take a snapshot
            </Button>
          )}
          <a class="button primary" href={contentPath(blob)} download={fileName(name)}>
            <Icon name="download" />
            <span>Download</span>
          </a>
        </div>
      </header>
      {isMissing ? (
        <Empty icon="blob" title="There is no such blob">
          <p>
            <a href={href(["blobs", container], { prefix: folder })}>See the blobs that there are.</a>
          </p>
        </Empty>
      ) : (
        <Failure error={error} retry={again} />
      )}
      {value && (
        <>
          <Tabs<Tab> label="Of the blob" tabs={tabs} chosen={tab} choose={(next) => replace(["blobs", container], { blob: name, snapshot, tab: next })} />
          <div role="tabpanel" aria-label={TABS.find(([known]) => known === tab)?.[1]}>
            <Panel key={value.etag} tab={tab} blob={blob} value={value} again={again} />
          </div>
        </>
      )}
    </div>
  );
}

function Panel({ tab, blob, value, again }: { tab: Tab; blob: BlobRef; value: BlobProperties; again: () => void }) {
  switch (tab) {
    case "preview":
      return <Preview blob={blob} value={value} />;
    case "properties":
      return <Properties blob={blob} value={value} again={again} />;
    case "lease":
      return (
        <div class="card form">
          <LeaseCard container={blob.container} blob={blob.name} />
        </div>
      );
    case "snapshots":
      return <Snapshots blob={blob} />;
    case "sas":
      return <SasMaker of={blob} />;
    case "code":
      return <Code blob={blob} />;
  }
}

function Snapshots({ blob: { container, name } }: { blob: BlobRef }) {
  const { value, error, again } = useLoaded(() => listSnapshots(container, name), [container, name]);
  const remove = (snapshot: string): void =>
    openDialog(() => (
      <Confirm
        title="Delete this snapshot?"
        verb="Delete"
        what={<DeleteWords name={name} snapshot={snapshot} />}
        act={async () => {
          await deleteBlob({ container, name, snapshot });
          toast("The snapshot was deleted.");
          again();
        }}
      />
    ));
  if (error) return <Failure error={error} retry={again} />;
  if (value?.length === 0)
    return (
      <Empty icon="camera" title="No snapshots">
        <p>A snapshot keeps the blob as it is now. It takes room only for what changes later.</p>
      </Empty>
    );
  return (
    <div class="card">
      <table class="list">
        <thead>
          <tr>
            <th scope="col">Taken</th>
            <th scope="col" class="number">
              Size
            </th>
            <th scope="col">
              <span class="hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {value?.map(({ snapshot, size, isDeleted, daysLeft }) => (
            <tr key={snapshot} class={isDeleted ? "gone" : ""}>
              <td>
                {isDeleted ? (
                  <>
                    {moment(snapshot)} <span class="chip">deleted, gone in {daysLeft || "0"} days</span>
                  </>
                ) : (
                  <a href={href(["blobs", container], { blob: name, snapshot })}>{moment(snapshot)}</a>
                )}
              </td>
              <td class="number mono">{bytes(size)}</td>
              <td class="end">{!isDeleted && <Button kind="quiet" icon="trash" label={`Delete the snapshot of ${snapshot}`} onClick={() => remove(snapshot)} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Code({ blob }: { blob: BlobRef }) {
  const [language, speak] = useState<Language>("curl");
  const endpoint = (session.value?.endpoints.blob ?? "").replace(/\/$/, "");
  const snippet = blobSnippet(language, { endpoint, ...blob });
  return (
    <div class="card form">
      <div class="segments" role="group" aria-label="Language">
        {LANGUAGES.map((one) => (
          <Button key={one} kind="quiet" pressed={one === language} onClick={() => speak(one)}>
            {one}
          </Button>
        ))}
      </div>
      <pre class="code" tabIndex={0} aria-label={`The download as ${language}`}>
        {snippet}
      </pre>
      <Button icon="copy" onClick={() => void copyText(snippet, `The download as ${language}`)}>
        Copy
      </Button>
    </div>
  );
}

// One container: its blobs, browsed like folders, page by page; upload, delete, undelete.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { contentPath, deleteBlob, undeleteBlob } from "../api/blob.ts";
import { type BlobInfo, type BlobPage, containerState, listBlobs } from "../api/blobs.ts";
import { ApiError, words } from "../api/http.ts";
import { session } from "../api/session.ts";
import { bytes, moment } from "../lib/format.ts";
import { go, href, route } from "../lib/router.ts";
import { fileName } from "../model/blob_code.ts";
import { Confirm, Dialog, openDialog, toast } from "../ui/dialog.tsx";
import { Icon } from "../ui/icons.tsx";
import { Name } from "../ui/name.tsx";
import { Button, Empty, Failure, Menu, useLoaded } from "../ui/parts.tsx";
import { ACCESS, DeleteContainer, leaseWords } from "./containers.tsx";
import { LeaseCard } from "./lease.tsx";
import { UploadButton, Uploads, useDrop } from "./uploads.tsx";

/** Blobs and folders of a page. */
const PAGE = 200;

interface Place {
  prefix: string;
  marker: string;
  snapshots: boolean;
  deleted: boolean;
}

function placeOf(query: URLSearchParams): Place {
  const show = (query.get("show") ?? "").split(",");
  return { prefix: query.get("prefix") ?? "", marker: query.get("marker") ?? "", snapshots: show.includes("snapshots"), deleted: show.includes("deleted") };
}

const queryOf = ({ prefix, marker, snapshots, deleted }: Place): Record<string, string> => ({ prefix, marker, show: [snapshots && "snapshots", deleted && "deleted"].filter(Boolean).join(",") });

/** A name without the folder that is shown. A blob may be called like its folder, with nothing behind the slash. */
const inFolder = (name: string, prefix: string): string => name.slice(prefix.lastIndexOf("/") + 1) || "/";

export function ContainerPage({ name }: { name: string }) {
  const place = placeOf(route.value.query);
  const { prefix, marker, snapshots, deleted } = place;
  const { value, error, isLoading, again } = useLoaded<BlobPage>(() => listBlobs({ container: name, prefix, marker, byFolder: !snapshots, snapshots, deleted, most: PAGE }), [name, prefix, marker, snapshots, deleted]);
  const state = useLoaded(() => containerState(name), [name]);
  const isMissing = error instanceof ApiError && error.code === "ContainerNotFound";
  const show = (change: Partial<Place>): void => go(["blobs", name], queryOf({ ...place, marker: "", ...change }));
  const drop = useDrop(name, prefix);
  const lease = (): void =>
    openDialog(() => (
      <Dialog title={`Lease of ${name}`}>
        <LeaseCard container={name} changed={state.again} />
      </Dialog>
    ));
  return (
    <div class={`page drop-page${drop.isOver ? " over" : ""}`} {...drop.on}>
      <header class="page-head">
        <div>
          <p class="crumbs">
            <a href={href(["blobs"])}>Blobs</a>
          </p>
          <h1 class="mono">{name}</h1>
          <p class="lead">{state.value ? `${ACCESS[state.value.access] ?? state.value.access}, lease: ${leaseWords(state.value.lease)}` : " "}</p>
        </div>
        <div class="actions">
          <Button kind="quiet" icon="refresh" label="Read again" busy={isLoading} onClick={again} />
          <Menu
            label="More"
            icon="more"
            kind="quiet"
            end
            items={[
              { label: "Lease", icon: "key", act: lease },
              ...(session.value?.rights === "owner" ? [{ label: "Policies and public access", icon: "key" as const, act: () => go(["access"], { tab: "policies", of: `blob/${name}` }) }] : []),
              { label: "Delete the container", icon: "trash", isDanger: true, act: () => openDialog(() => <DeleteContainer name={name} done={() => go(["blobs"])} />) },
            ]}
          />
          <UploadButton container={name} prefix={prefix} />
        </div>
      </header>
      <Uploads container={name} done={again} />
      <div class="browse-bar">
        <Folders container={name} prefix={prefix} />
        <PrefixBox key={prefix} prefix={prefix} choose={(next) => show({ prefix: next })} />
        <label class="option">
          <input type="checkbox" checked={snapshots} onChange={(event) => show({ snapshots: event.currentTarget.checked })} /> Snapshots
        </label>
        <label class="option">
          <input type="checkbox" checked={deleted} onChange={(event) => show({ deleted: event.currentTarget.checked })} /> Deleted
        </label>
      </div>
      {isMissing ? (
        <Empty icon="blob" title={`There is no container ${name}`}>
          <p>
            <a href={href(["blobs"])}>See the containers that there are.</a>
          </p>
        </Empty>
      ) : (
        <Failure error={error} retry={again} />
      )}
      {value?.entries.length === 0 && !marker && (
        <Empty icon="blob" title={prefix ? "Nothing begins like this" : `${name} is empty`}>
          <p>{prefix ? "No blob has a name that begins with what is in the box." : "Drop files here, or upload them with any Azure SDK."}</p>
        </Empty>
      )}
      {!!value?.entries.length && (
        <div class="card">
          <table class="list blobs">
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col" class="number">
                  Size
                </th>
                <th scope="col" class="wide-only">
                  Type
                </th>
                <th scope="col" class="wide-only">
                  Tier
                </th>
                <th scope="col" class="wide-only">
                  Lease
                </th>
                <th scope="col" class="wide-only">
                  Modified
                </th>
                <th scope="col">
                  <span class="hidden">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {value.entries.map((entry) =>
                "folder" in entry ? (
                  <tr key={`folder ${entry.folder}`}>
                    <td colSpan={7}>
                      <a class="mono strong entry" href={href(["blobs", name], queryOf({ ...place, prefix: entry.folder, marker: "" }))}>
                        <Icon name="folder" />
                        <Name text={inFolder(entry.folder, prefix)} />
                      </a>
                    </td>
                  </tr>
                ) : (
                  <BlobRow key={`${entry.blob.name} ${entry.blob.snapshot} ${entry.blob.isDeleted}`} container={name} blob={entry.blob} prefix={prefix} again={again} />
                ),
              )}
            </tbody>
          </table>
        </div>
      )}
      {(marker || value?.next) && (
        <nav class="actions between" aria-label="More of the list">
          <Button disabled={!marker} icon="back" onClick={() => show({})}>
            First page
          </Button>
          <Button disabled={!value?.next} icon="arrow" onClick={() => show({ marker: value?.next ?? "" })}>
            Next page
          </Button>
        </nav>
      )}
    </div>
  );
}

const TYPES: Record<string, string> = { BlockBlob: "block", AppendBlob: "append", PageBlob: "page" };

function BlobRow({ container, blob, prefix, again }: { container: string; blob: BlobInfo; prefix: string; again: () => void }) {
  const { name, snapshot, isDeleted, size, type, tier, lease, modified, contentType } = blob;
  const shown = <Name text={inFolder(name, prefix)} />;
  const remove = (): void =>
    openDialog(() => (
      <Confirm
        title="Delete this blob?"
        verb="Delete"
        what={<DeleteWords name={name} snapshot={snapshot} />}
        act={async () => {
          await deleteBlob({ container, name, snapshot });
          toast("The blob was deleted.");
          again();
        }}
      />
    ));
  const restore = async (): Promise<void> => {
    try {
      await undeleteBlob({ container, name });
      toast("The blob is back, with its snapshots.");
      again();
    } catch (wrong) {
      toast(words(wrong), "error");
    }
  };
  return (
    <tr class={isDeleted ? "gone" : ""}>
      <td>
        {isDeleted ? (
          <span class="mono entry">
            <Icon name="blob" />
            {shown}
          </span>
        ) : (
          <a class="mono entry" href={href(["blobs", container], { blob: name, snapshot })}>
            <Icon name="blob" />
            {shown}
          </a>
        )}{" "}
        {snapshot && <Chip>snapshot {moment(snapshot)}</Chip>} {isDeleted && <Chip>deleted, gone in {blob.daysLeft || "0"} days</Chip>}
      </td>
      <td class="number mono">{bytes(size)}</td>
      <td class="wide-only kind">
        {TYPES[type] ?? type} <span class="faint">{contentType}</span>
      </td>
      <td class="wide-only whole">{tier || "–"}</td>
      <td class="wide-only whole">{lease.state ? leaseWords(lease) : "–"}</td>
      <td class="wide-only whole">{moment(modified)}</td>
      <td class="end">
        {isDeleted ? (
          !snapshot && <Button kind="quiet" icon="undo" label={`Undelete ${name}`} onClick={() => void restore()} />
        ) : (
          <>
            <a class="button quiet only-icon" href={contentPath({ container, name, snapshot })} download={fileName(name)} aria-label={`Download ${name}`} title={`Download ${name}`}>
              <Icon name="download" />
            </a>
            <Button kind="quiet" icon="trash" label={`Delete ${name}`} onClick={remove} />
          </>
        )}
      </td>
    </tr>
  );
}

export const DeleteWords = ({ name, snapshot }: { name: string; snapshot?: string }) => (
  <>
    {snapshot ? "This snapshot of " : "The blob "}
    <strong class="mono">
      <Name text={name} />
    </strong>{" "}
    {snapshot ? "goes." : "goes, with its snapshots."} If soft delete is on, it can be restored for some days.
  </>
);

const Chip = ({ children }: { children: ComponentChildren }) => <span class="chip">{children}</span>;

/** The way to the folder that is shown. */
export function Folders({ container, prefix, all }: { container: string; prefix: string; all?: boolean }) {
  const parts = prefix.split("/").slice(0, -1);
  const up = parts.map((part, index) => ({ part, path: `${parts.slice(0, index + 1).join("/")}/` }));
  return (
    <nav class="folders mono" aria-label="Folders">
      <a href={href(["blobs", container])}>{all ? container : "/"}</a>
      {!all && " "}
      {up.map(({ part, path }) => (
        <span key={path}>
          {all && " / "}
          <a href={href(["blobs", container], { prefix: path })}>
            <Name text={part || "/"} />
          </a>
          {!all && " / "}
        </span>
      ))}
    </nav>
  );
}

function PrefixBox({ prefix, choose }: { prefix: string; choose: (prefix: string) => void }) {
  const [text, type] = useState(prefix);
  useEffect(() => type(prefix), [prefix]);
  return (
    <form
      class="prefix-box"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        choose(text);
      }}
    >
      <input class="mono" type="search" aria-label="Names that begin with" placeholder="Names that begin with…" value={text} spellcheck={false} autocomplete="off" maxLength={1024} onInput={(event) => type(event.currentTarget.value)} />
      <Button submit icon="search" label="Show" />
    </form>
  );
}

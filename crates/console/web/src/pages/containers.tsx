// The account's containers: list, create, delete.

import { type ContainerInfo, createContainer, deleteContainer, type LeaseState, listContainers } from "../api/blobs.ts";
import { moment } from "../lib/format.ts";
import { RemoveResource, type ResourceKind, ResourceList } from "./resources.tsx";

/** In words: who may read it without a key. */
export const ACCESS: Record<string, string> = { "": "private", blob: "blobs can be read by anyone", container: "can be listed and read by anyone" };

export const leaseWords = ({ state, duration }: LeaseState): string => (state === "leased" ? `leased${duration === "infinite" ? " for ever" : ""}` : state === "available" ? "none" : state);

const CONTAINERS: ResourceKind<ContainerInfo> = {
  noun: "container",
  title: "Blobs",
  path: "blobs",
  icon: "blob",
  list: listContainers,
  columns: [
    ["Public access", ({ access }) => (access ? (access === "blob" ? "blobs" : "list and blobs") : "none"), "text"],
    ["Lease", ({ lease }) => leaseWords(lease), "text"],
    ["Modified", ({ modified }) => moment(modified), "text"],
  ],
  mark: ({ access }) =>
    access && (
      <>
        {" "}
        <span class="chip bad">public</span>
      </>
    ),
  create: createContainer,
  hint: "3 to 63 small letters, digits and dashes, for example photos.",
  fault: nameFault,
  remove: deleteContainer,
  verb: "Delete",
  removed: "deleted",
  holds: "blobs",
};

function nameFault(name: string): string | undefined {
  if (name === "$web" || name === "$root") return undefined;
  if (/[A-Z]/.test(name)) return "Small letters only.";
  if (!/^[a-z0-9-]*$/.test(name)) return `Letters, digits and dashes only: ${/[^a-z0-9-]/.exec(name)?.[0]} is none of them.`;
  if (/^-|-$|--/.test(name)) return "Dashes stand alone, between letters or digits.";
  return name.length < 3 || name.length > 63 ? "A name has 3 to 63 characters." : undefined;
}

export const Containers = () => <ResourceList kind={CONTAINERS} />;

export const DeleteContainer = ({ name, done }: { name: string; done: () => void }) => <RemoveResource kind={CONTAINERS} name={name} done={done} />;

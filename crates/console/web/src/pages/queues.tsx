// The account's queues: list, create, delete.

import { createQueue, deleteQueue, listQueues, POISON, type QueueInfo } from "../api/queues.ts";
import { count, known } from "../lib/format.ts";
import { RemoveResource, type ResourceKind, ResourceList } from "./resources.tsx";

const QUEUES: ResourceKind<QueueInfo> = {
  noun: "queue",
  title: "Queues",
  path: "queues",
  icon: "queue",
  list: listQueues,
  columns: [["Messages, about", ({ approximate_messages }) => known(approximate_messages, count)]],
  mark: ({ name, approximate_messages }) =>
    name.endsWith(POISON) && (
      <>
        {" "}
        <span class={`chip${approximate_messages ? " bad" : ""}`}>poison</span>
      </>
    ),
  create: createQueue,
  hint: "3 to 63 small letters, digits and dashes, for example jobs.",
  fault: nameFault,
  remove: deleteQueue,
  verb: "Delete",
  removed: "deleted",
  holds: "messages",
};

function nameFault(name: string): string | undefined {
  if (/[A-Z]/.test(name)) return "Small letters only.";
  if (!/^[a-z0-9-]*$/.test(name)) return `Letters, digits and dashes only: ${/[^a-z0-9-]/.exec(name)?.[0]} is none of them.`;
  if (/^-|-$|--/.test(name)) return "Dashes stand alone, between letters or digits.";
  return name.length < 3 || name.length > 63 ? "A name has 3 to 63 characters." : undefined;
}

export const Queues = () => <ResourceList kind={QUEUES} />;

export const DeleteQueue = ({ name, done }: { name: string; done: () => void }) => <RemoveResource kind={QUEUES} name={name} done={done} />;

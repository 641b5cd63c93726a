// The account's tables: list, create, drop.

import { createTable, dropTable, listTables, type TableInfo } from "../api/tables.ts";
import { bytes, count, known } from "../lib/format.ts";
import { RemoveResource, type ResourceKind, ResourceList } from "./resources.tsx";

const TABLES: ResourceKind<TableInfo> = {
  noun: "table",
  title: "Tables",
  path: "tables",
  icon: "table",
  list: listTables,
  columns: [
    ["Entities, about", ({ estimated_rows }) => known(estimated_rows, count)],
    ["Size, about", ({ estimated_bytes }) => known(estimated_bytes, bytes)],
  ],
  create: createTable,
  hint: "3 to 63 letters and digits, for example Books.",
  fault: nameFault,
  remove: dropTable,
  verb: "Drop",
  removed: "dropped",
  holds: "entities",
};

function nameFault(name: string): string | undefined {
  if (!/^[A-Za-z]/.test(name)) return "The first character is a letter.";
  if (!/^[A-Za-z0-9]*$/.test(name)) return `Letters and digits only: ${/[^A-Za-z0-9]/.exec(name)?.[0]} is neither.`;
  if (name.length < 3 || name.length > 63) return "A name has 3 to 63 characters.";
  return name.toLowerCase() === "tables" ? "The service keeps this name for itself." : undefined;
}

export const Tables = () => <ResourceList kind={TABLES} />;

export const DropTable = ({ name, done }: { name: string; done: () => void }) => <RemoveResource kind={TABLES} name={name} done={done} />;

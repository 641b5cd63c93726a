// The letters of permissions, in the order in which tokens have them.

export interface Letter {
  letter: string;
  words: string;
}

const of = (...pairs: [string, string][]): Letter[] => pairs.map(([letter, words]) => ({ letter, words }));

export const LETTERS = {
  table: of(["r", "read entities"], ["a", "add entities"], ["u", "update entities"], ["d", "delete entities"]),
  queue: of(["r", "peek and read metadata"], ["a", "add messages"], ["u", "update messages"], ["p", "take and delete messages"]),
  container: of(["r", "read blobs"], ["a", "append"], ["c", "create blobs"], ["w", "write blobs"], ["d", "delete blobs"], ["l", "list blobs"], ["t", "read and write tags"], ["f", "find by tags"]),
  blob: of(["r", "read it"], ["a", "append"], ["c", "create it"], ["w", "write it"], ["d", "delete it"], ["t", "read and write tags"]),
  account: of(["r", "read"], ["w", "write"], ["d", "delete"], ["l", "list"], ["a", "add"], ["c", "create"], ["u", "update"], ["p", "process messages"], ["t", "tags"], ["f", "find by tags"]),
};

export const SERVICES: Letter[] = of(["b", "blobs"], ["q", "queues"], ["t", "tables"]);
export const RESOURCE_TYPES: Letter[] = of(["s", "the service: properties, lists"], ["c", "containers: tables, queues and containers themselves"], ["o", "objects: entities, messages and blobs"]);

/** All letters of stored policies in their order, also those that are not offered here: they stay if they are there. */
export const POLICY_ORDER = { table: "raud", queue: "raup", blob: "racwdxyltfmeopi" };

/** The chosen letters in their order. */
export const joined = (letters: Letter[], chosen: Set<string>): string =>
  letters
    .map(({ letter }) => letter)
    .filter((letter) => chosen.has(letter))
    .join("");

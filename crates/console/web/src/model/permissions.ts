// The letters of permissions, in the order in which tokens have them.

export interface Letter {
  letter: string;
  words: string;
}

const of = (...pairs: [string, string][]): Letter[] => pairs.map(([letter, words]) => ({ letter, words }));

export const LETTERS = {
  table: of(["r", "read entities"], ["a", "add entities"], ["u", "update entities"], ["d", "delete entities"]),
  queue: of(["r", "peek and read metadata"], ["a", "add messages"], ["u", "update messages"], ["p", "take and delete messages"]),
  account: of(["r", "read"], ["w", "write"], ["d", "delete"], ["l", "list"], ["a", "add"], ["c", "create"], ["u", "update"], ["p", "process messages"]),
};

export const SERVICES: Letter[] = of(["q", "queues"], ["t", "tables"]);
export const RESOURCE_TYPES: Letter[] = of(["s", "the service: properties, lists"], ["c", "containers: tables and queues themselves"], ["o", "objects: entities and messages"]);

/** The chosen letters in their order. */
export const joined = (letters: Letter[], chosen: Set<string>): string =>
  letters
    .map(({ letter }) => letter)
    .filter((letter) => chosen.has(letter))
    .join("");

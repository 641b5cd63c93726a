// The rows of a query, page by page. Tokens of all pages that were met are kept, rows only of the latest few, so a table of
// millions can be scrolled in bounded memory: a page that was dropped is read again from its token.

import { signal } from "@preact/signals";
import { type Continuation, type Explained, type Query, queryPage } from "../api/tables.ts";
import { type EdmType, keyOf, namesOf, type Raw, SYSTEM, valueOf } from "../model/edm.ts";
import type { Seen } from "../filter/complete.ts";

interface PageSlot {
  from: Continuation | undefined;
  first: number;
  count: number;
  rows?: Raw[];
  used: number;
}

/** About 60,000 rows of a kilobyte are as much as a tab should hold. */
const PAGES_HELD = 60;
const PAGE_ROWS = 1000;
const AHEAD = 300;

export interface Totals {
  pages: number;
  examined: number;
  returned: number;
  serverMs: number;
  ms: number;
  last?: Explained;
  azureRequests: number;
  azureSeconds: number;
}

export class Rows {
  /** Rows found so far; more may follow. */
  readonly known = signal(0);
  readonly isComplete = signal(false);
  readonly isLoading = signal(false);
  readonly error = signal<unknown>(undefined);
  readonly columns = signal<string[]>(["PartitionKey", "RowKey", "Timestamp"]);
  readonly totals = signal<Totals>({ pages: 0, examined: 0, returned: 0, serverMs: 0, ms: 0, azureRequests: 0, azureSeconds: 0 });
  /** Grows whenever rows arrive or go. */
  readonly version = signal(0);
  /** The row that a long walk is heading for, while it lasts. */
  readonly goal = signal<number | undefined>(undefined);
  readonly seen: Seen = new Map([
    ["PartitionKey", new Set<EdmType>(["String"])],
    ["RowKey", new Set<EdmType>(["String"])],
    ["Timestamp", new Set<EdmType>(["DateTime"])],
  ]);

  private pages: PageSlot[] = [];
  private next: Continuation | undefined;
  private reading = false;
  private wanted = 0;
  private tick = 0;
  private again = new Map<number, Promise<void>>();
  private readonly abort = new AbortController();

  constructor(readonly query: Query) {
    void this.extend(1);
  }

  stop(): void {
    this.abort.abort();
  }

  row(index: number): Raw | undefined {
    const slot = this.slotOf(index);
    if (!slot) return undefined;
    slot.used = ++this.tick;
    return slot.rows?.[index - slot.first];
  }

  /** Asks for the rows of a window: reads on if it is beyond what is known, or again what was dropped. */
  need(first: number, last: number): void {
    const known = this.known.peek();
    // The next page is asked for before the last row is in view.
    if (last + AHEAD >= known && !this.isComplete.peek() && !this.error.peek()) void this.extend(Math.max(last, known) + 1);
    else this.wanted = 0;
    for (let index = first; index <= Math.min(last, this.known.peek() - 1); ) {
      const slot = this.slotOf(index);
      if (!slot) return;
      if (!slot.rows) void this.reload(slot);
      index = slot.first + slot.count;
    }
  }

  /** Rows that are in memory, for "select all". */
  held(): Raw[] {
    return this.pages.flatMap((slot) => slot.rows ?? []);
  }

  remove(keys: Set<string>): void {
    for (const slot of this.pages) {
      if (!slot.rows) continue;
      slot.rows = slot.rows.filter((raw) => !keys.has(keyOf(raw)));
    }
    this.renumber();
  }

  put(raw: Raw): void {
    for (const slot of this.pages) {
      const at = slot.rows?.findIndex((row) => keyOf(row) === keyOf(raw)) ?? -1;
      if (slot.rows && at >= 0) slot.rows[at] = raw;
    }
    this.note([raw]);
    this.version.value += 1;
  }

  private slotOf(index: number): PageSlot | undefined {
    let [low, high] = [0, this.pages.length - 1];
    while (low <= high) {
      const middle = (low + high) >> 1;
      const slot = this.pages[middle] as PageSlot;
      if (index < slot.first) high = middle - 1;
      else if (index >= slot.first + slot.count) low = middle + 1;
      else return slot;
    }
    return undefined;
  }

  private async extend(target: number): Promise<void> {
    this.wanted = target;
    if (this.reading || this.isComplete.peek()) return;
    this.reading = true;
    this.isLoading.value = true;
    this.error.value = undefined;
    try {
      do {
        const isFar = this.wanted - this.known.peek() > 5 * PAGE_ROWS;
        this.goal.value = isFar ? this.wanted : undefined;
        const slot: PageSlot = { from: this.next, first: this.known.peek(), count: 0, used: ++this.tick };
        // On the way to a far row only keys are read: the rows are read when they are shown.
        const select = isFar ? "PartitionKey,RowKey" : this.query.select;
        const page = await queryPage({ ...this.query, ...(select && { select }), ...(this.next && { from: this.next }) }, this.abort.signal);
        slot.count = page.rows.length;
        if (!isFar) {
          slot.rows = page.rows;
          this.note(page.rows);
        }
        if (slot.count) this.pages.push(slot);
        this.next = page.next;
        this.add(page.ms, page.explained, slot.count);
        this.known.value += slot.count;
        this.isComplete.value = !page.next || (!!this.query.top && this.known.peek() >= this.query.top);
        this.trim();
        this.version.value += 1;
      } while (!this.isComplete.peek() && this.known.peek() < this.wanted);
    } catch (error) {
      if (!this.abort.signal.aborted) this.error.value = error;
    } finally {
      this.reading = false;
      this.wanted = 0;
      this.isLoading.value = false;
      this.goal.value = undefined;
    }
  }

  /** Stops after the page that is under way. */
  pause(): void {
    this.wanted = 0;
  }

  /** Goes on after a pause or an error. */
  resume(): void {
    void this.extend(this.known.peek() + 1);
  }

  /** A page of keys may be several pages of whole rows, so this reads on until the slot is full. */
  private reload(slot: PageSlot): Promise<void> {
    const running = this.again.get(slot.first);
    if (running) return running;
    const work = (async () => {
      try {
        const rows: Raw[] = [];
        let from = slot.from;
        do {
          const page = await queryPage({ ...this.query, top: slot.count - rows.length, ...(from && { from }) }, this.abort.signal);
          rows.push(...page.rows);
          from = page.next;
        } while (from && rows.length < slot.count);
        slot.rows = rows;
        slot.used = ++this.tick;
        this.note(rows);
        if (rows.length < slot.count) this.renumber();
        this.trim();
        this.version.value += 1;
      } catch (error) {
        if (!this.abort.signal.aborted) this.error.value = error;
      } finally {
        this.again.delete(slot.first);
      }
    })();
    this.again.set(slot.first, work);
    return work;
  }

  private renumber(): void {
    let first = 0;
    for (const slot of this.pages) {
      slot.first = first;
      if (slot.rows) slot.count = slot.rows.length;
      first += slot.count;
    }
    this.pages = this.pages.filter((slot) => slot.count > 0);
    this.known.value = first;
    this.version.value += 1;
  }

  private trim(): void {
    const held = this.pages.filter((slot) => slot.rows);
    if (held.length <= PAGES_HELD) return;
    held.sort((a, b) => a.used - b.used);
    for (const slot of held.slice(0, held.length - PAGES_HELD)) delete slot.rows;
  }

  /** Learns names and types. Columns keep the order in which they were first seen. */
  private note(rows: Raw[]): void {
    const found: string[] = [];
    for (const raw of rows) {
      for (const name of namesOf(raw)) {
        let types = this.seen.get(name);
        if (!types) {
          this.seen.set(name, (types = new Set()));
          found.push(name);
        }
        if (types.size === 0 || !SYSTEM.includes(name)) {
          const value = types.size < 8 ? valueOf(raw, name) : undefined;
          if (value) types.add(value.type);
        }
      }
    }
    // What people wrote stands before what the service adds.
    if (found.length) this.columns.value = [...this.columns.peek().filter((name) => name !== "Timestamp"), ...found, "Timestamp"];
  }

  private add(ms: number, explained: Explained | undefined, returned: number): void {
    const before = this.totals.peek();
    this.totals.value = {
      pages: before.pages + 1,
      examined: before.examined + (explained?.examined ?? 0),
      returned: before.returned + returned,
      serverMs: before.serverMs + (explained?.ms ?? 0),
      ms: before.ms + ms,
      azureRequests: before.azureRequests + (explained?.azure?.requests ?? 0),
      azureSeconds: before.azureSeconds + (explained?.azure?.seconds_at_targets ?? 0),
      ...(explained ? { last: explained } : before.last && { last: before.last }),
    };
  }
}

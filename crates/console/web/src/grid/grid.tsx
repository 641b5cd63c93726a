// The grid of a query's rows: only what is in view is in the document. One tab stop; arrows move the active cell.

import { type Signal, useSignal } from "@preact/signals";
import type { JSX, TargetedKeyboardEvent, TargetedMouseEvent, TargetedPointerEvent } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { Seen } from "../filter/complete.ts";
import { type EdmType, keyOf, type Raw, valueOf } from "../model/edm.ts";
import { count } from "../lib/format.ts";
import { copyText } from "../ui/dialog.tsx";
import { TypeBadge } from "../ui/parts.tsx";
import type { Rows } from "./rows.ts";
import { Scroll } from "./scroll.ts";

const ROW_HEIGHT = 28;
const CHECK_WIDTH = 36;
const NUMBER_TYPES = new Set(["Int32", "Int64", "Double"]);

interface GridProps {
  rows: Rows;
  label: string;
  /** Rows that the table probably has, if the server knows and nothing is filtered. */
  estimate: number;
  columns: string[];
  widths: Signal<Record<string, number>>;
  selection: Signal<Map<string, Raw>>;
  open: (raw: Raw) => void;
  remove: () => void;
}

const USUAL: Record<EdmType, number> = { String: 170, Int32: 104, Int64: 150, Double: 120, Boolean: 96, DateTime: 186, Guid: 300, Binary: 200 };

/** As it was dragged, or what its type usually takes; the name and the badge must fit as well. */
function widthOf(widths: Record<string, number>, name: string, seen: Seen): number {
  const types = [...(seen.get(name) ?? [])];
  if (name === "Timestamp") return widths[name] ?? 236;
  return widths[name] ?? Math.max(name.length * 7.6 + 28 + types.slice(0, 2).length * 42, ...types.map((type) => USUAL[type]));
}

export function Grid({ rows, label, estimate, columns, widths, selection, open, remove }: GridProps) {
  const element = useRef<HTMLDivElement>(null);
  const scroll = useMemo(() => new Scroll(ROW_HEIGHT), [rows]);
  const size = useSignal({ width: 0, height: 0 });
  const moved = useSignal(0);
  const left = useSignal(0);
  const active = useSignal<{ row: number; column: number } | undefined>(undefined);
  const anchor = useRef(0);
  void rows.version.value;
  void moved.value;

  const known = rows.known.value;
  const total = rows.isComplete.value ? known : Math.max(known + 1, estimate);
  const header = ROW_HEIGHT + 4;
  const height = Math.max(0, size.value.height - header);
  scroll.resize(total, height);
  const [first, last] = scroll.rows();
  const [from, to] = [Math.max(0, first - 8), Math.min(total - 1, last + 8)];

  useLayoutEffect(() => {
    const target = element.current as HTMLDivElement;
    const observer = new ResizeObserver(() => (size.value = { width: target.clientWidth, height: target.clientHeight }));
    observer.observe(target);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    active.value = undefined;
    if (element.current) element.current.scrollTop = 0;
  }, [rows]);
  useEffect(() => {
    if (height > 0) rows.need(first, Math.max(first, last));
  }, [rows, first, last, known, height]);

  const placed = places(columns, widths.value, rows.seen);
  const visible = placed.filter(({ x, width }) => x + width > left.value - 200 && x < left.value + size.value.width + 200);
  const full = (placed.at(-1)?.x ?? CHECK_WIDTH) + (placed.at(-1)?.width ?? 0);

  const onScroll = (): void => {
    const target = element.current as HTMLDivElement;
    const stand = scroll.scrolled(target.scrollTop);
    if (stand !== undefined && Math.abs(stand - target.scrollTop) > 1) target.scrollTop = stand;
    left.value = target.scrollLeft;
    moved.value += 1;
  };

  const show = (row: number, column: number): void => {
    const target = element.current as HTMLDivElement;
    active.value = { row, column };
    const top = row * ROW_HEIGHT;
    if (top < scroll.y) target.scrollTop = scroll.show(top);
    else if (top + ROW_HEIGHT > scroll.y + height) target.scrollTop = scroll.show(top + ROW_HEIGHT - height);
    const place = placed[column];
    if (place && place.x - CHECK_WIDTH < target.scrollLeft) target.scrollLeft = place.x - CHECK_WIDTH;
    else if (place && place.x + place.width > target.scrollLeft + target.clientWidth) target.scrollLeft = place.x + place.width - target.clientWidth;
    moved.value += 1;
  };

  const toggle = (index: number, isRange: boolean): void => {
    const chosen = new Map(selection.value);
    const raw = rows.row(index);
    if (!raw) return;
    const isOn = !chosen.has(keyOf(raw));
    const [start, end] = isRange ? [Math.min(anchor.current, index), Math.max(anchor.current, index)] : [index, index];
    for (let at = start; at <= end; at += 1) {
      const row = rows.row(at);
      if (row && isOn) chosen.set(keyOf(row), row);
      else if (row) chosen.delete(keyOf(row));
    }
    anchor.current = index;
    selection.value = chosen;
  };

  const toggleAll = (): void => {
    selection.value = selection.value.size ? new Map() : new Map(rows.held().map((raw) => [keyOf(raw), raw]));
  };

  const onKey = (event: TargetedKeyboardEvent<HTMLDivElement>): void => {
    const { row, column } = active.value ?? { row: first, column: 0 };
    const page = Math.max(1, Math.floor(height / ROW_HEIGHT) - 1);
    const lastRow = Math.max(0, known - 1);
    const end = columns.length - 1;
    const jump = event.ctrlKey || event.metaKey;
    const to: Record<string, [number, number]> = {
      ArrowDown: [row + 1, column],
      ArrowUp: [row - 1, column],
      ArrowRight: [row, column + 1],
      ArrowLeft: [row, column - 1],
      PageDown: [row + page, column],
      PageUp: [row - page, column],
      Home: jump ? [0, column] : [row, 0],
      End: jump ? [lastRow, column] : [row, end],
    };
    const target = to[event.key];
    const name = columns[column];
    if (event.altKey && name && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
      widths.value = { ...widths.value, [name]: Math.max(60, widthOf(widths.value, name, rows.seen) + (event.key === "ArrowLeft" ? -20 : 20)) };
    } else if (target) {
      const at = active.value ? target : [row, column];
      show(Math.max(0, Math.min(lastRow, at[0] as number)), Math.max(0, Math.min(end, at[1] as number)));
    } else if (event.key === " ") toggle(row, event.shiftKey);
    else if (event.key === "Enter") {
      const raw = rows.row(row);
      if (raw) open(raw);
    } else if (event.key === "Delete") remove();
    else if (event.key === "a" && jump) toggleAll();
    else if (event.key === "c" && jump && name) {
      const raw = rows.row(row);
      void copyText(raw ? (valueOf(raw, name)?.text ?? "") : "", name);
    } else return;
    event.preventDefault();
  };

  const resize = (event: TargetedPointerEvent<HTMLSpanElement>, name: string): void => {
    event.preventDefault();
    const handle = event.currentTarget;
    const [start, before] = [event.clientX, widthOf(widths.value, name, rows.seen)];
    handle.setPointerCapture(event.pointerId);
    handle.onpointermove = (move) => (widths.value = { ...widths.value, [name]: Math.max(60, Math.min(900, before + move.clientX - start)) });
    handle.onpointerup = () => (handle.onpointermove = handle.onpointerup = null);
  };

  /** As wide as the longest value in view. */
  const fit = (name: string): void => {
    let longest = name.length + 6;
    for (let at = first; at <= last; at += 1) {
      const raw = rows.row(at);
      if (raw) longest = Math.max(longest, valueOf(raw, name)?.text.length ?? 0);
    }
    widths.value = { ...widths.value, [name]: Math.min(600, Math.max(60, longest * 7.4 + 26)) };
  };

  const shown: JSX.Element[] = [];
  for (let index = from; index <= to && index < total; index += 1) {
    const raw = rows.row(index);
    const isChosen = !!raw && selection.value.has(keyOf(raw));
    shown.push(
      <div
        key={index}
        role="row"
        class={`row${isChosen ? " chosen" : ""}${index % 2 ? " odd" : ""}`}
        aria-rowindex={index + 2}
        aria-selected={isChosen}
        style={{ top: `${index * ROW_HEIGHT - scroll.offset + header}px`, width: `${full}px` }}
        data-row={index}
      >
        <div role="gridcell" class="cell check" aria-colindex={1}>
          {raw && (
            <input
              type="checkbox"
              tabIndex={-1}
              checked={isChosen}
              aria-label={`Select row ${index + 1}`}
              onClick={(event) => {
                event.preventDefault();
                toggle(index, event.shiftKey);
              }}
            />
          )}
        </div>
        {visible.map((place) => (
          <Cell key={place.name} raw={raw} place={place} row={index} isActive={active.value?.row === index && active.value.column === place.index} isMixed={(rows.seen.get(place.name)?.size ?? 0) > 1} />
        ))}
      </div>,
    );
  }

  const onPointer = (event: TargetedMouseEvent<HTMLDivElement>): void => {
    const cell = (event.target as HTMLElement).closest<HTMLElement>("[data-column]");
    if (!cell) return;
    // Nothing moves under the pointer: the second click of two must find the same cell.
    active.value = { row: Number(cell.parentElement?.dataset.row), column: Number(cell.dataset.column) };
    if ((event as unknown as PointerEvent).pointerType === "touch") onOpen(event);
  };
  const onOpen = (event: TargetedMouseEvent<HTMLDivElement>): void => {
    const row = (event.target as HTMLElement).closest<HTMLElement>("[data-row]");
    const raw = row ? rows.row(Number(row.dataset.row)) : undefined;
    if (raw) open(raw);
  };
  const current = active.value;
  return (
    <div
      ref={element}
      class="grid"
      role="grid"
      tabIndex={0}
      aria-label={label}
      aria-rowcount={rows.isComplete.value ? known + 1 : -1}
      aria-colcount={columns.length + 1}
      aria-multiselectable="true"
      aria-activedescendant={current ? `cell-${current.row}-${current.column}` : undefined}
      onScroll={onScroll}
      onKeyDown={onKey}
      onClick={onPointer}
      onDblClick={onOpen}
    >
      <div class="grid-track" role="presentation" style={{ height: `${scroll.track + header}px`, width: `${full}px` }}>
        <div class="row head" role="row" aria-rowindex={1} style={{ width: `${full}px` }}>
          <div role="columnheader" class="cell check" aria-colindex={1}>
            <input type="checkbox" tabIndex={-1} checked={selection.value.size > 0} aria-label={selection.value.size ? "Select nothing" : `Select all ${count(known)} rows in memory`} onClick={toggleAll} />
          </div>
          {visible.map(({ name, x, width, index }) => (
            <div key={name} role="columnheader" class="cell" aria-colindex={index + 2} style={{ left: `${x}px`, width: `${width}px` }}>
              <span class="name" title={name}>
                {name}
              </span>
              {[...(rows.seen.get(name) ?? [])].slice(0, 2).map((type) => (
                <TypeBadge key={type} type={type} />
              ))}
              <span class="resize" aria-hidden="true" onPointerDown={(event) => resize(event, name)} onDblClick={() => fit(name)} />
            </div>
          ))}
        </div>
        {shown}
      </div>
    </div>
  );
}

interface Place {
  name: string;
  x: number;
  width: number;
  index: number;
}

function places(columns: string[], widths: Record<string, number>, seen: Seen): Place[] {
  let x = CHECK_WIDTH;
  return columns.map((name, index) => {
    const width = widthOf(widths, name, seen);
    x += width;
    return { name, x: x - width, width, index };
  });
}

function Cell({ raw, place, row, isActive, isMixed }: { raw: Raw | undefined; place: Place; row: number; isActive: boolean; isMixed: boolean }) {
  const value = raw && valueOf(raw, place.name);
  const kind = !raw ? " waiting" : !value ? " missing" : NUMBER_TYPES.has(value.type) ? " number" : "";
  return (
    <div
      role="gridcell"
      id={`cell-${row}-${place.index}`}
      class={`cell${kind}${isActive ? " active" : ""}`}
      aria-colindex={place.index + 2}
      style={{ left: `${place.x}px`, width: `${place.width}px` }}
      data-column={place.index}
    >
      {!raw ? <span class="bar" /> : value ? <Shown value={value.text.slice(0, 400)} isEmpty={value.text === "" && value.type === "String"} /> : null}
      {value && isMixed && <TypeBadge type={value.type} />}
    </div>
  );
}

const Shown = ({ value, isEmpty }: { value: string; isEmpty: boolean }) =>
  isEmpty ? <span class="faint">empty text</span> : <span class="value">{value}</span>;

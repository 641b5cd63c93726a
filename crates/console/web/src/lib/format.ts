// Numbers, sizes and times as people read them.

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

export const count = (value: number): string => grouped.format(value);

/** "1 row", "3,000 rows". */
export const plural = (value: number, one: string, many = `${one}s`): string => `${count(value)} ${value === 1 ? one : many}`;

/** A dash for a number that nobody knows. */
export const known = (value: number | null | undefined, write: (value: number) => string): string => (value === null || value === undefined ? "–" : write(value));

export function bytes(value: number): string {
  if (value < 1024) return `${value} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let index = -1;
  do {
    value /= 1024;
    index += 1;
  } while (value >= 1024 && index < units.length - 1);
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[index]}`;
}

export function milliseconds(value: number): string {
  if (value < 1) return `${value.toFixed(2)} ms`;
  if (value < 100) return `${value.toFixed(1)} ms`;
  if (value < 1000) return `${Math.round(value)} ms`;
  return duration(value / 1000);
}

export function duration(seconds: number): string {
  if (seconds < 1) return `${seconds.toFixed(2)} s`;
  if (seconds < 90) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}

/** 1,234 as "1.2k": for axes and small boxes. */
export function short(value: number): string {
  if (value < 10 && value % 1 !== 0) return value.toFixed(1);
  if (value < 1000) return String(Math.round(value));
  if (value < 1e6) return `${(value / 1e3).toFixed(value < 1e4 ? 1 : 0)}k`;
  if (value < 1e9) return `${(value / 1e6).toFixed(value < 1e7 ? 1 : 0)}M`;
  return `${(value / 1e9).toFixed(1)}G`;
}

export const clock = (at: string | number): string => new Date(at).toTimeString().slice(0, 8);

export function moment(at: string | number): string {
  const time = new Date(at);
  return Number.isNaN(time.getTime()) ? String(at) : time.toISOString().replace("T", " ").replace(/\.\d+Z$/, "Z");
}

// The console's icons: outlines of 16 × 16, drawn with the colour of the text. They say nothing that a label does not.

const PATHS = {
  table: "M2 3.5h12v9H2zM2 6.5h12M6 6.500v6",
  queue: "M2 4h9M2 8h12M2 12h6M13 3v2",
  blob: "M4 2h5l3.500 3.500V14H4zM9 2v3.500h3.500",
  folder: "M1.500 4h4.500l1.500 2h7v7H1.500z",
  camera: "M2 5h3l1-1.500h4L11 5h3v8H2zM8 6.800a2.200 2.200 0 1 0 0 4.400 2.200 2.200 0 0 0 0-4.400z",
  live: "M1.500 8h3l2-5 3 10 2-5h3",
  key: "M5.500 10.500a3 3 0 1 1 2.600-4.500H14v2.500h-2v2H9.500V9h-1.400a3 3 0 0 1-2.600 1.500z",
  gear: "M8 5.700a2.300 2.300 0 1 0 0 4.600 2.300 2.300 0 0 0 0-4.600zM8 1.500v2M8 12.500v2M1.500 8h2M12.500 8h2M3.400 3.400l1.400 1.400M11.200 11.200l1.400 1.400M3.400 12.600l1.400-1.400M11.200 4.800l1.400-1.400",
  cluster: "M8 2.500v3M8 5.500L3.500 9.500M8 5.500l4.500 4M3.500 9.500h9M6.500 2.500h3v3h-3zM2 9.500h3v3H2zM11 9.500h3v3h-3z",
  server: "M2.500 3h11v4h-11zM2.500 9h11v4h-11zM5 5h.01M5 11h.01",
  plus: "M8 3v10M3 8h10",
  trash: "M3 4.500h10M6 4.500V3h4v1.500M4.500 4.500l.6 8.500h5.800l.6-8.500M6.800 7v3.500M9.200 7v3.500",
  copy: "M5.500 5.500h7v8h-7zM3.500 10.500v-8h7",
  close: "M4 4l8 8M12 4l-8 8",
  sun: "M8 5.200a2.800 2.800 0 1 0 0 5.600 2.800 2.800 0 0 0 0-5.600zM8 1.200v1.600M8 13.200v1.600M1.200 8h1.600M13.200 8h1.600M3.200 3.200l1.100 1.100M11.700 11.700l1.100 1.100M3.200 12.800l1.100-1.100M11.700 4.300l1.100-1.100",
  moon: "M13 9.500A5.500 5.500 0 0 1 6.500 3a5.500 5.500 0 1 0 6.500 6.500z",
  auto: "M8 2.500a5.500 5.500 0 1 0 0 11zM8 2.500a5.500 5.500 0 0 1 0 11",
  out: "M9 3H3.500v10H9M7 8h7M11.500 5.500L14 8l-2.500 2.500",
  search: "M7 3a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM10 10l3.500 3.500",
  down: "M4 6.500l4 4 4-4",
  refresh: "M13 8a5 5 0 1 1-1.500-3.500M13 2.500v3h-3",
  upload: "M8 10.500v-8M5 5.500l3-3 3 3M3 10.500v3h10v-3",
  download: "M8 2.500v8M5 7.500l3 3 3-3M3 10.500v3h10v-3",
  bulb: "M6 12.500h4M6.500 14h3M8 2a4.200 4.200 0 0 0-2.500 7.500c.5.500.700 1 .8 1.500h3.400c.1-.5.300-1 .8-1.500A4.200 4.200 0 0 0 8 2z",
  warning: "M8 2.500L14.500 13.500h-13zM8 6.500v3.500M8 11.800h.01",
  check: "M3 8.500l3.500 3.500L13 4.500",
  play: "M5 3.500l7.500 4.500L5 12.500z",
  pause: "M5.500 3.500v9M10.500 3.500v9",
  code: "M5.500 4.500L2 8l3.500 3.500M10.500 4.500L14 8l-3.500 3.500",
  undo: "M6 3.500L3 6.500l3 3M3 6.500h6.500a3.500 3.500 0 0 1 0 7H7",
  menu: "M2.500 4.500h11M2.500 8h11M2.500 11.500h11",
  more: "M3.500 8h.01M8 8h.01M12.500 8h.01",
  arrow: "M3 8h10M9.500 4.500L13 8l-3.500 3.500",
  back: "M13 8H3M6.500 4.500L3 8l3.500 3.500",
};

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}

export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="7" class="mark-ground" />
      <path d="M7 9h18M7 14.500h18M7 20h18M7 25h18" class="mark-lines" />
      <circle cx="12" cy="20" r="3" class="mark-notes" />
      <circle cx="21" cy="14.500" r="3" class="mark-notes" />
      <path d="M15 20V8M24 14.500V5" class="mark-stems" />
    </svg>
  );
}

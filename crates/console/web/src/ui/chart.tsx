// A line chart over the last two minutes. Colours come from the style sheet; the numbers are also said in words.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { short } from "../lib/format.ts";

export interface Series {
  name: string;
  values: number[];
  kind: "one" | "two" | "bad";
}

interface ChartProps {
  title: string;
  series: Series[];
  /** How many values fill the width. */
  width: number;
  unit: string;
}

const [HEIGHT, LEFT, BOTTOM] = [132, 40, 16];

/** The next round number: 1, 2 or 5 times a power of ten. */
function ceiling(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= value) ?? 10;
  return step * power;
}

export function Chart({ title, series, width, unit }: ChartProps) {
  const picture = useRef<SVGSVGElement>(null);
  const [across, resize] = useState(480);
  useLayoutEffect(() => {
    const target = picture.current as SVGSVGElement;
    const observer = new ResizeObserver(() => resize(Math.max(200, target.clientWidth)));
    observer.observe(target);
    return () => observer.disconnect();
  }, []);
  const top = ceiling(Math.max(0, ...series.flatMap(({ values }) => values)));
  const x = (index: number, length: number): number => LEFT + ((across - LEFT) * (width - length + index)) / (width - 1);
  const y = (value: number): number => 8 + (HEIGHT - BOTTOM - 8) * (1 - value / top);
  const line = (values: number[]): string => values.map((value, index) => `${index ? "L" : "M"}${x(index, values.length).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  const area = (values: number[]): string => (values.length > 1 ? `${line(values)}L${across} ${HEIGHT - BOTTOM}L${x(0, values.length).toFixed(1)} ${HEIGHT - BOTTOM}Z` : "");
  const latest = series.map(({ name, values }) => `${name} ${short(values.at(-1) ?? 0)} ${unit}`).join(", ");
  return (
    <figure class="chart">
      <figcaption>
        <span>{title}</span>
        {series.map(({ name, values, kind }) => (
          <span key={name} class={`legend ${kind}`}>
            {name} <strong class="mono">{short(values.at(-1) ?? 0)}</strong> {unit}
          </span>
        ))}
      </figcaption>
      <svg ref={picture} viewBox={`0 0 ${across} ${HEIGHT}`} role="img" aria-label={`${title}: now ${latest}`} preserveAspectRatio="none">
        {[0, 0.5, 1].map((share) => (
          <g key={share}>
            <line class="grid-line" x1={LEFT} x2={across} y1={y(top * share)} y2={y(top * share)} />
            <text class="axis" x={LEFT - 6} y={y(top * share) + 4} text-anchor="end">
              {short(top * share)}
            </text>
          </g>
        ))}
        {series.map(({ name, values, kind }) => (
          <g key={name}>
            {kind === "one" && <path class="area" d={area(values)} />}
            <path class={`line ${kind}`} d={line(values)} />
          </g>
        ))}
        <text class="axis" x={LEFT} y={HEIGHT - 3}>
          {width} s ago
        </text>
        <text class="axis" x={across} y={HEIGHT - 3} text-anchor="end">
          now
        </text>
      </svg>
    </figure>
  );
}

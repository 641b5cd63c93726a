// Makes a screenshot small: at most 256 colours, the most frequent ones, in a palette. Text and lines look the same.

import * as zlib from "node:zlib";

const { deflateSync, inflateSync, crc32 } = zlib;

const SIGNATURE = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);

function* chunks(png) {
  for (let at = 8; at < png.length; ) {
    const size = png.readUInt32BE(at);
    yield [png.toString("latin1", at + 4, at + 8), png.subarray(at + 8, at + 8 + size)];
    at += size + 12;
  }
}

function chunk(name, data) {
  const body = Buffer.concat([Buffer.from(name, "latin1"), data]);
  const size = Buffer.alloc(4);
  size.writeUInt32BE(data.length);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE((crc32 ?? crc)(body) >>> 0);
  return Buffer.concat([size, body, sum]);
}

/** For versions of Node whose zlib does not offer it. */
function crc(bytes) {
  let value = ~0;
  for (const byte of bytes) {
    value ^= byte;
    for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  }
  return ~value;
}

/** The pixels of a PNG with 8 bits a channel, as Chromium writes it. */
function pixels(png) {
  const parts = [...chunks(png)];
  const head = parts.find(([name]) => name === "IHDR")[1];
  const [width, height, channels] = [head.readUInt32BE(0), head.readUInt32BE(4), head[9] === 6 ? 4 : 3];
  const data = inflateSync(Buffer.concat(parts.filter(([name]) => name === "IDAT").map(([, body]) => body)));
  const line = width * channels;
  const out = new Uint8Array(line * height);
  for (let y = 0; y < height; y += 1) {
    const filter = data[y * (line + 1)];
    for (let x = 0; x < line; x += 1) {
      const left = x >= channels ? out[y * line + x - channels] : 0;
      const up = y ? out[(y - 1) * line + x] : 0;
      const corner = y && x >= channels ? out[(y - 1) * line + x - channels] : 0;
      const distance = [left, up, corner].map((near) => Math.abs(left + up - corner - near));
      const paeth = distance[0] <= distance[1] && distance[0] <= distance[2] ? left : distance[1] <= distance[2] ? up : corner;
      out[y * line + x] = data[y * (line + 1) + 1 + x] + [0, left, up, (left + up) >> 1, paeth][filter];
    }
  }
  return { width, height, channels, out };
}

export function shrink(png) {
  const { width, height, channels, out } = pixels(png);
  const colour = (at) => (out[at * channels] << 16) | (out[at * channels + 1] << 8) | out[at * channels + 2];
  const counts = new Map();
  for (let at = 0; at < width * height; at += 1) counts.set(colour(at), (counts.get(colour(at)) ?? 0) + 1);
  const palette = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 256).map(([value]) => value);
  const index = new Map(palette.map((value, at) => [value, at]));
  const nearest = (value) => {
    let [best, least] = [0, Infinity];
    palette.forEach((other, at) => {
      const far = ((value >> 16) - (other >> 16)) ** 2 + (((value >> 8) & 255) - ((other >> 8) & 255)) ** 2 + ((value & 255) - (other & 255)) ** 2;
      if (far < least) [best, least] = [at, far];
    });
    return best;
  };
  const rows = Buffer.alloc((width + 1) * height);
  for (let at = 0; at < width * height; at += 1) {
    const value = colour(at);
    if (!index.has(value)) index.set(value, nearest(value));
    rows[Math.floor(at / width) * (width + 1) + 1 + (at % width)] = index.get(value);
  }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3, 0, 0, 0], 8);
  const colours = Buffer.from(palette.flatMap((value) => [value >> 16, (value >> 8) & 255, value & 255]));
  return Buffer.concat([SIGNATURE, chunk("IHDR", head), chunk("PLTE", colours), chunk("IDAT", deflateSync(rows, { level: 9 })), chunk("IEND", Buffer.alloc(0))]);
}

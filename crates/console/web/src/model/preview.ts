// What the first bytes of a blob are: a picture that the browser can draw, a text, or neither. What a blob calls itself does
// not count: a page that says that it is a picture is shown as text.

/** So much is read to show a text, and to tell what it is. */
export const START_BYTES = 64 * 1024;
/** A larger picture is not shown: it would be held in memory whole. */
export const PICTURE_BYTES_MAX = 16 * 1024 * 1024;
/** A small file can hold a picture that takes gigabytes once it is drawn. */
export const PIXELS_MAX = 50_000_000;

export interface Picture {
  /** Only types that are pixels and nothing else. SVG is a document: it can hold script and links, and is shown as text. */
  type: "image/png" | "image/jpeg" | "image/gif" | "image/webp";
  width: number;
  height: number;
}

const ascii = (bytes: Uint8Array, from: number, to: number): string => String.fromCharCode(...bytes.subarray(from, to));

/** Undefined if it is none, or if its size is not among these bytes. */
export function pictureOf(bytes: Uint8Array): Picture | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length >= 24 && ascii(bytes, 0, 8) === "\x89PNG\r\n\x1a\n" && ascii(bytes, 12, 16) === "IHDR") return { type: "image/png", width: view.getUint32(16), height: view.getUint32(20) };
  if (bytes.length >= 10 && /^GIF8[79]a/.test(ascii(bytes, 0, 6))) return { type: "image/gif", width: view.getUint16(6, true), height: view.getUint16(8, true) };
  if (bytes.length >= 30 && ascii(bytes, 0, 4) === "RIFF" && ascii(bytes, 8, 12) === "WEBP") return webp(bytes, view);
  if (bytes.length >= 4 && view.getUint16(0) === 0xffd8) return jpeg(view);
  return undefined;
}

function webp(bytes: Uint8Array, view: DataView): Picture | undefined {
  const three = (at: number): number => view.getUint16(at, true) | (view.getUint8(at + 2) << 16);
  switch (ascii(bytes, 12, 16)) {
    case "VP8X":
      return { type: "image/webp", width: three(24) + 1, height: three(27) + 1 };
    case "VP8L": {
      const packed = view.getUint32(21, true);
      return { type: "image/webp", width: (packed & 0x3fff) + 1, height: ((packed >>> 14) & 0x3fff) + 1 };
    }
    case "VP8 ":
      return { type: "image/webp", width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff };
    default:
      return undefined;
  }
}

/** The size is in the first segment that begins a frame. */
function jpeg(view: DataView): Picture | undefined {
  for (let at = 2; at + 9 <= view.byteLength; ) {
    if (view.getUint8(at) !== 0xff) return undefined;
    const marker = view.getUint8(at + 1);
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame) return { type: "image/jpeg", width: view.getUint16(at + 7), height: view.getUint16(at + 5) };
    // One that fills the space before the next.
    at += marker === 0xff ? 1 : 2 + view.getUint16(at + 2);
  }
  return undefined;
}

/** Undefined if it is no text. The last character may be cut off. */
export function textOf(bytes: Uint8Array): string | undefined {
  const mark = bytes.length >= 2 ? (bytes[0] ?? 0) * 256 + (bytes[1] ?? 0) : 0;
  const encoding = mark === 0xfffe ? "utf-16le" : mark === 0xfeff ? "utf-16be" : "utf-8";
  try {
    const text = new TextDecoder(encoding, { fatal: true }).decode(bytes, { stream: true });
    return text.includes("\0") ? undefined : text;
  } catch {
    return undefined;
  }
}

/** Bytes as programmers read them: offset, sixteen numbers, and the letters among them. */
export function hexOf(bytes: Uint8Array): string {
  const lines: string[] = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const line = [...bytes.subarray(at, at + 16)];
    const numbers = line.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const letters = line.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : "·")).join("");
    lines.push(`${at.toString(16).padStart(8, "0")}  ${numbers.padEnd(47)}  ${letters}`);
  }
  return lines.join("\n");
}

// Characters that are not seen, or that change how the rest is seen.

/** Controls, separators of lines, marks of direction, halves of a pair. */
export const UNSEEN = /[\u0000-\u001f\u007f-\u00a0\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

export const hasUnseen = (text: string): boolean => text.search(UNSEEN) >= 0;

/** The text in pieces: as it is, or the number of a character that nobody would see. */
export function pieces(text: string): { text: string; isUnseen: boolean }[] {
  const found: { text: string; isUnseen: boolean }[] = [];
  let at = 0;
  for (const match of text.matchAll(UNSEEN)) {
    if (match.index > at) found.push({ text: text.slice(at, match.index), isUnseen: false });
    found.push({ text: `U+${match[0].charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`, isUnseen: true });
    at = match.index + match[0].length;
  }
  if (at < text.length) found.push({ text: text.slice(at), isUnseen: false });
  return found;
}

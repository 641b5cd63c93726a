// What is in a blob: a text, a picture, or the first bytes. Nothing of it becomes a document: a text is a text node, a picture
// is an image of a type that is pixels and nothing else.

import { useEffect, useState } from "preact/hooks";
import { type BlobProperties, type BlobRef, readStart } from "../api/blob.ts";
import { bytes, count } from "../lib/format.ts";
import { hexOf, PICTURE_BYTES_MAX, type Picture, pictureOf, PIXELS_MAX, START_BYTES, textOf } from "../model/preview.ts";
import { Failure, Notice, useLoaded } from "../ui/parts.tsx";

/** Of what is neither text nor picture, so much is shown. */
const HEX_BYTES = 1024;

type Content = { picture: Picture; data: Uint8Array } | { text: string } | { hex: string; why: string };

async function contentOf(blob: BlobRef, { size, etag }: BlobProperties): Promise<Content> {
  if (!size) return { text: "" };
  const start = await readStart(blob, Math.min(size, START_BYTES), etag);
  const picture = pictureOf(start);
  if (picture && picture.width * picture.height <= PIXELS_MAX && size <= PICTURE_BYTES_MAX) {
    return { picture, data: size <= start.length ? start : await readStart(blob, size, etag) };
  }
  const text = textOf(start);
  if (text !== undefined) return { text };
  const why = picture ? `A picture of ${count(picture.width)} × ${count(picture.height)} pixels and ${bytes(size)} is too large to be shown here.` : "This is neither a text nor a picture that can be shown.";
  return { hex: hexOf(start.subarray(0, HEX_BYTES)), why };
}

export function Preview({ blob, value }: { blob: BlobRef; value: BlobProperties }) {
  const { value: content, error, again } = useLoaded(() => contentOf(blob, value), [blob.container, blob.name, blob.snapshot, value.etag]);
  if (error) return <Failure error={error} retry={again} />;
  if (!content) return <p role="status">Reading…</p>;
  if ("picture" in content) return <PictureShown {...content} size={value.size} />;
  if ("hex" in content)
    return (
      <div class="stack">
        <Notice kind="info">{content.why}</Notice>
        <pre class="code" tabIndex={0} aria-label="The first bytes">
          {content.hex}
        </pre>
      </div>
    );
  return (
    <div class="stack">
      {value.size > START_BYTES && <Notice kind="info">The first {bytes(START_BYTES)} of {bytes(value.size)}. Download it to see all.</Notice>}
      <pre class="code wrap preview-text" tabIndex={0} aria-label="The content as text">
        {content.text || "(empty)"}
      </pre>
    </div>
  );
}

function PictureShown({ picture, data, size }: { picture: Picture; data: Uint8Array; size: number }) {
  const [url, show] = useState("");
  const [isBroken, broken] = useState(false);
  useEffect(() => {
    // The type is ours, not the blob's: opened on its own, it is still nothing but a picture.
    const made = URL.createObjectURL(new Blob([data as Uint8Array<ArrayBuffer>], { type: picture.type }));
    show(made);
    return () => URL.revokeObjectURL(made);
  }, [data]);
  return (
    <figure class="picture">
      {isBroken ? <Notice kind="warning">The picture is damaged.</Notice> : url && <img src={url} alt={`Picture of ${picture.width} by ${picture.height} pixels`} onError={() => broken(true)} />}
      <figcaption class="faint">
        {picture.type.slice(6).toUpperCase()}, {count(picture.width)} × {count(picture.height)} pixels, {bytes(size)}
      </figcaption>
    </figure>
  );
}

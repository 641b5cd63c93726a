// A name that somebody else has chosen: characters that are not seen, or that turn others around, are shown as their numbers,
// and the direction of its letters does not reach what stands beside it.

import { pieces } from "../lib/unseen.ts";

export const Name = ({ text }: { text: string }) => (
  <bdi class="name">
    {pieces(text).map(({ text: piece, isUnseen }, index) =>
      isUnseen ? (
        <span key={index} class="unseen">
          {piece}
        </span>
      ) : (
        piece
      ),
    )}
  </bdi>
);

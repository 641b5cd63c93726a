// Where rows are in a list that is too long for the browser. An element can't be higher than some ten million pixels, so a
// longer list has a shorter track: small steps move exactly, jumps move in proportion.

export const TRACK_MAX = 8_000_000;
const PARTS = 100;

export class Scroll {
  private total = 0;
  private view = 0;
  private shift = 0;
  private last = 0;

  constructor(readonly rowHeight: number) {}

  /** The height of the track. */
  get track(): number {
    return Math.min(this.total, TRACK_MAX);
  }

  /** What lies above the track's pixels: a row's place is `index * rowHeight - offset`. */
  get offset(): number {
    return this.shift;
  }

  resize(rows: number, view: number): void {
    this.total = rows * this.rowHeight;
    this.view = view;
    if (this.total <= TRACK_MAX) this.shift = 0;
  }

  private shiftAt(y: number): number {
    if (this.total <= TRACK_MAX) return 0;
    const part = this.track / PARTS;
    const parts = Math.ceil(this.total / part);
    const jump = (this.total - this.track) / (parts - 1);
    return Math.round(Math.min(parts - 1, Math.floor(y / part)) * jump);
  }

  /** The track was scrolled to `top`; returns where the track has to stand instead, if elsewhere. */
  scrolled(top: number): number | undefined {
    const moved = Math.abs(top - this.last);
    this.last = top;
    if (this.total <= TRACK_MAX) return undefined;
    if (moved >= this.view) {
      this.shift = this.shiftAt(top * ((this.total - this.view) / Math.max(1, this.track - this.view)));
      return undefined;
    }
    return this.show(top + this.shift);
  }

  /** Brings the list's pixel `y` to the top; returns where the track has to stand. */
  show(y: number): number {
    const at = Math.max(0, Math.min(y, this.total - this.view));
    this.shift = this.shiftAt(at);
    this.last = Math.max(0, at - this.shift);
    return this.last;
  }

  /** The list's pixel at the top of the view. */
  get y(): number {
    return this.last + this.shift;
  }

  rows(): [first: number, last: number] {
    return [Math.floor(this.y / this.rowHeight), Math.ceil((this.y + this.view) / this.rowHeight)];
  }
}

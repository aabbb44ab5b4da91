// The part of the time that is shown, and how it moves.

/** Since when and until when, ns since the trace's start. */
export interface Span {
  from: number;
  to: number;
}

/** Nothing is shown closer than this, ns. */
const LEAST = 200;

/**
 * Keeps a view at the trace: at least half of it shows some. A problem that lasts from the trace's
 * begin to its end takes the middle half of the width too.
 */
export function clamp(view: Span, end: number): Span {
  const width = Math.min(Math.max(view.to - view.from, LEAST), end * 2 + LEAST);
  const room = width / 2;
  let from = view.from;
  if (from + width > end + room) from = end + room - width;
  if (from < -room) from = -room;
  return { from, to: from + width };
}

/** Zooms by a factor (less than 1: closer) around a moment, which stays where it is. */
export function zoom(view: Span, factor: number, around: number): Span {
  return {
    from: around - (around - view.from) * factor,
    to: around + (view.to - around) * factor,
  };
}

/** Moves by a share of what is shown. */
export function pan(view: Span, share: number): Span {
  const by = (view.to - view.from) * share;
  return { from: view.from + by, to: view.to + by };
}

/** The view in which a span takes the middle half of the width. */
export function middleHalf(span: Span): Span {
  const width = Math.max(span.to - span.from, LEAST / 2);
  return { from: span.from - width / 2, to: span.from + width * 1.5 };
}

/** What to ask the server for: bins of 2^shift ns, and as much again beside the view. */
export interface TileView {
  from: number;
  shift: number;
  bins: number;
}

/** The coarsest bins that are no wider than a pixel; on both sides half a view more. */
export function tileView(view: Span, pixels: number, end: number): TileView {
  const width = view.to - view.from;
  const shift = Math.max(0, Math.floor(Math.log2(width / Math.max(pixels, 1))));
  const bin = 2 ** shift;
  // The begin is a multiple of many bins, so that a little movement asks for nothing new.
  const grain = bin * 64;
  const from = Math.max(0, Math.floor((view.from - width / 2) / grain) * grain);
  const to = Math.min(end, view.to + width / 2);
  const bins = Math.max(1, Math.min(Math.ceil((to - from) / bin), 16384));
  return { from, shift, bins };
}

/** Whether a tile has all of what a view shows, in the detail that it needs. */
export function covers(tile: TileView, view: Span, pixels: number, end: number): boolean {
  const wanted = tileView(view, pixels, end);
  const to = tile.from + 2 ** tile.shift * tile.bins;
  return (
    tile.shift === wanted.shift &&
    tile.from <= Math.max(0, view.from) &&
    to >= Math.min(end, view.to)
  );
}

/** Round steps for a ruler: the first at or after `from`, and the distance. */
export function ticks(view: Span, pixels: number, apart: number): { first: number; step: number } {
  const least = ((view.to - view.from) / Math.max(pixels, 1)) * apart;
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= least) ?? 10 * power;
  return { first: Math.ceil(view.from / step) * step, step };
}

/** A tick's text: seconds with as many digits as the step needs. */
export function tickText(t: number, step: number): string {
  const digits = Math.min(9, Math.max(0, 9 - Math.floor(Math.log10(step))));
  return `${(t / 1e9).toFixed(digits)} s`;
}

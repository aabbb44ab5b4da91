// The binary answer of /tiles (docs/API.md), read where it lies: typed arrays, no objects of
// intervals.

const MAGIC = 0x31746468; // "hdt1"
export const STATES = 5;
export const RUNNING = 0;
export const BLOCKED = 3;

/** A track's part of a tile: intervals. */
export interface Intervals {
  kind: "intervals";
  n: number;
  starts: Float64Array;
  ends: Float64Array;
  who: Uint32Array;
  states: Uint8Array;
}

/** A track's part of a tile: bins, those that are not idle. */
export interface Bins {
  kind: "bins";
  n: number;
  at: Uint32Array;
  count: Uint32Array;
  who: Uint32Array;
  longest: Float32Array;
  /** By state, then by bin: of 65535. */
  shares: Uint16Array;
}

export interface Tile {
  from: number;
  shift: number;
  bins: number;
  tracks: (Intervals | Bins)[];
}

/** Reads an answer. Throws where it is none. */
export function decode(buffer: ArrayBuffer): Tile {
  const view = new DataView(buffer);
  if (buffer.byteLength < 24 || view.getUint32(0, true) !== MAGIC) {
    throw new Error("invalid answer to a request for tiles");
  }
  const count = view.getUint32(4, true);
  const tile: Tile = {
    shift: view.getUint32(8, true),
    bins: view.getUint32(12, true),
    from: view.getFloat64(16, true),
    tracks: [],
  };
  let at = 24;
  for (let i = 0; i < count; i++) {
    const kind = view.getUint32(at, true);
    const n = view.getUint32(at + 4, true);
    at += 16;
    if (kind === 1) {
      tile.tracks.push({
        kind: "intervals",
        n,
        starts: new Float64Array(buffer, at, n),
        ends: new Float64Array(buffer, at + 8 * n, n),
        who: new Uint32Array(buffer, at + 16 * n, n),
        states: new Uint8Array(buffer, at + 20 * n, n),
      });
      at += 21 * n;
    } else {
      tile.tracks.push({
        kind: "bins",
        n,
        at: new Uint32Array(buffer, at, n),
        count: new Uint32Array(buffer, at + 4 * n, n),
        who: new Uint32Array(buffer, at + 8 * n, n),
        longest: new Float32Array(buffer, at + 12 * n, n),
        shares: new Uint16Array(buffer, at + 16 * n, STATES * n),
      });
      at += (16 + 2 * STATES) * n;
    }
    at = Math.ceil(at / 8) * 8;
  }
  return tile;
}

/**
 * How much of each column of pixels each state takes, 0 to 1: `into[state * width + x]`. What is
 * drawn from it has the area of the time that it stands for, whatever the zoom. Of a track that
 * has bins, blocked time is left out where all of a bin is blocked: it is what remains. Intervals
 * of `widest` pixels and more are left out too, for who draws them otherwise.
 */
export function coverage(
  part: Intervals | Bins,
  tile: { from: number; shift: number },
  from: number,
  to: number,
  width: number,
  into: Float32Array,
  widest = Infinity,
): void {
  into.fill(0, 0, STATES * width);
  const scale = width / (to - from);
  if (part.kind === "intervals") {
    let low = 0;
    let high = part.n;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (part.ends[middle]! <= from) low = middle + 1;
      else high = middle;
    }
    for (let i = low; i < part.n && part.starts[i]! < to; i++) {
      const x0 = (part.starts[i]! - from) * scale;
      const x1 = (part.ends[i]! - from) * scale;
      if (x1 - x0 < widest) spread(into, part.states[i]! * width, x0, x1, 1, width);
    }
    return;
  }
  const bin = 2 ** tile.shift;
  const first = Math.floor((from - tile.from) / bin);
  const last = Math.ceil((to - tile.from) / bin);
  let low = 0;
  let high = part.n;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (part.at[middle]! < first) low = middle + 1;
    else high = middle;
  }
  for (let i = low; i < part.n && part.at[i]! < last; i++) {
    const x0 = (tile.from + part.at[i]! * bin - from) * scale;
    const x1 = x0 + bin * scale;
    for (let state = 0; state < STATES; state++) {
      const share = part.shares[state * part.n + i]!;
      if (share > 0) spread(into, state * width, x0, x1, share / 65535, width);
    }
  }
}

function spread(
  into: Float32Array,
  base: number,
  x0: number,
  x1: number,
  share: number,
  width: number,
): void {
  const left = Math.max(x0, 0);
  const right = Math.min(x1, width);
  if (right <= left) return;
  const first = Math.floor(left);
  const last = Math.min(Math.ceil(right), width) - 1;
  if (first >= last) {
    into[base + first]! += (right - left) * share;
    return;
  }
  into[base + first]! += (first + 1 - left) * share;
  for (let x = first + 1; x < last; x++) into[base + x]! += share;
  into[base + last]! += (right - last) * share;
}

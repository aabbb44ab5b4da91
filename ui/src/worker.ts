// Draws the tracks, in a worker so that the page never waits for it: fetches tiles, and fills an
// array of pixels from them. How long a frame takes depends on the pixels and not on the events.

import { DARK, LIGHT, type Palette } from "./colours";
import {
  DIMMED,
  ROW_CALLS,
  ROW_CPU,
  ROW_GROUP,
  ROW_LOAD,
  ROW_REGION,
  ROW_THREAD,
  SELECTED,
  type FromWorker,
  type Overlay,
  type Rows,
  type ToWorker,
} from "./scene";
import { BLOCKED, STATES, coverage, decode, type Bins, type Intervals } from "./tiles";
import { covers, tickText, ticks, tileView, type Span, type TileView } from "./view";

/** Height of the ruler above the tracks, in the page's pixels. */
const RULER = 22;

/** A system call has round ends where it is so wide, in the page's pixels. */
const CAPSULE = 8;

interface Held {
  tile: TileView;
  part: Intervals | Bins;
}

let canvas: OffscreenCanvas | null = null;
let context: OffscreenCanvasRenderingContext2D | null = null;
let image: ImageData | null = null;
let pixels = new Uint32Array(0);
let base = "";
let end = 1;
let width = 0;
let height = 0;
let dpr = 1;
let palette: Palette = LIGHT;
let view: Span = { from: 0, to: 1 };
let scroll = 0;
let rows: Rows | null = null;
let load: { average: Float32Array; width: number; cpus: number } | null = null;
let overlay: Overlay = {
  problem: null,
  path: [],
  arrows: [],
  selected: null,
  range: null,
  head: null,
  gaps: [],
};
const names = new Map<number, string>();
/** The names of system calls, by their number in tiles. */
let callNames: Record<string, string> = {};
const held = new Map<string, Held>();
let cover = new Float32Array(0);
/** What a file of its own carries; beyond it there is nothing. */
let carried: TileView | null = null;
let waiting = false;
let asking: { key: string; abort: AbortController } | null = null;
const frameTimes: number[] = [];
const tileTimes: number[] = [];
const tileBytes: number[] = [];

const post = (message: FromWorker, transfer: Transferable[] = []): void =>
  (self as unknown as Worker).postMessage(message, transfer);

self.onmessage = (event: MessageEvent<ToWorker>) => {
  const message = event.data;
  switch (message.type) {
    case "init":
      canvas = message.canvas;
      context = canvas.getContext("2d", { alpha: false });
      base = message.base;
      end = message.end;
      break;
    case "size":
      palette = message.dark ? DARK : LIGHT;
      resize(message.width, message.height, message.dpr);
      break;
    case "view":
      view = message.view;
      scroll = message.scroll;
      break;
    case "rows":
      rows = message.rows;
      break;
    case "names":
      message.names.forEach((name, i) => names.set(message.utids[i]!, name));
      break;
    case "calls":
      callNames = message.names;
      break;
    case "load":
      load = message;
      break;
    case "overlay":
      overlay = message.overlay;
      break;
    case "carried":
      message.buffers.forEach((buffer, i) => {
        const part = decode(buffer).tracks[0];
        if (part) held.set(message.names[i]!, { tile: message.view, part });
      });
      carried = message.view;
      break;
    case "stats": {
      const stats = [frameTimes, tileTimes, tileBytes].map((list) => Float32Array.from(list));
      frameTimes.length = tileTimes.length = tileBytes.length = 0;
      post({ type: "stats", frames: stats[0]!, tiles: stats[1]!, bytes: stats[2]! });
      return;
    }
  }
  redraw();
};

function resize(w: number, h: number, ratio: number): void {
  if (!canvas || !context) return;
  dpr = ratio;
  width = Math.max(1, Math.round(w * dpr));
  height = Math.max(1, Math.round(h * dpr));
  canvas.width = width;
  canvas.height = height;
  image = context.createImageData(width, height);
  pixels = new Uint32Array(image.data.buffer);
  cover = new Float32Array(STATES * width);
}

function redraw(): void {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    const began = performance.now();
    draw();
    frameTimes.push(performance.now() - began);
    const settled = request();
    post({ type: "drawn", settled });
  });
}

const pack = (rgb: readonly [number, number, number]): number =>
  (255 << 24) | (rgb[2] << 16) | (rgb[1] << 8) | rgb[0];

function blend(
  rgb: readonly [number, number, number],
  onto: readonly [number, number, number],
  share: number,
): number {
  const mix = (i: 0 | 1 | 2): number => Math.round(rgb[i] * share + onto[i] * (1 - share));
  return (255 << 24) | (mix(2) << 16) | (mix(1) << 8) | mix(0);
}

/** The column of a moment, not cut. */
const column = (t: number): number => ((t - view.from) / (view.to - view.from)) * width;

function draw(): void {
  if (!context || !image || !rows) return;
  background();
  for (let row = 0; row < rows.n; row++) {
    const top = (rows.y[row]! - scroll + RULER) * dpr;
    const bottom = top + rows.height[row]! * dpr;
    if (bottom <= RULER * dpr || top >= height) continue;
    drawRow(row, Math.round(top), Math.round(bottom));
  }
  context.putImageData(image, 0, 0);
  labels(context);
  capsules(context);
  over(context);
  ruler(context);
}

function background(): void {
  const plain = pack(palette.background);
  pixels.fill(plain);
  // Before the trace and after it nothing was recorded: that is not the same as nothing to see.
  const outside = pack(palette.outside);
  const first = carried ? carried.from : 0;
  const last = carried ? Math.min(end, carried.from + 2 ** carried.shift * carried.bins) : end;
  const begin = Math.min(Math.max(0, Math.ceil(column(first))), width);
  const finish = Math.min(Math.max(0, Math.floor(column(last))), width);
  for (let y = 0; y < height; y++) {
    if (begin > 0) pixels.fill(outside, y * width, y * width + begin);
    if (finish < width) pixels.fill(outside, y * width + finish, (y + 1) * width);
  }
  if (overlay.problem) {
    const from = Math.max(0, Math.floor(column(overlay.problem.from)));
    const to = Math.min(width, Math.ceil(column(overlay.problem.to)));
    if (to > from) {
      const tint = pack(palette.problem);
      for (let y = 0; y < height; y++) pixels.fill(tint, y * width + from, y * width + to);
    }
  }
}

/** Fills a rectangle of a row, within the canvas and below the ruler. */
function fill(x0: number, x1: number, y0: number, y1: number, colour: number): void {
  const left = Math.max(0, x0);
  const right = Math.min(width, x1);
  if (right <= left) return;
  const low = Math.max(RULER * dpr, y0);
  const high = Math.min(height, y1);
  for (let y = low; y < high; y++) pixels.fill(colour, y * width + left, y * width + right);
}

function drawRow(row: number, top: number, bottom: number): void {
  const kind = rows!.kind[row]!;
  const flags = rows!.flags[row]!;
  const strength = flags & DIMMED ? 0.35 : 1;
  fill(0, width, bottom - 1, bottom, blend([128, 128, 128], palette.background, 0.16));
  if (kind === ROW_GROUP) return;
  if (kind === ROW_LOAD) return drawLoad(top, bottom);
  const low = top + Math.round(2 * dpr);
  const high = bottom - Math.round(3 * dpr);
  if (kind === ROW_THREAD) {
    // That it lives, and waits where nothing else is drawn.
    const x0 = Math.floor(column(rows!.born[row]!));
    const x1 = Math.ceil(column(rows!.died[row]!));
    const middle = Math.round((low + high) / 2);
    const thin = blend(palette.states[BLOCKED]!, palette.background, strength);
    fill(x0, Math.max(x1, x0 + 1), middle, middle + Math.max(1, Math.round(dpr)), thin);
  }
  const has = held.get(trackOf(kind, rows!.id[row]!));
  if (has) {
    const widest = kind === ROW_CALLS ? CAPSULE * dpr : Infinity;
    coverage(has.part, has.tile, view.from, view.to, width, cover, widest);
    const colours =
      kind === ROW_REGION ? palette.regions : kind === ROW_CALLS ? palette.calls : palette.states;
    paint(low, high, strength, colours, kind !== ROW_THREAD);
  }
  if (kind === ROW_CPU) {
    for (const gap of overlay.gaps) {
      if (gap.cpu === null || gap.cpu === rows!.id[row]!) hatch(gap.from, gap.to, top, bottom);
    }
  }
  if (flags & SELECTED) {
    const edge = blend(palette.path, palette.background, 0.9);
    fill(0, width, top, top + 1, edge);
    fill(0, width, bottom - 1, bottom, edge);
  }
}

/** What the server calls the track of a row. */
const trackOf = (kind: number, id: number): string =>
  (kind === ROW_CPU ? "c" : kind === ROW_REGION ? "r" : kind === ROW_CALLS ? "s" : "t") + id;

/** What was lost there is not known: lines across, in place of what would be drawn. */
function hatch(from: number, to: number, top: number, bottom: number): void {
  const x0 = Math.max(0, Math.floor(column(from)));
  const x1 = Math.min(width, Math.max(Math.ceil(column(to)), Math.floor(column(from)) + 1));
  const colour = pack(palette.loss);
  const plain = pack(palette.background);
  for (let y = Math.max(top, RULER * dpr); y < Math.min(bottom, height); y++) {
    for (let x = x0; x < x1; x++) {
      pixels[y * width + x] = (x + y) % 6 < 2 ? colour : plain;
    }
  }
}

/** From the bottom up: running, interrupted, runnable, preempted. Their heights are their shares. */
const ORDER = [0, 4, 1, 2];

function paint(
  low: number,
  high: number,
  strength: number,
  colours: Palette["states"],
  isPlain: boolean,
): void {
  const room = high - low;
  const solid = colours.map((rgb) => blend(rgb, palette.background, strength));
  const light = colours.map((rgb) => blend(rgb, palette.background, 0.35 * strength));
  const visible = Math.max(low, RULER * dpr);
  for (let x = 0; x < width; x++) {
    let y = high;
    let rest = 0;
    for (const state of ORDER) {
      const share = cover[state * width + x]!;
      if (share <= 0) continue;
      rest += share * room;
      // Whatever is there is seen: at least a pixel.
      const to = Math.max(high - Math.max(Math.round(rest), 1), low);
      const full = solid[state]!;
      const pale = light[state]!;
      for (; y > to; y--) {
        const at = y - 1;
        if (at >= height || at < visible) continue;
        const on = isPlain || patternAt(state, x, at);
        pixels[at * width + x] = on ? full : pale;
      }
    }
  }
}

/** Whether a pixel of a state has its full colour. */
function patternAt(state: number, x: number, y: number): boolean {
  switch (state) {
    case 1:
      return (x + y) % 4 < 2;
    case 2:
      return (x + y) % 5 === 0 || (x - y + 10_000) % 5 === 0;
    case 4:
      return x % 3 === 0 && y % 3 === 0;
    default:
      return true;
  }
}

/** How many threads were runnable: blue up to the number of CPUs, orange above. */
function drawLoad(top: number, bottom: number): void {
  if (!load) return;
  let most = load.cpus;
  for (const value of load.average) most = Math.max(most, value);
  const room = bottom - top - 4 * dpr;
  const within = pack(palette.load);
  const beyond = pack(palette.over);
  const per = (view.to - view.from) / width;
  for (let x = 0; x < width; x++) {
    const from = view.from + x * per;
    const first = Math.floor(from / load.width);
    const last = Math.max(first, Math.floor((from + per) / load.width));
    let value = 0;
    for (let i = Math.max(0, first); i <= last && i < load.average.length; i++) {
      value = Math.max(value, load.average[i]!);
    }
    if (value <= 0) continue;
    const y = Math.round(bottom - 2 * dpr - (value / most) * room);
    const limit = Math.round(bottom - 2 * dpr - (load.cpus / most) * room);
    fill(x, x + 1, Math.max(y, limit), bottom - Math.round(2 * dpr), within);
    if (y < limit) fill(x, x + 1, y, limit, beyond);
  }
}

/** The middle of a row on the canvas; at an edge where it is scrolled away. */
function middleOf(row: number): number {
  if (!rows || row < 0 || row >= rows.n) return RULER * dpr;
  const y = rows.y[row]! - scroll + RULER + rows.height[row]! / 2;
  return Math.min(Math.max(y * dpr, RULER * dpr), height - 2);
}

/** Who a CPU ran, where there is room for the name. */
function labels(to: OffscreenCanvasRenderingContext2D): void {
  if (!rows) return;
  to.font = `${11 * dpr}px system-ui, sans-serif`;
  to.textBaseline = "middle";
  for (let row = 0; row < rows.n; row++) {
    if (rows.kind[row] !== ROW_CPU) continue;
    const y = (rows.y[row]! - scroll + RULER + rows.height[row]! / 2) * dpr;
    if (y < RULER * dpr || y > height) continue;
    const has = held.get("c" + rows.id[row]!);
    if (has?.part.kind !== "intervals") continue;
    const part = has.part;
    for (let i = 0; i < part.n; i++) {
      if (part.states[i] !== 0 || part.ends[i]! < view.from || part.starts[i]! > view.to) continue;
      const x0 = Math.max(0, column(part.starts[i]!));
      const x1 = Math.min(width, column(part.ends[i]!));
      if (x1 - x0 < 40 * dpr) continue;
      const name = names.get(part.who[i]!);
      if (!name) continue;
      to.save();
      to.beginPath();
      to.rect(x0, y - 8 * dpr, x1 - x0 - 2 * dpr, 16 * dpr);
      to.clip();
      to.fillStyle = palette === DARK ? "#06130d" : "#ffffff";
      to.fillText(name, x0 + 4 * dpr, y);
      to.restore();
    }
  }
}

/** System calls that are wide enough for round ends, with their names where there is room for them. */
function capsules(to: OffscreenCanvasRenderingContext2D): void {
  if (!rows) return;
  to.font = `${10 * dpr}px system-ui, sans-serif`;
  to.textBaseline = "middle";
  for (let row = 0; row < rows.n; row++) {
    if (rows.kind[row] !== ROW_CALLS) continue;
    const top = (rows.y[row]! - scroll + RULER + 2) * dpr;
    const tall = (rows.height[row]! - 5) * dpr;
    const part = held.get(trackOf(ROW_CALLS, rows.id[row]!))?.part;
    if (top < RULER * dpr || top > height || part?.kind !== "intervals") continue;
    to.globalAlpha = rows.flags[row]! & DIMMED ? 0.35 : 1;
    for (let i = 0; i < part.n; i++) {
      if (part.states[i] === BLOCKED) continue;
      // Ends far outside the picture stay outside, and round.
      const x0 = Math.max(column(part.starts[i]!), -height);
      const x1 = Math.min(column(part.ends[i]!), width + height);
      if (x1 - x0 < CAPSULE * dpr || x1 <= 0 || x0 >= width) continue;
      to.fillStyle = `rgb(${palette.calls[part.states[i]!]!.join(",")})`;
      to.beginPath();
      to.roundRect(x0, top, x1 - x0, tall, tall / 2);
      to.fill();
      const name = callNames[part.who[i]!];
      const left = Math.max(x0, 0) + tall / 2;
      const room = Math.min(x1, width) - tall / 2 - left;
      if (!name || room < to.measureText(name).width) continue;
      to.fillStyle = palette === DARK ? "#0b1526" : "#ffffff";
      to.fillText(name, left, top + tall / 2);
    }
    to.globalAlpha = 1;
  }
}

function over(to: OffscreenCanvasRenderingContext2D): void {
  const colour = palette.accent;
  to.lineWidth = Math.max(1, 1.5 * dpr);
  if (overlay.range) {
    const x0 = column(overlay.range.from);
    const x1 = column(overlay.range.to);
    to.fillStyle = palette === DARK ? "rgba(120,170,255,0.20)" : "rgba(40,100,220,0.14)";
    to.fillRect(x0, RULER * dpr, Math.max(x1 - x0, 1), height);
    to.fillStyle = palette.text;
  }
  // The path: a band along the row, at least some pixels wide at any zoom.
  if (rows) {
    for (const part of overlay.path) {
      const y = (rows.y[part.row]! - scroll + RULER) * dpr;
      const h = rows.height[part.row]! * dpr;
      if (y + h < RULER * dpr || y > height) continue;
      const x0 = column(part.from);
      const x1 = Math.max(column(part.to), x0 + 2 * dpr);
      to.fillStyle = colour;
      to.fillRect(x0, y + h - 3 * dpr, x1 - x0, 2 * dpr);
    }
    if (overlay.selected) {
      const y = (rows.y[overlay.selected.row]! - scroll + RULER) * dpr;
      const h = rows.height[overlay.selected.row]! * dpr;
      const x0 = column(overlay.selected.from);
      const x1 = Math.max(column(overlay.selected.to), x0 + 2 * dpr);
      to.strokeStyle = palette.text;
      to.setLineDash([]);
      to.strokeRect(x0, y + dpr, x1 - x0, h - 2 * dpr);
    }
  }
  for (const arrow of overlay.arrows) {
    const x0 = column(arrow.fromT);
    const x1 = column(arrow.toT);
    const y0 = middleOf(arrow.fromRow);
    const y1 = middleOf(arrow.toRow);
    to.strokeStyle = colour;
    to.fillStyle = colour;
    to.setLineDash(
      arrow.style === "solid" ? [] : arrow.style === "dashed" ? [6 * dpr, 4 * dpr] : [2 * dpr, 3 * dpr],
    );
    to.beginPath();
    to.moveTo(x0, y0);
    to.lineTo(x1, y1);
    to.stroke();
    to.setLineDash([]);
    const angle = Math.atan2(y1 - y0, x1 - x0);
    const size = 7 * dpr;
    to.beginPath();
    to.moveTo(x1, y1);
    to.lineTo(x1 - size * Math.cos(angle - 0.4), y1 - size * Math.sin(angle - 0.4));
    to.lineTo(x1 - size * Math.cos(angle + 0.4), y1 - size * Math.sin(angle + 0.4));
    to.closePath();
    to.fill();
    if (arrow.ranT !== null) {
      const ran = column(arrow.ranT);
      to.fillRect(x1, y1 - dpr, Math.max(ran - x1, 1), 2 * dpr);
    }
    if (arrow.label) {
      to.font = `600 ${11 * dpr}px system-ui, sans-serif`;
      to.textBaseline = "bottom";
      const x = Math.min(Math.max(x1 + 6 * dpr, 4), width - to.measureText(arrow.label).width - 4);
      const y = (y0 + y1) / 2;
      const w = to.measureText(arrow.label).width;
      to.fillStyle = palette === DARK ? "rgba(20,23,27,0.85)" : "rgba(255,255,255,0.88)";
      to.fillRect(x - 2 * dpr, y - 15 * dpr, w + 4 * dpr, 15 * dpr);
      to.fillStyle = colour;
      to.fillText(arrow.label, x, y);
    }
  }
  if (overlay.head !== null) {
    to.fillStyle = palette === DARK ? "#7fb0ff" : "#1a5fd0";
    to.fillRect(Math.round(column(overlay.head)), 0, Math.max(1, Math.round(dpr)), height);
  }
}

function ruler(to: OffscreenCanvasRenderingContext2D): void {
  to.fillStyle = `rgb(${palette.stripe.join(",")})`;
  to.fillRect(0, 0, width, RULER * dpr);
  to.fillStyle = palette.line;
  to.fillRect(0, RULER * dpr - 1, width, 1);
  to.font = `${11 * dpr}px system-ui, sans-serif`;
  to.textBaseline = "middle";
  const { first, step } = ticks(view, width / dpr, 110);
  for (let t = first; t < view.to; t += step) {
    const x = column(t);
    to.fillStyle = palette.line;
    to.fillRect(Math.round(x), 0, 1, RULER * dpr);
    if (t < -step / 2) continue;
    to.fillStyle = palette.quiet;
    to.fillText(tickText(Math.max(t, 0), step), x + 4 * dpr, (RULER / 2) * dpr);
  }
  if (overlay.head !== null) {
    to.fillStyle = palette === DARK ? "#7fb0ff" : "#1a5fd0";
    const x = column(overlay.head);
    to.beginPath();
    to.moveTo(x - 5 * dpr, 0);
    to.lineTo(x + 5 * dpr, 0);
    to.lineTo(x, 8 * dpr);
    to.fill();
  }
}

/** Asks for what is missing, all rows in one request; a request that is no longer wanted is ended. */
function request(): boolean {
  if (carried) return true;
  if (!rows || !base) return false;
  const wanted = tileView(view, width, end);
  const missing: string[] = [];
  for (let row = 0; row < rows.n && missing.length < 512; row++) {
    const kind = rows.kind[row]!;
    if (kind === ROW_GROUP || kind === ROW_LOAD) continue;
    const y = rows.y[row]! - scroll + RULER;
    // A screen above and below, so that scrolling finds what it needs.
    if (y + rows.height[row]! < -height / dpr / 2 || y > (height / dpr) * 1.5) continue;
    const key = trackOf(kind, rows.id[row]!);
    const has = held.get(key);
    if (!has || !covers(has.tile, view, width, end)) missing.push(key);
  }
  if (missing.length === 0) return true;
  const key = `${wanted.from}/${wanted.shift}/${wanted.bins}/${missing.join()}`;
  if (asking?.key === key) return false;
  asking?.abort.abort();
  const abort = new AbortController();
  asking = { key, abort };
  void fetchTiles(missing, wanted, abort).finally(() => {
    if (asking?.abort === abort) asking = null;
  });
  return false;
}

async function fetchTiles(
  keys: string[],
  wanted: TileView,
  abort: AbortController,
): Promise<void> {
  const began = performance.now();
  const query = `tracks=${keys.join()}&from=${wanted.from}&shift=${wanted.shift}&bins=${wanted.bins}`;
  try {
    const response = await fetch(`${base}/tiles?${query}`, { signal: abort.signal });
    if (!response.ok) {
      post({ type: "failed", why: (await response.text()).trim() });
      return;
    }
    const buffer = await response.arrayBuffer();
    const tile = decode(buffer);
    tileTimes.push(performance.now() - began);
    tileBytes.push(buffer.byteLength);
    if (held.size > 4096) held.clear();
    tile.tracks.forEach((part, i) => held.set(keys[i]!, { tile: wanted, part }));
    redraw();
  } catch (error) {
    if ((error as Error).name === "AbortError") return;
    post({ type: "failed", why: "the server does not respond: is hangdog open still running?" });
  }
}


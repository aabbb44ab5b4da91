// What the page and its drawing worker say to each other. Numbers in typed arrays, once for each
// change; a movement of the view is one small message.

import type { Span, TileView } from "./view";

/** What a row shows. */
export const ROW_GROUP = 0;
export const ROW_THREAD = 1;
export const ROW_CPU = 2;
export const ROW_LOAD = 3;
export const ROW_REGION = 4;
export const ROW_CALLS = 5;

/** A row is emphasised: a problem's path goes through it. */
export const ON_PATH = 1;
/** A row steps back. */
export const DIMMED = 2;
/** A row is selected. */
export const SELECTED = 4;

/** The rows, top to bottom. */
export interface Rows {
  n: number;
  kind: Uint8Array;
  /** utid (of system calls too), CPU, upid, or the number of a region's name. */
  id: Uint32Array;
  y: Int32Array;
  height: Uint8Array;
  flags: Uint8Array;
  /** Life of a thread, ns. */
  born: Float64Array;
  died: Float64Array;
}

/** A line from a waker to whom it woke. */
export interface Arrow {
  fromRow: number;
  fromT: number;
  toRow: number;
  toT: number;
  /** When the woken thread then had a CPU; the delay is drawn as a segment. */
  ranT: number | null;
  style: "solid" | "dashed" | "dotted";
  label: string;
}

/** What lies over the tracks. */
export interface Overlay {
  /** The problem that is looked at. */
  problem: Span | null;
  /** Parts of rows that the path goes through: row, from, to. */
  path: { row: number; from: number; to: number }[];
  arrows: Arrow[];
  /** The selected interval. */
  selected: { row: number; from: number; to: number } | null;
  /** A range that was dragged. */
  range: Span | null;
  /** The inspection head. */
  head: number | null;
  gaps: { cpu: number | null; from: number; to: number }[];
}

export type ToWorker =
  | { type: "init"; canvas: OffscreenCanvas; base: string; end: number }
  | { type: "size"; width: number; height: number; dpr: number; dark: boolean }
  | { type: "view"; view: Span; scroll: number }
  | { type: "rows"; rows: Rows }
  | { type: "names"; utids: Uint32Array; names: string[] }
  | { type: "calls"; names: Record<string, string> }
  | { type: "load"; average: Float32Array; width: number; cpus: number }
  | { type: "overlay"; overlay: Overlay }
  | { type: "carried"; view: TileView; names: string[]; buffers: ArrayBuffer[] }
  | { type: "stats" };

export type FromWorker =
  | { type: "drawn"; settled: boolean }
  | { type: "failed"; why: string }
  | { type: "stats"; frames: Float32Array; tiles: Float32Array; bytes: Float32Array };

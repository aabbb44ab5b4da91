// Which rows there are, in which order: those on the path, the CPUs, then threads by process.

import type { CallTrack, RegionTrack, Thread } from "./api";
import { duration } from "./format";
import {
  DIMMED,
  ON_PATH,
  ROW_CALLS,
  ROW_CPU,
  ROW_GROUP,
  ROW_LOAD,
  ROW_REGION,
  ROW_THREAD,
  SELECTED,
  type Rows,
} from "./scene";

export type Sort = "busy" | "waiting" | "name";

/** A row as the list beside the canvas shows it. */
export interface Row {
  kind: number;
  /** What it is known by: stays the same when rows come and go. */
  key: string;
  id: number;
  label: string;
  note: string;
  thread: Thread | null;
  height: number;
  y: number;
  onPath: boolean;
  dimmed: boolean;
  /** Of a group: whether its rows are shown; of others null. */
  open: boolean | null;
  level: number;
  pinned: boolean;
}

export interface Choice {
  threads: Thread[];
  cpus: number;
  /** The threads on the problem's path, in its order. */
  path: number[];
  pinned: ReadonlySet<number>;
  /** Groups that the user opened or closed, by key. */
  open: ReadonlyMap<string, boolean>;
  sort: Sort;
  filter: string;
  height: number;
  /** The names of regions that programs marked. */
  regions: RegionTrack[];
  /** The system calls of threads, by utid. */
  calls: ReadonlyMap<number, CallTrack>;
  /** Whose load is known; null where none is. */
  load: string | null;
  /** Whether what is not on the path steps back. */
  dim: boolean;
}

/** So many processes are open at first: those that did most. */
const OPEN_AT_FIRST = 4;

const busy = (t: Thread): number => t.states_ns[0]! + t.states_ns[4]!;
const waiting = (t: Thread): number => t.states_ns[1]! + t.states_ns[2]!;

/** Whether a thread did nothing in the whole trace. */
export const isIdle = (t: Thread): boolean => busy(t) + waiting(t) === 0;

function order(sort: Sort): (a: Thread, b: Thread) => number {
  const by = sort === "waiting" ? waiting : busy;
  return (a, b) =>
    sort === "name"
      ? a.thread.localeCompare(b.thread) || a.utid - b.utid
      : by(b) - by(a) || a.utid - b.utid;
}

/** Whether a thread is meant by what was typed: a part of its names or its tid. */
export function matches(t: Thread, filter: string): boolean {
  const wanted = filter.trim().toLowerCase();
  if (!wanted) return true;
  return `${t.process}/${t.thread} ${t.tid} ${t.pid}`.toLowerCase().includes(wanted);
}

/** All rows, top to bottom. */
export function build(choice: Choice): Row[] {
  const rows: Row[] = [];
  let y = 0;
  const push = (row: Omit<Row, "y">): void => {
    rows.push({ ...row, y });
    y += row.height;
  };
  const group = (key: string, id: number, label: string, note: string, open: boolean): void =>
    push({
      kind: ROW_GROUP,
      key,
      id,
      label,
      note,
      thread: null,
      height: 24,
      onPath: false,
      dimmed: choice.dim && key !== "path" && key !== "cpus" && key !== "regions",
      open,
      level: 1,
      pinned: false,
    });
  const byId = new Map(choice.threads.map((t) => [t.utid, t]));
  const thread = (t: Thread, section: string, onPath: boolean): void => {
    push({
      kind: ROW_THREAD,
      key: `${section}:${t.utid}`,
      id: t.utid,
      label: onPath || section === "pin" ? `${t.process}/${t.thread}` : t.thread,
      note: String(t.tid),
      thread: t,
      height: onPath ? Math.max(choice.height, 26) : choice.height,
      onPath,
      dimmed: choice.dim && !onPath,
      open: null,
      level: 2,
      pinned: choice.pinned.has(t.utid),
    });
    const calls = choice.calls.get(t.utid);
    if (!calls) return;
    push({
      kind: ROW_CALLS,
      key: `${section}:${t.utid}:calls`,
      id: t.utid,
      label: "system calls",
      note: `${calls.count} · ${duration(calls.sum_ns)}`,
      thread: null,
      height: 18,
      onPath: false,
      dimmed: choice.dim && !onPath,
      open: null,
      level: 3,
      pinned: false,
    });
  };
  const isOpen = (key: string, otherwise: boolean): boolean => choice.open.get(key) ?? otherwise;

  const path = [...new Set(choice.path)].map((id) => byId.get(id)).filter((t) => t !== undefined);
  if (path.length > 0) {
    const open = isOpen("path", true);
    group("path", 0, "On the path", `${path.length} ${path.length === 1 ? "thread" : "threads"}`, open);
    if (open) for (const t of path) thread(t, "path", true);
  }
  const pinned = choice.threads.filter((t) => choice.pinned.has(t.utid));
  if (pinned.length > 0) {
    group("pin", 0, "Pinned", String(pinned.length), isOpen("pin", true));
    if (isOpen("pin", true)) for (const t of pinned) thread(t, "pin", false);
  }
  const wanted = choice.filter.trim().toLowerCase();
  const regions = choice.regions
    .map((region, id) => ({ region, id }))
    .filter(({ region }) => region.name.toLowerCase().includes(wanted));
  if (regions.length > 0) {
    const open = isOpen("regions", true);
    group("regions", 0, "Regions", `${regions.length}, coloured by argument`, open);
    for (const { region, id } of open ? regions : []) {
      push({
        kind: ROW_REGION,
        key: `r${id}`,
        id,
        label: region.name,
        note: `${region.count} · ${duration(region.sum_ns)}`,
        thread: null,
        height: 20,
        onPath: false,
        dimmed: false,
        open: null,
        level: 2,
        pinned: false,
      });
    }
  }
  if (choice.cpus > 0) {
    const open = isOpen("cpus", true);
    group("cpus", 0, "CPUs", `${choice.cpus}`, open);
    if (open) {
      const row = { thread: null, onPath: false, dimmed: false, open: null, level: 2, pinned: false };
      if (choice.load !== null) {
        push({ ...row, kind: ROW_LOAD, key: "load", id: 0, label: "Load", note: choice.load, height: 34 });
      }
      for (let cpu = 0; cpu < choice.cpus; cpu++) {
        push({ ...row, kind: ROW_CPU, key: `c${cpu}`, id: cpu, label: `CPU ${cpu}`, note: "", height: 20 });
      }
    }
  }
  const onPathThreads = new Set(path.map((t) => t.utid));
  const processes = new Map<number, Thread[]>();
  for (const t of choice.threads) {
    // What is on the path is above already.
    if (!matches(t, choice.filter) || onPathThreads.has(t.utid)) continue;
    const list = processes.get(t.upid);
    if (list) list.push(t);
    else processes.set(t.upid, [t]);
  }
  const by = order(choice.sort);
  const sum = (list: Thread[], of: (t: Thread) => number): number =>
    list.reduce((all, t) => all + of(t), 0);
  const onPath = new Set(path.map((t) => t.upid));
  const sorted = [...processes.values()].sort((a, b) => {
    const first = Number(onPath.has(b[0]!.upid)) - Number(onPath.has(a[0]!.upid));
    if (first !== 0) return first;
    if (choice.sort === "name") return a[0]!.process.localeCompare(b[0]!.process);
    const of = choice.sort === "waiting" ? waiting : busy;
    return sum(b, of) - sum(a, of);
  });
  let opened = 0;
  for (const list of sorted) {
    const idle = list.filter(isIdle);
    const active = list.filter((t) => !isIdle(t)).sort(by);
    const first = list[0]!;
    const key = `p${first.upid}`;
    const title = first.is_kernel ? "Kernel" : first.process;
    const otherwise =
      !first.is_kernel && active.length > 0 && (onPath.has(first.upid) || opened < OPEN_AT_FIRST);
    const open = choice.filter.trim() !== "" || isOpen(key, otherwise);
    if (open && !first.is_kernel) opened++;
    const note = `${first.is_kernel ? "" : `${first.pid} · `}${list.length} ${list.length === 1 ? "thread" : "threads"}`;
    group(key, first.upid, title, note, open);
    if (!open) continue;
    for (const t of active) thread(t, "t", false);
    if (idle.length === 0) continue;
    const idleKey = `i${first.upid}`;
    const showIdle = isOpen(idleKey, active.length === 0);
    push({
      kind: ROW_GROUP,
      key: idleKey,
      id: first.upid,
      label: `${idle.length} without activity`,
      note: "",
      thread: null,
      height: 20,
      onPath: false,
      dimmed: choice.dim,
      open: showIdle,
      level: 2,
      pinned: false,
    });
    if (showIdle) for (const t of idle.sort(by)) thread(t, "t", false);
  }
  return rows;
}

/** The same for the worker that draws. */
export function columns(rows: Row[], selected: string | null): Rows {
  const n = rows.length;
  const all: Rows = {
    n,
    kind: new Uint8Array(n),
    id: new Uint32Array(n),
    y: new Int32Array(n),
    height: new Uint8Array(n),
    flags: new Uint8Array(n),
    born: new Float64Array(n),
    died: new Float64Array(n),
  };
  rows.forEach((row, i) => {
    all.kind[i] = row.kind;
    all.id[i] = row.id;
    all.y[i] = row.y;
    all.height[i] = row.height;
    all.flags[i] =
      (row.onPath ? ON_PATH : 0) | (row.dimmed ? DIMMED : 0) | (row.key === selected ? SELECTED : 0);
    all.born[i] = row.thread?.start_ns ?? 0;
    all.died[i] = row.thread?.end_ns ?? 0;
  });
  return all;
}

/** The row of a thread: where it is on the path, if it is; that of its group where it is folded. */
export function rowOf(rows: Row[], utid: number, threads: Thread[]): number {
  const own = rows.findIndex((row) => row.kind === ROW_THREAD && row.id === utid);
  if (own >= 0) return own;
  const upid = threads.find((t) => t.utid === utid)?.upid;
  return rows.findIndex((row) => row.key === `p${upid}`);
}

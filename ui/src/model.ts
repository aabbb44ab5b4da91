// The state of the page for one trace, and what can be done with it. Components show it and call
// these actions; keys and mouse do the same.

import { batch, createEffect, createMemo, createSignal, on, onCleanup } from "solid-js";
import { read, write } from "./address";
import {
  ask,
  tell,
  type At,
  type CallTrack,
  type Called,
  type Calls,
  type Load,
  type NamedView,
  type Problem,
  type Region,
  type RegionTrack,
  type Thread,
  type TraceState,
  type Verdict,
} from "./api";
import { build, columns, rowOf, type Sort } from "./rows";
import { carried } from "./single";
import { ROW_THREAD, type Arrow, type Overlay } from "./scene";
import { clamp, middleHalf, pan, zoom, type Span } from "./view";

/** The edges of who should have ended a wait, and did not. */
const SHOULD_HAVE = new Set(["holder", "peer", "asked", "awaited", "habit", "killed", "amid"]);

const endOf = (called: Called): number => called.start_ns + called.duration_ns;

/** A part of a thread's life that is explained because the user asked. */
interface Picked {
  thread: number;
  from: number;
  to: number;
}

/** Whose load is counted: of a process, or of what is at a priority or above. */
export interface LoadOf {
  text: string;
  process: number | null;
  priority: number | null;
}

export const OF_ALL: LoadOf = { text: "of all", process: null, priority: null };

export type Tab = "path" | "story" | "time" | "flame" | "awake" | "compare" | "about";

export function createModel(id: number) {
  const base = `/api/traces/${id}`;
  const place = read(location.hash);
  const [state, setState] = createSignal<TraceState | null>(null);
  const [failure, setFailure] = createSignal("");
  const [threads, setThreads] = createSignal<Thread[]>([]);
  const [load, setLoad] = createSignal<Load | null>(null);
  const [loadOf, setLoadOf] = createSignal<LoadOf>(OF_ALL);
  const [regions, setRegions] = createSignal<RegionTrack[]>([]);
  const [calls, setCalls] = createSignal<ReadonlyMap<number, CallTrack>>(new Map());
  const [callNames, setCallNames] = createSignal<Record<string, string>>({});
  const [selectedRegion, setSelectedRegion] = createSignal<Region | null>(null);
  const [problems, setProblems] = createSignal<Problem[] | null>(null);
  const [verdict, setVerdict] = createSignal<Verdict | null>(null);
  const [verdictError, setVerdictError] = createSignal("");
  const [chosen, setChosen] = createSignal<number | null>(place.problem);
  const [picked, setPicked] = createSignal<Picked | null>(null);
  const [view, setViewSignal] = createSignal<Span>({ from: 0, to: 1 });
  const [sort, setSort] = createSignal<Sort>("busy");
  const [filter, setFilter] = createSignal("");
  const [views, setViews] = createSignal<NamedView[]>([]);
  const [height, setHeight] = createSignal(22);
  const [pinned, setPinned] = createSignal<ReadonlySet<number>>(new Set());
  const [open, setOpen] = createSignal<ReadonlyMap<string, boolean>>(new Map());
  const [selectedKey, setSelectedKey] = createSignal<string | null>(null);
  const [at, setAt] = createSignal<At | null>(null);
  const [chain, setChain] = createSignal<Arrow[]>([]);
  const [head, setHead] = createSignal<number | null>(null);
  const [range, setRange] = createSignal<Span | null>(null);
  const [tab, setTab] = createSignal<Tab>("path");
  const [helps, setHelps] = createSignal(false);
  const [scrollTo, setScrollTo] = createSignal<{ key: string; n: number } | null>(null);
  const [gone, setGone] = createSignal("");

  const end = () => state()?.duration_ns ?? 1;
  const path = createMemo(() => verdict()?.path.map((step) => step.utid) ?? []);
  const rows = createMemo(() =>
    build({
      threads: threads(),
      cpus: state()?.cpus ?? 0,
      path: path(),
      pinned: pinned(),
      open: open(),
      sort: sort(),
      filter: filter(),
      height: height(),
      regions: regions(),
      calls: calls(),
      load: load() === null ? null : loadOf().text,
      dim: verdict() !== null,
    }),
  );
  const cols = createMemo(() => columns(rows(), selectedKey()));
  const selectedThread = createMemo(() => {
    const key = selectedKey();
    const row = key === null ? undefined : rows().find((row) => row.key === key);
    return row?.kind === ROW_THREAD ? row.thread : null;
  });

  /** The region that is selected, as long as the range is its time. */
  const region = createMemo(() => {
    const [found, of] = [selectedRegion(), range()];
    const isIt =
      found && of?.from === found.start_ns && of.to === found.start_ns + found.duration_ns;
    return isIt ? found : null;
  });

  const setView = (next: Span) => setViewSignal(clamp(next, end()));

  // Reading ------------------------------------------------------------------------------------

  let stopped = false;
  onCleanup(() => (stopped = true));
  async function follow() {
    while (!stopped) {
      try {
        const now = await ask<TraceState>(base);
        if (now.phase === "failed") {
          setFailure(now.error ?? "the trace cannot be read");
          return;
        }
        const isNew = state()?.duration_ns === undefined && now.phase !== "reading";
        setState(now);
        if (isNew) await begin();
        if (now.phase === "ready") break;
      } catch (error) {
        setFailure((error as Error).message);
        return;
      }
      await new Promise((done) => setTimeout(done, 120));
    }
  }

  async function begin() {
    const { from, to } = place;
    setView(from !== null && to !== null && to > from ? { from, to } : { from: 0, to: end() });
    const found = await ask<{ threads: Thread[] }>(`${base}/threads`);
    setThreads(found.threads);
    ask<Calls>(`${base}/calls`).then(
      (found) =>
        batch(() => {
          setCallNames(found.names);
          setCalls(new Map(found.threads.map((thread) => [thread.utid, thread])));
        }),
      (e: Error) => setGone(e.message),
    );
    if (!carried) {
      void countLoad(OF_ALL);
      ask<{ views: NamedView[]; chosen: string | null }>("/api/views").then(
        (found) => {
          setViews(found.views);
          const chosen = found.views.find((view) => view.name === found.chosen);
          if (chosen) look(chosen);
        },
        (e: Error) => setGone(e.message),
      );
      ask<{ tracks: RegionTrack[] }>(`${base}/regions`).then(
        (found) => setRegions(found.tracks),
        (e: Error) => setGone(e.message),
      );
    }
    void judge();
  }

  /** Sorts and finds threads as a view has it. */
  function look(view: NamedView) {
    batch(() => {
      if (view.sort !== null) setSort(view.sort);
      setFilter(view.filter);
    });
  }

  /** Asks the server for the load of the chosen threads. */
  async function countLoad(of: LoadOf) {
    // At least 10 ms, and no more intervals than the server counts.
    const width = Math.max(10_000_000, Math.ceil(end() / 50_000));
    try {
      const found = await ask<Load>(`${base}/load`, {
        width,
        process: of.process,
        priority: of.priority,
      });
      batch(() => {
        setLoad(found);
        setLoadOf(of);
      });
    } catch (error) {
      setGone((error as Error).message);
    }
  }

  async function judge() {
    try {
      const first = await ask<Verdict>(`${base}/verdict`, { problem: chosen() });
      const restores = place.from !== null;
      show(first, first.number ?? 1, !restores);
      if (place.thread !== null && place.t !== null) void select(place.thread, place.t);
    } catch (error) {
      setVerdictError((error as Error).message);
      setChosen(null);
      setTab("time");
    }
    try {
      setProblems((await ask<{ problems: Problem[] }>(`${base}/problems`)).problems);
    } catch {
      setProblems([]);
    }
  }

  function show(found: Verdict, number: number | null, zooms: boolean, of: Picked | null = null) {
    batch(() => {
      setPicked(of);
      setVerdict(found);
      setVerdictError("");
      setChosen(number);
      const start = found.problem.start_ns;
      if (zooms) setView(middleHalf({ from: start, to: start + found.problem.duration_ns }));
      setChain([]);
      setAt(null);
    });
  }

  // Actions ------------------------------------------------------------------------------------

  async function openProblem(number: number) {
    try {
      const found = await ask<Verdict>(`${base}/verdict`, { problem: number });
      show(found, number, true);
      setTab("path");
      setScrollTo({ key: "path", n: Math.random() });
      push();
    } catch (error) {
      setGone((error as Error).message);
    }
  }

  /** Explains a part of a thread's life, whether it is a problem or not. */
  async function explain(thread: number, span: Span) {
    const asked = { thread, from: Math.floor(span.from), to: Math.ceil(span.to) };
    try {
      const found = await ask<Verdict>(`${base}/verdict`, asked);
      batch(() => {
        show(found, null, false, asked);
        setTab("path");
        setScrollTo({ key: "path", n: Math.random() });
      });
    } catch (error) {
      setGone((error as Error).message);
    }
  }

  async function say(what: { question: number; choice: string } | { forget: number }) {
    const of = picked() ?? { problem: chosen() };
    const found = await tell<Verdict>(`${base}/answers`, { ...of, ...what });
    show(found, chosen(), false, picked());
    setProblems((await ask<{ problems: Problem[] }>(`${base}/problems`)).problems);
  }
  const answer = (question: number, choice: string) => say({ question, choice });
  const forget = (answered: number) => say({ forget: answered });

  /** The row of a thread, made visible: its group is opened. */
  function reveal(utid: number): string | null {
    let row = rows().find((row) => row.kind === ROW_THREAD && row.id === utid);
    if (!row) {
      const thread = threads().find((t) => t.utid === utid);
      if (!thread) return null;
      const opened = new Map(open());
      opened.set(`p${thread.upid}`, true).set(`i${thread.upid}`, true);
      batch(() => {
        setOpen(opened);
        setFilter("");
      });
      row = rows().find((row) => row.kind === ROW_THREAD && row.id === utid);
    }
    if (row) setScrollTo({ key: row.key, n: Math.random() });
    return row?.key ?? null;
  }

  let asked = 0;
  /** Selects the interval of a thread at a moment, and draws who ended it, if it is a wait. */
  async function select(utid: number, t: number, key?: string) {
    const turn = ++asked;
    const row = key ?? reveal(utid);
    batch(() => {
      setSelectedKey(row);
      setHead(t);
      if (tab() === "path" || tab() === "about") setTab("story");
    });
    try {
      const found = await ask<At>(`${base}/at`, { thread: utid, t });
      if (turn !== asked) return;
      batch(() => {
        setAt(found);
        setChain([]);
        const arrow = arrowOf(found);
        if (arrow) setChain([arrow]);
      });
    } catch (error) {
      if (turn !== asked) return;
      setAt(null);
      setChain([]);
      setGone((error as Error).message);
    }
    push(true);
  }

  /** Selects the region that a track shows at a moment, and the thread that was in it. */
  async function selectRegion(track: number, t: number, key: string) {
    try {
      const found = await ask<Region>(`${base}/region`, { track, t: Math.floor(t) });
      await select(found.thread.utid, found.start_ns);
      batch(() => {
        setSelectedRegion(found);
        setRange({ from: found.start_ns, to: found.start_ns + found.duration_ns });
      });
    } catch (error) {
      const why = (error as Error).message;
      batch(() => {
        setHead(t);
        setSelectedKey(key);
        // Between two of them there is nothing to say.
        if (!why.startsWith("no region")) setGone(why);
      });
    }
  }

  /** The system call that is selected, in a line, as long as the range is its time. */
  const call = createMemo(() => {
    const [found, of] = [at(), range()];
    const called = found?.call;
    const isIt = called && of?.from === called.start_ns && of.to === endOf(called);
    return isIt ? found.call_text : null;
  });

  /** Selects the system call that a thread is in at a moment. */
  async function selectCall(utid: number, t: number, key: string) {
    await select(utid, t, key);
    const called = at()?.call;
    if (called) setRange({ from: called.start_ns, to: endOf(called) });
  }

  function arrowOf(found: At): Arrow | null {
    const ended = found.ended;
    if (!ended) return null;
    const toRow = rowOf(rows(), found.thread.utid, threads());
    const fromRow = ended.by ? rowOf(rows(), ended.by.utid, threads()) : -1;
    const wakes = ended.wake !== null;
    return {
      fromRow,
      // Who should have come never did: the line goes to the wait's begin.
      fromT: ended.was_seen ? ended.at_ns : found.entry.start_ns,
      toRow,
      toT: ended.was_seen ? ended.at_ns : found.entry.start_ns,
      ranT: wakes ? ended.ran_ns : null,
      style: !ended.was_seen ? "dotted" : ended.edge.strength === "strong" ? "solid" : "dashed",
      label: ended.by ? ended.edge.kind : `${ended.source}: ${ended.edge.kind}`,
    };
  }

  /** Goes along the wake: selects what the waker did when it woke, or who it should have been. */
  async function along(back: boolean) {
    const found = at();
    if (!found) return;
    if (back) {
      const by = found.ended?.by;
      if (by) await select(by.utid, Math.max(0, (found.ended?.at_ns ?? 0) - 1));
      return;
    }
    const by = found.entry.by;
    if (by) await select(by.utid, found.entry.start_ns);
  }

  /** The neighbouring interval. */
  async function neighbour(by: 1 | -1) {
    const found = at();
    if (!found) return;
    const start = found.entry.start_ns;
    const t = by > 0 ? start + found.entry.duration_ns : start - 1;
    if (t >= 0 && t < end()) {
      await select(found.thread.utid, t, selectedKey() ?? undefined);
      if (t < view().from || t > view().to) centre(t);
    }
  }

  function centre(t: number) {
    const width = view().to - view().from;
    setView({ from: t - width / 2, to: t + width / 2 });
  }

  /** What F and Z go to: the range, the selected interval, or the problem. */
  function focus() {
    const found = at();
    const of = range();
    if (of) setView(of);
    else if (found) {
      const start = found.entry.start_ns;
      setView(middleHalf({ from: start, to: start + found.entry.duration_ns }));
    } else if (verdict()) {
      const { start_ns: start, duration_ns: ns } = verdict()!.problem;
      setView(middleHalf({ from: start, to: start + ns }));
    }
    push();
  }

  function all() {
    setView({ from: 0, to: end() });
    push();
  }

  function clear() {
    batch(() => {
      setRange(null);
      setAt(null);
      setChain([]);
      setSelectedKey(null);
      setHelps(false);
      setGone("");
    });
  }

  function toggle(key: string, isOpen: boolean) {
    setOpen(new Map(open()).set(key, !isOpen));
  }

  function pin(utid: number) {
    const next = new Set(pinned());
    if (!next.delete(utid)) next.add(utid);
    setPinned(next);
  }

  // The address ------------------------------------------------------------------------------------

  const address = () =>
    write({
      trace: id,
      from: view().from,
      to: view().to,
      problem: chosen(),
      thread: at()?.thread.utid ?? null,
      t: head(),
    });
  /** A step that back undoes; or, `quietly`, none. */
  function push(quietly = false) {
    if (quietly) history.replaceState(null, "", address());
    else history.pushState(null, "", address());
  }
  let timer = 0;
  createEffect(
    on(view, () => {
      clearTimeout(timer);
      if (state()?.duration_ns) timer = window.setTimeout(() => push(true), 400);
    }),
  );
  const restore = () => {
    const place = read(location.hash);
    if (place.trace !== id) return;
    clearTimeout(timer);
    const { from, to } = place;
    if (from !== null && to !== null && to > from) setView({ from, to });
    if (place.problem !== null && place.problem !== chosen()) {
      ask<Verdict>(`${base}/verdict`, { problem: place.problem }).then(
        (found) => show(found, place.problem!, false),
        (error: Error) => setGone(error.message),
      );
    }
  };
  addEventListener("popstate", restore);
  onCleanup(() => {
    removeEventListener("popstate", restore);
    clearTimeout(timer);
  });

  // What lies over the tracks ------------------------------------------------------------------------------------

  const overlay = createMemo<Overlay>(() => {
    const found = verdict();
    const list = rows();
    const problem = found?.problem;
    const selected = at();
    const row = list.findIndex((row) => row.key === selectedKey());
    const parts = (found?.path ?? []).map((step) => ({
      row: rowOf(list, step.utid, threads()),
      from: step.from_ns,
      to: step.to_ns,
    }));
    // From each step to the one that it kept waiting, where that wait ended.
    const links: Arrow[] = (found?.path ?? []).slice(1).map((step, i) => {
      const above = found!.path[i]!;
      const never = above.edge !== null && SHOULD_HAVE.has(above.edge.kind);
      return {
        fromRow: rowOf(list, step.utid, threads()),
        fromT: never ? above.from_ns : above.to_ns,
        toRow: rowOf(list, above.utid, threads()),
        toT: never ? above.from_ns : above.to_ns,
        ranT: null,
        style: never ? "dotted" : above.edge?.strength === "strong" ? "solid" : "dashed",
        label: above.edge?.kind ?? "",
      };
    });
    return {
      problem: problem
        ? { from: problem.start_ns, to: problem.start_ns + problem.duration_ns }
        : null,
      path: parts.filter((part) => part.row >= 0),
      arrows: chain().length > 0 ? chain() : links,
      selected:
        selected && row >= 0
          ? {
              row,
              from: selected.entry.start_ns,
              to: selected.entry.start_ns + selected.entry.duration_ns,
            }
          : null,
      range: range(),
      head: head(),
      gaps: (state()?.gaps ?? []).map((gap) => ({ cpu: gap.cpu, from: gap.from_ns, to: gap.to_ns })),
    };
  });
  // Rows move when groups open: arrows follow.
  createEffect(
    on(rows, () => {
      const found = at();
      const arrow = found ? arrowOf(found) : null;
      if (arrow && chain().length > 0) setChain([arrow]);
    }, { defer: true }),
  );

  void follow();
  return {
    id,
    base,
    state,
    failure,
    threads,
    load,
    loadOf,
    countLoad,
    problems,
    verdict,
    verdictError,
    chosen,
    view,
    setView,
    end,
    rows,
    cols,
    overlay,
    sort,
    setSort,
    filter,
    setFilter,
    views,
    look,
    height,
    setHeight,
    open,
    toggle,
    pin,
    selectedKey,
    setSelectedKey,
    selectedThread,
    selectRegion,
    selectCall,
    call,
    callNames,
    region,
    at,
    head,
    setHead,
    range,
    setRange,
    tab,
    setTab,
    helps,
    setHelps,
    scrollTo,
    gone,
    setGone,
    openProblem,
    explain,
    picked,
    answer,
    forget,
    reveal,
    select,
    along,
    neighbour,
    centre,
    focus,
    all,
    clear,
    push,
    zoom: (factor: number, around?: number) =>
      setView(zoom(view(), factor, around ?? (view().from + view().to) / 2)),
    pan: (share: number) => setView(pan(view(), share)),
  };
}

export type Model = ReturnType<typeof createModel>;

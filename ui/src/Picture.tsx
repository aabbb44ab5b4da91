// The tracks: names at the left, the canvas at the right, which a worker draws.

import { For, Show, createEffect, createMemo, createSignal, on, onCleanup, onMount } from "solid-js";
import { STATE_NAMES } from "./colours";
import { duration, moment, percent } from "./format";
import type { Region } from "./api";
import { OF_ALL, type LoadOf, type Model } from "./model";
import {
  ROW_CPU,
  ROW_GROUP,
  ROW_CALLS,
  ROW_REGION,
  ROW_THREAD,
  type FromWorker,
  type ToWorker,
} from "./scene";
import type { Row, Sort } from "./rows";
import { carriedTiles, drawingWorker } from "./single";

const RULER = 22;
/** A movement of the mouse shorter than this is a click, pixels. */
const CLICK = 4;

export function Picture(props: { model: Model }) {
  const { model } = props;
  let canvas!: HTMLCanvasElement;
  let box!: HTMLDivElement;
  let list!: HTMLDivElement;
  const worker = drawingWorker();
  const send = (message: ToWorker, transfer: Transferable[] = []) =>
    worker.postMessage(message, transfer);
  onCleanup(() => worker.terminate());
  const [scroll, setScroll] = createSignal(0);
  const [tall, setTall] = createSignal(300);
  const [hover, setHover] = createSignal<{ x: number; text: string } | null>(null);
  let width = 1;

  worker.onmessage = (event: MessageEvent<FromWorker>) => {
    if (event.data.type === "failed") model.setGone(event.data.why);
    if (event.data.type === "drawn") box.dataset.settled = String(event.data.settled);
    if (event.data.type === "stats") {
      dispatchEvent(new CustomEvent("hangdog-stats", { detail: event.data }));
    }
  };

  onMount(() => {
    const offscreen = canvas.transferControlToOffscreen();
    const tiles = carriedTiles();
    const base = tiles ? "" : model.base;
    send({ type: "init", canvas: offscreen, base, end: model.end() }, [offscreen]);
    if (tiles) send({ type: "carried", ...tiles }, tiles.buffers);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const size = () => {
      const area = box.getBoundingClientRect();
      width = Math.max(1, area.width);
      setTall(Math.max(40, area.height));
      send({
        type: "size",
        width,
        height: Math.max(40, area.height),
        dpr: devicePixelRatio,
        dark: dark.matches,
      });
    };
    const observer = new ResizeObserver(size);
    observer.observe(box);
    dark.addEventListener("change", size);
    const stats = () => send({ type: "stats" });
    addEventListener("hangdog-measure", stats);
    // The wheel moves the picture and must not scroll or zoom the page.
    box.addEventListener("wheel", onWheel, { passive: false });
    list.addEventListener("wheel", onWheel, { passive: false });
    onCleanup(() => {
      observer.disconnect();
      dark.removeEventListener("change", size);
      removeEventListener("hangdog-measure", stats);
    });
  });

  createEffect(() => send({ type: "rows", rows: model.cols() }));
  createEffect(() => send({ type: "overlay", overlay: model.overlay() }));
  createEffect(() => send({ type: "view", view: model.view(), scroll: scroll() }));
  createEffect(() => {
    const threads = model.threads();
    send({
      type: "names",
      utids: Uint32Array.from(threads, (t) => t.utid),
      names: threads.map((t) => t.thread),
    });
  });
  createEffect(() => send({ type: "calls", names: model.callNames() }));
  createEffect(() => {
    const load = model.load();
    if (!load) return;
    const average = Float32Array.from(load.average);
    send({ type: "load", average, width: load.width_ns, cpus: load.cpus }, [average.buffer]);
  });

  /** Whose load can be chosen: all, what goes before others, and each process. */
  const loads = createMemo<LoadOf[]>(() => {
    const processes = new Map<number, LoadOf>();
    for (const t of model.threads()) {
      if (t.is_kernel) continue;
      processes.set(t.upid, { text: `of ${t.process} (${t.pid})`, process: t.upid, priority: null });
    }
    return [
      OF_ALL,
      { text: "of realtime threads", process: null, priority: 98 },
      { text: "of nice 0 and before", process: null, priority: 120 },
      ...[...processes.values()].sort((a, b) => a.text.localeCompare(b.text)),
    ];
  });

  const total = createMemo(() => {
    const last = model.rows().at(-1);
    return last ? last.y + last.height : 0;
  });
  const most = () => Math.max(0, total() - (tall() - RULER));
  const scrollBy = (by: number) => setScroll(Math.min(Math.max(0, scroll() + by), most()));
  createEffect(on([total, tall], () => scrollBy(0)));
  createEffect(
    on(model.scrollTo, (wanted) => {
      const row = wanted && model.rows().find((row) => row.key === wanted.key);
      if (!row) return;
      const room = tall() - RULER;
      if (row.y < scroll()) setScroll(row.y);
      else if (row.y + row.height > scroll() + room) {
        setScroll(Math.min(Math.max(0, row.y + row.height - room), most()));
      }
    }),
  );
  const shown = createMemo(() =>
    model
      .rows()
      .filter((row) => row.y + row.height > scroll() && row.y < scroll() + tall() - RULER),
  );

  const timeAt = (x: number) => {
    const { from, to } = model.view();
    const area = box.getBoundingClientRect();
    return from + ((x - area.left) / area.width) * (to - from);
  };
  const rowAt = (y: number): Row | undefined => {
    const at = y - box.getBoundingClientRect().top - RULER + scroll();
    return model.rows().find((row) => row.y <= at && at < row.y + row.height);
  };

  function onWheel(event: WheelEvent) {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 16 : 1;
    const [dx, dy] = [event.deltaX * unit, event.deltaY * unit];
    if (event.ctrlKey) model.zoom(1.0025 ** dy, timeAt(event.clientX));
    else if (event.shiftKey) model.pan((dx || dy) / width);
    else {
      if (dx) model.pan(dx / width);
      if (dy) scrollBy(dy);
    }
  }

  let drag: { x: number; pans: boolean; moved: boolean; from: number } | null = null;
  function onDown(event: PointerEvent) {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    drag = {
      x: event.clientX,
      pans: event.shiftKey,
      moved: false,
      from: timeAt(event.clientX),
    };
    if (event.clientY - box.getBoundingClientRect().top < RULER) {
      model.setHead(drag.from);
    }
  }
  function onMove(event: PointerEvent) {
    if (!drag) return point(event);
    if (Math.abs(event.clientX - drag.x) > CLICK) drag.moved = true;
    if (!drag.moved) return;
    if (drag.pans) {
      model.pan((drag.x - event.clientX) / width);
      drag.x = event.clientX;
      return;
    }
    const t = timeAt(event.clientX);
    model.setRange({ from: Math.min(drag.from, t), to: Math.max(drag.from, t) });
  }
  function onUp(event: PointerEvent) {
    const was = drag;
    drag = null;
    if (!was || was.moved) return;
    const t = Math.max(0, Math.min(timeAt(event.clientX), model.end() - 1));
    const row = rowAt(event.clientY);
    if (event.clientY - box.getBoundingClientRect().top < RULER || !row) {
      model.setHead(t);
      return;
    }
    model.setRange(null);
    if (row.kind === ROW_THREAD) void model.select(row.id, t, row.key);
    else if (row.kind === ROW_GROUP) model.toggle(row.key, row.open ?? false);
    else if (row.kind === ROW_REGION) void model.selectRegion(row.id, t, row.key);
    else if (row.kind === ROW_CALLS) void model.selectCall(row.id, t, row.key);
    else {
      model.setHead(t);
      model.setSelectedKey(row.key);
      model.setTab("awake");
    }
  }
  function onDouble() {
    model.focus();
  }
  /** What is under the pointer, in a line: the moment and the row. */
  function point(event: PointerEvent) {
    const area = box.getBoundingClientRect();
    const row = rowAt(event.clientY);
    const t = timeAt(event.clientX);
    if (t < 0 || t > model.end()) return setHover(null);
    const who = row && row.kind !== ROW_GROUP ? ` · ${row.label}` : "";
    setHover({ x: event.clientX - area.left, text: `${moment(t)}${who}` });
  }

  /** The list's own keys: up and down along the rows, right and left to open and close. */
  function onRowKey(event: KeyboardEvent, row: Row) {
    const rows = model.rows();
    const at = rows.findIndex((other) => other.key === row.key);
    const go = (to: number) => {
      const next = rows[to];
      if (!next) return;
      model.setSelectedKey(next.key);
      if (next.y < scroll()) setScroll(next.y);
      const room = tall() - RULER;
      if (next.y + next.height > scroll() + room) setScroll(next.y + next.height - room);
      queueMicrotask(() =>
        list.querySelector<HTMLElement>(`[data-key="${CSS.escape(next.key)}"]`)?.focus(),
      );
    };
    switch (event.key) {
      case "ArrowDown":
        go(at + 1);
        break;
      case "ArrowUp":
        go(at - 1);
        break;
      case "Home":
        go(0);
        break;
      case "End":
        go(rows.length - 1);
        break;
      case "ArrowRight":
        if (row.open === false) model.toggle(row.key, false);
        break;
      case "ArrowLeft":
        if (row.open === true) model.toggle(row.key, true);
        break;
      case "Enter":
      case " ":
        if (row.kind === ROW_GROUP) model.toggle(row.key, row.open ?? false);
        else if (row.kind === ROW_THREAD || row.kind === ROW_REGION || row.kind === ROW_CALLS) {
          const { from, to } = model.view();
          const head = model.head();
          const t = head !== null && head >= from && head <= to ? head : (from + to) / 2;
          if (row.kind === ROW_THREAD) void model.select(row.id, t, row.key);
          else if (row.kind === ROW_CALLS) void model.selectCall(row.id, t, row.key);
          else void model.selectRegion(row.id, t, row.key);
        }
        break;
      default:
        return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  return (
    <section class="picture" aria-label="Tracks">
      <div class="tools">
        <input
          id="filter"
          type="search"
          placeholder="Find threads (/)"
          aria-label="Find threads by name or number"
          value={model.filter()}
          onInput={(event) => model.setFilter(event.currentTarget.value)}
        />
          <select
            aria-label="Sort threads"
            value={model.sort()}
            onChange={(event) => model.setSort(event.currentTarget.value as Sort)}
          >
            <option value="busy">busiest first</option>
            <option value="waiting">by waiting for a CPU</option>
            <option value="name">by name</option>
          </select>
          <Show when={model.views().length > 0}>
            <select
              aria-label="View of a template"
              onChange={(event) => {
                const view = model.views()[event.currentTarget.selectedIndex - 1];
                if (view) model.look(view);
                event.currentTarget.selectedIndex = 0;
              }}
            >
              <option>view</option>
              <For each={model.views()}>
                {(view) => <option title={view.description}>{view.name}</option>}
              </For>
            </select>
          </Show>
          <Show when={model.load()}>
            <select
              aria-label="Load of"
              onChange={(event) => void model.countLoad(loads()[event.currentTarget.selectedIndex]!)}
            >
              <For each={loads()}>
                {(of) => <option selected={of.text === model.loadOf().text}>load {of.text}</option>}
              </For>
            </select>
          </Show>
          <select
            aria-label="Height of rows"
            value={String(model.height())}
            onChange={(event) => model.setHeight(Number(event.currentTarget.value))}
          >
            <option value="14">small rows</option>
            <option value="22">medium rows</option>
            <option value="36">tall rows</option>
          </select>
        <span class="states" aria-label="Legend">
          <For each={STATE_NAMES}>
            {(state) => (
              <span>
                <i class={`state st-${state}`} />
                {state}
              </span>
            )}
          </For>
          <span>
            <i class="state st-lost" />
            lost
          </span>
          <span>
            <i class="state st-path" />
            path
          </span>
        </span>
        <span class="grow" />
        <Show when={model.range()}>
          {(range) => (
            <span class="chosen">
              <Show
                when={model.region()}
                fallback={model.call() ?? `${duration(range().to - range().from)} selected`}
              >
                {(region) => described(region())}
              </Show>{" "}
              <button onClick={() => model.focus()}>Zoom Z</button>
            </span>
          )}
        </Show>
        <button onClick={() => model.focus()}>Problem F</button>
        <button onClick={() => model.all()}>All 0</button>
      </div>
      <div class="tracks">
        <div class="names" ref={list}>
          <div class="ruler-name quiet">
            {duration(model.view().to - model.view().from)} shown
          </div>
          <div class="rows" role="treegrid" aria-label="Tracks, with the time of each">
            <For each={shown()}>
              {(row) => (
                <div
                  class="row"
                  classList={{
                    group: row.kind === ROW_GROUP,
                    dimmed: row.dimmed,
                    selected: row.key === model.selectedKey(),
                  }}
                  role="row"
                  tabindex={
                    row.key === (model.selectedKey() ?? shown()[0]?.key) ? 0 : -1
                  }
                  aria-level={row.level}
                  aria-expanded={row.open ?? undefined}
                  aria-selected={row.key === model.selectedKey()}
                  data-key={row.key}
                  style={{ top: `${row.y - scroll()}px`, height: `${row.height}px` }}
                  onKeyDown={(event) => onRowKey(event, row)}
                  onClick={() =>
                    row.kind === ROW_GROUP
                      ? model.toggle(row.key, row.open ?? false)
                      : model.setSelectedKey(row.key)
                  }
                >
                  <span class="label" role="gridcell" title={title(row)}>
                    {row.open === null ? "" : row.open ? "▾ " : "▸ "}
                    {row.label}
                  </span>
                  <span class="note quiet" role="gridcell">
                    {row.note}
                  </span>
                  <Show when={row.thread}>
                    {(thread) => (
                      <>
                        <span class="sr" role="gridcell">
                          {spoken(thread().states_ns)}
                        </span>
                        <span role="gridcell">
                        <button
                          class="pin"
                          tabindex="-1"
                          aria-label={row.pinned ? "Unpin" : "Pin"}
                          aria-pressed={row.pinned}
                          onClick={(event) => {
                            event.stopPropagation();
                            model.pin(thread().utid);
                          }}
                        >
                          {row.pinned ? "◆" : "◇"}
                        </button>
                        </span>
                      </>
                    )}
                  </Show>
                </div>
              )}
            </For>
          </div>
        </div>
        <div class="canvas" ref={box}>
          <canvas
            ref={canvas}
            aria-hidden="true"
            onPointerDown={onDown}
            onPointerMove={onMove}
            onPointerUp={onUp}
            onPointerLeave={() => setHover(null)}
            onDblClick={onDouble}
          />
          <Show when={hover()}>
            {(at) => (
              <span class="hover" style={{ left: `${Math.min(at().x + 12, width - 240)}px` }}>
                {at().text}
              </span>
            )}
          </Show>
          <Show when={most() > 0}>
            <div
              class="bar"
              style={{
                top: `${RULER + (scroll() / total()) * (tall() - RULER)}px`,
                height: `${((tall() - RULER) / total()) * (tall() - RULER)}px`,
              }}
            />
          </Show>
        </div>
      </div>
    </section>
  );
}

/** A region in a line: its name, how long it took, whose it is, and its arguments. */
function described(region: Region): string {
  const [t, args] = [region.thread, [...region.arguments]];
  while (args.at(-1) === 0) args.pop();
  const of = args.length > 0 ? ` (${args.join(", ")})` : "";
  const took = `${duration(region.duration_ns)}${region.open ? ", not ended" : ""}`;
  return `${region.name}${of}: ${took} in ${t.process}/${t.thread} (${t.tid})`;
}

function title(row: Row): string {
  if (row.kind === ROW_REGION) return `${row.label}: regions that programs marked`;
  if (row.kind === ROW_CALLS) return "what the thread asked of the kernel; red failed";
  if (row.kind === ROW_CPU) return `${row.label}: what it ran`;
  const t = row.thread;
  return t ? `${t.process}/${t.thread} (${t.tid})` : row.label;
}

/** Where a thread's time went, for who cannot see the picture. */
function spoken(ns: number[]): string {
  const total = ns.reduce((sum, part) => sum + part, 0) || 1;
  return STATE_NAMES.map((state, i) => `${state} ${percent(ns[i]! / total)}`).join(", ");
}

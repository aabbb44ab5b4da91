// What one thread did, interval by interval. There can be millions: rows of one height, of which
// those in sight are asked for, page by page.

import { For, Show, createEffect, createMemo, createSignal, on } from "solid-js";
import { ask, type At, type StoryPage, type StoryRow } from "./api";
import { duration, moment, name } from "./format";
import type { Model } from "./model";

const HEIGHT = 22;
const PAGE = 200;
/** Browsers have no taller boxes than some 30 million pixels. */
const TALLEST = 20_000_000;

export function Story(props: { model: Model }) {
  const { model } = props;
  let box!: HTMLDivElement;
  const [of, setOf] = createSignal(0);
  const [first, setFirst] = createSignal(0);
  const [room, setRoom] = createSignal(10);
  const [pages, setPages] = createSignal(new Map<number, StoryRow[]>());
  const [error, setError] = createSignal("");
  const utid = createMemo(() => model.at()?.thread.utid ?? model.selectedThread()?.utid ?? null);
  const scale = () => Math.max(1, (of() * HEIGHT) / TALLEST);
  const asking = new Set<number>();

  const load = (thread: number, page: number) => {
    if (asking.has(page) || pages().has(page)) return;
    asking.add(page);
    ask<StoryPage>(`${model.base}/story`, { thread, first: page * PAGE, limit: PAGE })
      .then(
        (found) => {
          if (thread !== utid()) return;
          setOf(found.of);
          setPages(new Map(pages()).set(page, found.intervals));
        },
        (why: Error) => setError(why.message),
      )
      .finally(() => asking.delete(page));
  };
  createEffect(
    on(utid, (thread) => {
      setPages(new Map());
      setOf(0);
      setError("");
      asking.clear();
      if (thread !== null) load(thread, Math.floor((model.at()?.index ?? 0) / PAGE));
    }),
  );
  // What is selected in the picture is brought into sight.
  createEffect(() => {
    const at = model.at();
    if (!at || !box || of() === 0) return;
    const index = at.index;
    if (index < first() || index >= first() + room() - 1) {
      box.scrollTop = (Math.max(0, index - 2) * HEIGHT) / scale();
    }
  });
  const look = () => {
    setRoom(Math.ceil(box.clientHeight / HEIGHT) + 1);
    setFirst(Math.floor((box.scrollTop * scale()) / HEIGHT));
  };
  createEffect(() => {
    const thread = utid();
    if (thread === null || of() === 0) return;
    for (let page = Math.floor(first() / PAGE); page * PAGE < first() + room(); page++) {
      if (page * PAGE < of()) load(thread, page);
    }
  });
  const shown = createMemo(() => {
    const rows: { index: number; row: StoryRow | undefined }[] = [];
    for (let i = first(); i < Math.min(of(), first() + room()); i++) {
      rows.push({ index: i, row: pages().get(Math.floor(i / PAGE))?.[i % PAGE] });
    }
    return rows;
  });
  return (
    <Show
      when={utid() !== null}
      fallback={<p class="quiet">Click on a thread's track to read what it did.</p>}
    >
      <Show when={error()}>
        <p role="alert">{error()}</p>
      </Show>
      <div class="split story">
        <div
          class="scroller"
          ref={(element) => {
            box = element;
            new ResizeObserver(look).observe(element);
          }}
          onScroll={look}
          role="table"
          aria-label="Story"
          aria-rowcount={of()}
          tabindex="0"
        >
          <div class="tall" style={{ height: `${(of() * HEIGHT) / scale()}px` }}>
            <For each={shown()}>
              {({ index, row }) => (
                <div
                  class="entry"
                  role="row"
                  aria-rowindex={index + 1}
                  classList={{ selected: model.at()?.index === index }}
                  style={{
                    top: `${box.scrollTop + (index - first()) * HEIGHT}px`,
                  }}
                  onClick={() =>
                    row &&
                    void model.select(utid()!, row.start_ns, model.selectedKey() ?? undefined)
                  }
                >
                  <Show when={row} fallback="…">
                    {(row) => (
                      <>
                        <span role="cell" class="n">
                          {moment(row().start_ns)}
                        </span>
                        <span role="cell" class="n">
                          {duration(row().duration_ns)}
                        </span>
                        <span role="cell">
                          <i class={`state st-${row().state}`} /> {row().state}
                        </span>
                        <span role="cell" class="text">
                          {row().text}
                          <span class="quiet"> {row().places.join("; ")}</span>
                        </span>
                      </>
                    )}
                  </Show>
                </div>
              )}
            </For>
          </div>
        </div>
        <Show when={model.at()}>{(at) => <Selected model={model} at={at()} />}</Show>
      </div>
    </Show>
  );
}

/** The selected interval: who ended it, and both stacks. */
function Selected(props: { model: Model; at: At }) {
  const at = () => props.at;
  return (
    <div class="selected-detail" aria-live="polite">
      <h3>
        {at().entry.state} for {duration(at().entry.duration_ns)}
      </h3>
      <p>
        {at().text}{" "}
        <button
          onClick={() =>
            void props.model.explain(at().thread.utid, {
              from: at().entry.start_ns,
              to: at().entry.start_ns + at().entry.duration_ns,
            })
          }
        >
          Why so long? (E)
        </button>
      </p>
      <Show when={at().entry.by}>
        {(by) => (
          <p>
            made runnable by{" "}
            <button
              class="link"
              onClick={() => void props.model.select(by().utid, at().entry.start_ns)}
            >
              {name(by())} ({by().tid})
            </button>
          </p>
        )}
      </Show>
      <Show when={at().ended}>
        {(ended) => (
          <>
            <p>
              {ended().was_seen ? "ended by " : "should have been ended by "}
              <Show when={ended().by} fallback={<b>{ended().source}</b>}>
                {(by) => (
                  <button
                    class="link"
                    onClick={() => void props.model.select(by().utid, ended().at_ns - 1)}
                  >
                    {name(by())} ({by().tid})
                  </button>
                )}
              </Show>
              : {ended().edge.reason}{" "}
              <span class={`strength e-${ended().edge.strength}`}>
                {ended().edge.kind}, {ended().edge.strength}
              </span>
            </p>
            <Show when={ended().ran_ns !== null && ended().wake}>
              <p>
                It had a CPU {duration(ended().ran_ns! - ended().at_ns)} after it was woken.
              </p>
            </Show>
            <Show when={ended().wake}>
              {(wake) => (
                <Frames
                  title={`The waker's stack (${ended().wake_text})`}
                  user={wake().stack ?? []}
                  kernel={wake().kernel_stack ?? []}
                />
              )}
            </Show>
          </>
        )}
      </Show>
      <Frames
        title="Its own stack"
        user={at().entry.stack ?? []}
        kernel={at().entry.kernel_stack ?? []}
      />
    </div>
  );
}

function Frames(props: { title: string; user: string[]; kernel: string[] }) {
  return (
    <Show when={props.user.length + props.kernel.length > 0}>
      <h4>{props.title}</h4>
      <ol class="stack">
        <For each={props.kernel}>{(frame) => <li class="quiet">{frame} [kernel]</li>}</For>
        <For each={props.user}>{(frame) => <li>{frame}</li>}</For>
      </ol>
    </Show>
  );
}

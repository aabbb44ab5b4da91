// The verdict in a sentence, and where the time went as one bar that adds up.

import { For, Show, createMemo } from "solid-js";
import type { BlameRow } from "./api";
import { duration, moment, name, percent } from "./format";
import type { Model } from "./model";
import { carried } from "./single";

/** So many parts have a name of their own in the bar. */
const MOST = 5;

/** What the root did, by its class. */
const CLASSES: Record<string, string> = {
  LongRunning: "ran",
  RepeatedYield: "polled",
  LongWait: "waited",
  Starved: "had the CPU",
  Paging: "waited for page-ins",
  Interrupted: "was interrupted",
  Circular: "waited in a circle",
  Unknown: "has no data in the trace",
};

interface Part {
  kind: string;
  text: string;
  ns: number;
  share: number;
}

export function Headline(props: { model: Model; canGoBack: boolean }) {
  const { model } = props;
  const parts = createMemo<Part[]>(() => {
    const rows = model.verdict()?.blame_by_thread ?? [];
    // Threads of one name are distinguished by their ids.
    const isAlone = (row: BlameRow): boolean =>
      rows.every((other) => other.tid === row.tid || name(other) !== name(row));
    const part = (row: BlameRow): Part => ({
      kind: row.kind,
      text: `${row.kind} · ${name(row)}${isAlone(row) ? "" : ` (${row.tid})`}`,
      ns: row.ns,
      share: row.share,
    });
    // What is too small to be seen is one part with all else, so that the bar adds up.
    const own = rows.filter((row, i) => i < MOST && row.share >= 0.005);
    const others = rows.slice(own.length);
    const list = own.map(part);
    const ns = others.reduce((sum, row) => sum + row.ns, 0);
    if (ns > 0) {
      const share = others.reduce((sum, row) => sum + row.share, 0);
      list.push({ kind: "other", text: others.length === 1 ? "a smaller part" : `${others.length} smaller parts`, ns, share });
    }
    return list;
  });
  return (
    <header class="headline">
      <div class="top">
        <Show when={props.canGoBack}>
          <a href="#/" class="quiet">
            All traces
          </a>
        </Show>
        <span class="quiet">
          {model.state()!.path.split("/").pop()} · {duration(model.end())} · {model.state()!.cpus}{" "}
          CPUs · {model.state()!.host}
        </span>
        <span class="quiet" classList={{ warning: model.state()!.loss_text !== "none" }}>
          Lost: {model.state()!.loss_text}
        </span>
        <span class="grow" />
        <Show when={!carried && model.verdict()}>
          <a
            class="button"
            href={`${model.base}/report.html?problem=${model.chosen() ?? 1}`}
            title="One file that opens offline, for a bug report. It holds names of threads, functions and files, and command lines; hangdog export --html --redact leaves out what it can."
            download="report.html"
          >
            Save as a file
          </a>
        </Show>
        <button onClick={() => model.setTab("about")}>Not recorded …</button>
        <button onClick={() => model.setHelps(true)}>
          Help <kbd>?</kbd>
        </button>
      </div>
      <Show
        when={model.verdict()}
        fallback={
          <h1 role="status">
            {model.verdictError() || "Searching for problems … (the tracks are ready)"}
          </h1>
        }
      >
        {(verdict) => (
          <>
            <h1>{verdict().sentence}</h1>
            <p class="facts">
              <span>
                <b>Problem</b> {name(verdict().problem)} ({verdict().problem.tid}), from{" "}
                {moment(verdict().problem.start_ns)} for {duration(verdict().problem.duration_ns)}
              </span>
              <span>
                <b>Root cause</b> {name(verdict().root)} ({verdict().root.tid}){" "}
                {CLASSES[verdict().root.class] ?? verdict().root.class}
                {verdict().root.function ? ` in ${verdict().root.function}` : ""}
                {verdict().root.where ? `, ${verdict().root.where}` : ""}
              </span>
              <span>
                <b>Confidence</b> {Math.round(verdict().root.confidence * 100)} %
              </span>
              <span>
                <b>Without it</b>{" "}
                {verdict().without_root_ns === 0
                  ? "0 ms"
                  : `${duration(verdict().without_root_ns)} instead of ${duration(verdict().problem.duration_ns)}`}
              </span>
              <Show when={verdict().paging}>
                {(paging) => (
                  <span>
                    <b>Paging</b> {paging()}
                  </span>
                )}
              </Show>
            </p>
            <div class="blame" role="img" aria-label={blameText(parts())}>
              <For each={parts()}>
                {(part) => (
                  <div
                    class={`part k-${part.kind}`}
                    style={{ "flex-grow": `${part.share}` }}
                    title={`${part.text}: ${duration(part.ns)}, ${percent(part.share)}`}
                  >
                    <Show when={part.share > 0.16}>
                      <span>
                        {part.text} · {duration(part.ns)}
                      </span>
                    </Show>
                  </div>
                )}
              </For>
            </div>
            <p class="legend">
              <span class="quiet">Where the {duration(verdict().problem.duration_ns)} went:</span>
              <For each={parts()}>
                {(part) => (
                  <span>
                    <i class={`swatch k-${part.kind}`} />
                    {duration(part.ns)} <span class="quiet">({percent(part.share)})</span>{" "}
                    {part.text}
                  </span>
                )}
              </For>
              <Show when={verdict().estimated_ns > 0}>
                <span class="quiet">
                  {duration(verdict().estimated_ns)} of it is estimated from a sample of the short waits
                </span>
              </Show>
            </p>
          </>
        )}
      </Show>
    </header>
  );
}

function blameText(parts: Part[]): string {
  return `Where the time went: ${parts
    .map((part) => `${duration(part.ns)}, ${percent(part.share)}, ${part.text}`)
    .join("; ")}`;
}

// Below the tracks: how it came about, and what is selected, in full.

import { For, Match, Show, Switch, createEffect, createSignal, on } from "solid-js";
import { Compare } from "./Compare";
import { FlameGraph } from "./FlameGraph";
import { Story } from "./Story";
import { TimeTable } from "./TimeTable";
import { ask, type Awake } from "./api";
import { copyButton } from "./copy";
import { duration, moment, name, percent } from "./format";
import type { Model, Tab } from "./model";

const TABS: [Tab, string][] = [
  ["path", "How it came about"],
  ["story", "Story"],
  ["time", "Time and waits"],
  ["flame", "Flame graph"],
  ["awake", "Running or runnable"],
  ["compare", "Fast and slow"],
  ["about", "Not recorded"],
];

export function Detail(props: { model: Model }) {
  const { model } = props;
  const onKey = (event: KeyboardEvent) => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (by === 0) return;
    const at = TABS.findIndex(([tab]) => tab === model.tab());
    const next = TABS[(at + by + TABS.length) % TABS.length]!;
    model.setTab(next[0]);
    document.getElementById(`tab-${next[0]}`)?.focus();
  };
  return (
    <section class="detail" aria-label="Detail">
      <div class="tabs" role="tablist" aria-label="Detail" onKeyDown={onKey}>
        <For each={TABS}>
          {([tab, text]) => (
            <button
              id={`tab-${tab}`}
              role="tab"
              aria-selected={model.tab() === tab}
              aria-controls="tab-panel"
              tabindex={model.tab() === tab ? 0 : -1}
              onClick={() => model.setTab(tab)}
            >
              {text}
            </button>
          )}
        </For>
        <span class="grow" />
        <Show when={model.at()}>
          {(at) => (
            <span class="quiet">
              Selected: {name(at().thread)} ({at().thread.tid}), {at().entry.state} for{" "}
              {duration(at().entry.duration_ns)}
            </span>
          )}
        </Show>
      </div>
      <div class="panel" id="tab-panel" role="tabpanel" aria-labelledby={`tab-${model.tab()}`}>
        <Switch>
          <Match when={model.tab() === "path"}>
            <PathList model={model} />
          </Match>
          <Match when={model.tab() === "story"}>
            <Story model={model} />
          </Match>
          <Match when={model.tab() === "time"}>
            <TimeTable model={model} />
          </Match>
          <Match when={model.tab() === "flame"}>
            <FlameGraph model={model} />
          </Match>
          <Match when={model.tab() === "awake"}>
            <AwakeList model={model} />
          </Match>
          <Match when={model.tab() === "compare"}>
            <Compare model={model} />
          </Match>
          <Match when={model.tab() === "about"}>
            <About model={model} />
          </Match>
        </Switch>
      </div>
    </section>
  );
}

/** The path as a list: each step's verb, its edge's strength and reason, and its stack. */
function PathList(props: { model: Model }) {
  const { model } = props;
  return (
    <Show when={model.verdict()} fallback={<p class="quiet">{model.verdictError() || "…"}</p>}>
      {(verdict) => (
        <div class="split">
          <ol class="path">
            <For each={verdict().path}>
              {(step, i) => (
                <li classList={{ root: i() === verdict().path.length - 1 }}>
                  <p>
                    <span class="length">{duration(step.to_ns - step.from_ns)}</span>{" "}
                    <button
                      class="link"
                      onClick={() => void model.select(step.utid, (step.from_ns + step.to_ns) / 2)}
                    >
                      {name(step)}
                    </button>{" "}
                    {step.doing}
                    <span class="quiet"> from {moment(step.from_ns)}</span>
                  </p>
                  <Show when={step.edge}>
                    {(edge) => (
                      <p class="edge">
                        because {edge().reason}{" "}
                        <span class={`strength e-${edge().strength}`}>
                          {edge().kind}, {edge().strength}
                        </span>
                      </p>
                    )}
                  </Show>
                  <Show when={step.stack.length > 0}>
                    <details open={i() === verdict().path.length - 1}>
                      <summary class="quiet">
                        Stack: {step.stack.slice(0, 3).join(" < ")}
                        {step.stack.length > 3 ? " < …" : ""}
                      </summary>
                      <ol class="stack">
                        <For each={step.stack}>{(frame) => <li>{frame}</li>}</For>
                        <Show when={step.stack_end}>
                          <li class="quiet">not known further out: {step.stack_end}</li>
                        </Show>
                      </ol>
                    </details>
                  </Show>
                </li>
              )}
            </For>
          </ol>
          <Show when={verdict().ran}>
            {(ran) => (
              <div class="ran">
                <h3>
                  What {name(ran())} ran for {duration(ran().ns)}
                </h3>
                <Show
                  when={ran().functions.length > 0}
                  fallback={<p class="quiet">No samples show in which functions.</p>}
                >
                  <table>
                    <thead>
                      <tr>
                        <th class="n">self</th>
                        <th class="n">total</th>
                        <th>function</th>
                        <th>where</th>
                      </tr>
                    </thead>
                    <tbody>
                      <For each={ran().functions.slice(0, 12)}>
                        {(f) => (
                          <tr>
                            <td class="n">{percent(f.self)}</td>
                            <td class="n">{percent(f.total)}</td>
                            <td>{f.function}</td>
                            <td class="quiet">{(f.source ?? f.module ?? "").split("/").pop()}</td>
                          </tr>
                        )}
                      </For>
                    </tbody>
                  </table>
                  <p class="quiet">{ran().samples} samples</p>
                </Show>
              </div>
            )}
          </Show>
        </div>
      )}
    </Show>
  );
}

function AwakeList(props: { model: Model }) {
  const { model } = props;
  const [list, setList] = createSignal<Awake[]>([]);
  const [error, setError] = createSignal("");
  createEffect(
    on(model.head, (t) => {
      if (t === null) return;
      ask<{ threads: Awake[] }>(`${model.base}/awake`, { t }).then(
        (found) => setList(found.threads),
        (why: Error) => setError(why.message),
      );
    }),
  );
  const csv = () =>
    [
      ["process", "thread", "tid", "state", "since_ns", "cpu", "priority"],
      ...list().map((t) => [t.process, t.thread, t.tid, t.state, t.since_ns, t.cpu, t.priority]),
    ];
  return (
    <Show
      when={model.head() !== null}
      fallback={<p class="quiet">Click on a track, or on the ruler, to set the head.</p>}
    >
      <p>
        At {moment(model.head()!)}: {list().length}{" "}
        {list().length === 1 ? "thread" : "threads"} running or runnable; CPUs:{" "}
        {model.state()!.cpus}. {copyButton(csv)} {error()}
      </p>
      <table>
        <thead>
          <tr>
            <th>thread</th>
            <th>state</th>
            <th class="n">for</th>
            <th class="n">CPU</th>
            <th class="n">priority</th>
          </tr>
        </thead>
        <tbody>
          <For each={list()}>
            {(t) => (
              <tr>
                <td>
                  <button class="link" onClick={() => void model.select(t.utid, model.head()!)}>
                    {name(t)} ({t.tid})
                  </button>
                </td>
                <td>
                  <i class={`state st-${t.state}`} /> {t.state}
                </td>
                <td class="n">{duration(model.head()! - t.since_ns)}</td>
                <td class="n">{t.cpu ?? "not known"}</td>
                <td class="n">{t.priority ?? "not known"}</td>
              </tr>
            )}
          </For>
        </tbody>
      </table>
    </Show>
  );
}

function About(props: { model: Model }) {
  const state = () => props.model.state()!;
  return (
    <>
      <p>
        {state().path}: recorded {state().started} on {state().host}, Linux {state().kernel}
        {state().command.length > 0 ? `, while ${state().command.join(" ")} ran` : ""}. Lost:{" "}
        {state().loss_text}.
      </p>
      <p>Not recorded in this trace; absence does not mean that it did not happen:</p>
      <ul>
        <For each={state().not_recorded}>
          {(row) => (
            <li>
              <b>{row.what}</b>: {row.how}
            </li>
          )}
        </For>
      </ul>
    </>
  );
}

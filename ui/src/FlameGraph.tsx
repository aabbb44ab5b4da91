// Where the time of the range went, by stacks: on the CPU by samples, or off it.

import { For, Show, createEffect, createMemo, createSignal } from "solid-js";
import { ask, type Flame } from "./api";
import { count, duration, name, percent } from "./format";
import { boxes, hue } from "./flame";
import type { Model } from "./model";

const HEIGHT = 18;

export function FlameGraph(props: { model: Model }) {
  const { model } = props;
  const [kind, setKind] = createSignal<"on" | "off" | "wakes">("on");
  const [everyone, setEveryone] = createSignal(false);
  const [found, setFound] = createSignal<Flame | null>(null);
  const [error, setError] = createSignal("");
  const thread = createMemo(
    () =>
      model.at()?.thread.utid ??
      model.selectedThread()?.utid ??
      model.verdict()?.path.at(-1)?.utid ??
      null,
  );
  const span = createMemo(() => model.range() ?? model.view());
  let timer = 0;
  createEffect(() => {
    const utid = everyone() ? null : thread();
    const { from, to } = span();
    const view = kind();
    clearTimeout(timer);
    timer = window.setTimeout(() => {
      const query = { thread: utid, from, to: Math.ceil(to), view };
      ask<Flame>(`${model.base}/flame`, query).then(
        (answer) => {
          setFound(answer);
          setError("");
        },
        (why: Error) => setError(why.message),
      );
    }, 150);
  });
  const graph = createMemo(() => boxes(found()?.lines ?? [], 0.001));
  const depth = createMemo(() => graph().boxes.reduce((most, b) => Math.max(most, b.depth), 0));
  const amount = (value: number) =>
    found()?.unit === "ns" ? duration(value) : `${count(value)} samples`;
  const who = () => {
    const t = model.threads().find((t) => t.utid === thread());
    return everyone() || !t ? "all threads" : `${name(t)} (${t.tid})`;
  };
  return (
    <>
      <p class="flame-tools">
        <select
          aria-label="Which time"
          value={kind()}
          onChange={(e) => setKind(e.currentTarget.value as "on" | "off" | "wakes")}
        >
          <option value="on">on the CPU</option>
          <option value="off">off the CPU</option>
          <option value="wakes">who ended the waits</option>
        </select>
        <label>
          <input
            type="checkbox"
            checked={everyone()}
            onChange={(e) => setEveryone(e.currentTarget.checked)}
          />{" "}
          all threads
        </label>
        <span>
          {who()}, {model.range() ? "the selected range" : "what is shown"}:{" "}
          {amount(graph().total)}
        </span>
        <Show when={error()}>
          <span role="alert">{error()}</span>
        </Show>
      </p>
      <Show when={graph().total > 0} fallback={<p class="quiet">No stacks here.</p>}>
        <div class="flame" style={{ height: `${(depth() + 1) * HEIGHT}px` }}>
          <For each={graph().boxes}>
            {(b) => (
              <div
                class={`box h-${hue(b.name)}`}
                style={{
                  left: `${b.x * 100}%`,
                  width: `${b.width * 100}%`,
                  top: `${b.depth * HEIGHT}px`,
                }}
                title={`${b.name}: ${amount(b.value)}, ${percent(b.width)}`}
              >
                {b.width > 0.02 ? b.name : ""}
              </div>
            )}
          </For>
        </div>
      </Show>
    </>
  );
}

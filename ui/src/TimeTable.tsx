// Where a thread's time went in the range, and its waits by what they waited for and who ended them.

import { For, Show, createEffect, createMemo, createSignal } from "solid-js";
import { ask, type RangeAnswer } from "./api";
import { STATE_NAMES } from "./colours";
import { copyButton } from "./copy";
import { count, duration, moment, name, percent } from "./format";
import type { Model } from "./model";

export function TimeTable(props: { model: Model }) {
  const { model } = props;
  const [found, setFound] = createSignal<RangeAnswer | null>(null);
  const [error, setError] = createSignal("");
  const thread = createMemo(
    () =>
      model.at()?.thread.utid ?? model.selectedThread()?.utid ?? model.verdict()?.path[0]?.utid,
  );
  const span = createMemo(() => {
    const range = model.range() ?? model.view();
    return { from: Math.max(0, range.from), to: Math.min(model.end(), range.to) };
  });
  let timer = 0;
  createEffect(() => {
    const [utid, { from, to }] = [thread(), span()];
    clearTimeout(timer);
    if (utid === undefined || to <= from) return;
    timer = window.setTimeout(() => {
      ask<RangeAnswer>(`${model.base}/range`, { thread: utid, from, to: Math.ceil(to) }).then(
        (answer) => {
          setFound(answer);
          setError("");
        },
        (why: Error) => setError(why.message),
      );
    }, 120);
  });
  const who = () => model.threads().find((t) => t.utid === thread());
  const csv = () => [
    ["what", "by", "count", "sum_ns", "min_ns", "mean_ns", "max_ns", "deviation_ns"],
    ...(found()?.waits ?? []).map((w) => [
      w.what,
      w.by ? name(w.by) : w.by_other,
      w.count,
      w.sum_ns,
      w.min_ns,
      Math.round(w.sum_ns / w.count),
      w.max_ns,
      w.deviation_ns,
    ]),
  ];
  return (
    <Show when={who()} fallback={<p class="quiet">Select a thread.</p>}>
      <Show when={error()}>
        <p role="alert">{error()}</p>
      </Show>
      <Show when={found()}>
        {(answer) => {
          const total = () => answer().states_ns.reduce((sum, ns) => sum + ns, 0) || 1;
          return (
            <>
              <p>
                <b>{name(who()!)}</b> ({who()!.tid}) from {moment(answer().from_ns)} for{" "}
                {duration(answer().to_ns - answer().from_ns)}
                {model.range() ? " (the selected range)" : " (what is shown)"}:{" "}
                <For each={STATE_NAMES}>
                  {(state, i) => (
                    <span class="share">
                      <i class={`state st-${state}`} /> {state} {duration(answer().states_ns[i()]!)}{" "}
                      <span class="quiet">{percent(answer().states_ns[i()]! / total())}</span>
                    </span>
                  )}
                </For>{" "}
                {copyButton(csv)}
              </p>
              <table>
                <thead>
                  <tr>
                    <th>waited for</th>
                    <th>ended by</th>
                    <th class="n">count</th>
                    <th class="n">sum</th>
                    <th class="n">min</th>
                    <th class="n">mean</th>
                    <th class="n">max</th>
                    <th class="n">deviation</th>
                  </tr>
                </thead>
                <tbody>
                  <For each={answer().waits}>
                    {(w) => (
                      <tr>
                        <td>
                          <button
                            class="link"
                            title="Go to the longest"
                            onClick={() => {
                              void model.select(thread()!, w.longest_at_ns + 1);
                              model.centre(w.longest_at_ns + w.max_ns / 2);
                            }}
                          >
                            {w.what}
                          </button>
                        </td>
                        <td>{w.by ? `${name(w.by)} (${w.by.tid})` : w.by_other}</td>
                        <td class="n">{count(w.count)}</td>
                        <td class="n">{duration(w.sum_ns)}</td>
                        <td class="n">{duration(w.min_ns)}</td>
                        <td class="n">{duration(w.sum_ns / w.count)}</td>
                        <td class="n">{duration(w.max_ns)}</td>
                        <td class="n">{duration(w.deviation_ns)}</td>
                      </tr>
                    )}
                  </For>
                </tbody>
              </table>
              <Show when={answer().left_out > 0}>
                <p class="quiet">and {count(answer().left_out)} kinds of shorter waits</p>
              </Show>
            </>
          );
        }}
      </Show>
    </Show>
  );
}

// Fast and slow occurrences of a region, or of the turns of a thread: why they differ, and some of each, one
// above the other, aligned at their begin.

import { For, Show, createEffect, createMemo, createSignal } from "solid-js";
import { ask, type Compared, type Drawn } from "./api";
import { copyButton } from "./copy";
import { duration, moment, name, percent } from "./format";
import type { Model } from "./model";

export function Compare(props: { model: Model }) {
  const { model } = props;
  const [found, setFound] = createSignal<Compared | null>(null);
  const [error, setError] = createSignal("");
  /** What is compared: the region that is selected, or else the turns of the thread that is. */
  const wanted = createMemo(
    () => {
      const region = model.region();
      if (region) return { region: region.name, thread: null };
      const thread = model.at()?.thread.utid ?? model.selectedThread()?.utid;
      return thread === undefined ? null : { region: null, thread };
    },
    null,
    { equals: (a, b) => a?.region === b?.region && a?.thread === b?.thread },
  );
  createEffect(() => {
    const query = wanted();
    setFound(null);
    setError("");
    if (query === null) return;
    ask<Compared>(`${model.base}/compare`, query).then(
      (answer) => {
        if (query !== wanted()) return;
        if (answer.nothing === null) setFound(answer);
        else setError(answer.nothing);
      },
      (why: Error) => query === wanted() && setError(why.message),
    );
  });
  const longest = () => found()?.comparison.difference?.slow.max_ns ?? 1;
  const csv = () => [
    ["factor", "fast_ns", "slow_ns", "difference_ns", "share"],
    ...(found()?.comparison.difference?.factors ?? []).map((factor) => [
      factor.factor,
      Math.round(factor.fast_ns),
      Math.round(factor.slow_ns),
      Math.round(factor.difference_ns),
      factor.share,
    ]),
  ];
  return (
    <Show
      when={wanted()}
      fallback={<p class="quiet">Select a region, or a thread that does work in turns.</p>}
    >
      <Show when={error()}>
        <p role="alert">{error()}</p>
      </Show>
      <Show when={found()} fallback={<Show when={!error()}><p class="quiet">…</p></Show>}>
        {(answer) => (
          <>
            <p>
              <b>{answer().comparison.sentence}</b> {copyButton(csv)}
            </p>
            <Show when={answer().aligned}>
              {(aligned) => (
                <div class="aligned">
                  <For
                    each={[
                      ["Fast", aligned().fast],
                      ["Slow", aligned().slow],
                    ] as [string, Drawn[]][]}
                  >
                    {([title, drawn]) => (
                      <section aria-label={`${title} occurrences`}>
                        <h3>{title}</h3>
                        <For each={drawn}>
                          {(one) => <Bar model={model} one={one} longest={longest()} />}
                        </For>
                      </section>
                    )}
                  </For>
                </div>
              )}
            </Show>
            <Show when={answer().comparison.difference}>
              {(difference) => (
                <table>
                  <thead>
                    <tr>
                      <th>what takes the time</th>
                      <th class="n">fast</th>
                      <th class="n">slow</th>
                      <th class="n">difference</th>
                      <th class="n">share</th>
                    </tr>
                  </thead>
                  <tbody>
                    <For each={difference().factors}>
                      {(factor) => (
                        <tr>
                          <td>{factor.factor}</td>
                          <td class="n">{duration(Math.max(0, factor.fast_ns))}</td>
                          <td class="n">{duration(Math.max(0, factor.slow_ns))}</td>
                          <td class="n">
                            {factor.difference_ns < 0 ? "-" : ""}
                            {duration(Math.abs(factor.difference_ns))}
                          </td>
                          <td class="n">{percent(factor.share)}</td>
                        </tr>
                      )}
                    </For>
                  </tbody>
                </table>
              )}
            </Show>
          </>
        )}
      </Show>
    </Show>
  );
}

/** One occurrence, as long as it took. */
function Bar(props: { model: Model; one: Drawn; longest: number }) {
  const share = (ns: number) => `${(100 * ns) / props.longest}%`;
  const text = () =>
    props.one.segments
      .map((it) => `${it.what ?? it.state} for ${duration(it.to_ns - it.from_ns)}`)
      .join(", ");
  const go = () => {
    const from = props.one.start_ns;
    const to = from + props.one.duration_ns;
    props.model.setRange({ from, to });
    void props.model.select(props.one.thread.utid, from);
    props.model.setView({ from, to });
  };
  return (
    <div class="occurrence">
      <button class="link" onClick={go}>
        {name(props.one.thread)} at {moment(props.one.start_ns)}
      </button>
      <div
        class="course"
        role="img"
        aria-label={`${duration(props.one.duration_ns)}: ${text()}`}
        title={text()}
      >
        <For each={props.one.segments}>
          {(it) => (
            <i
              class={`st-${it.state}`}
              style={{ left: share(it.from_ns), width: share(it.to_ns - it.from_ns) }}
              title={`${it.what ?? it.state} for ${duration(it.to_ns - it.from_ns)}`}
            />
          )}
        </For>
      </div>
      <span class="n">{duration(props.one.duration_ns)}</span>
    </div>
  );
}

// The path strip: from the problem down to its root, each step within the one above, on the time
// axis of the tracks; the last row is all of the time, flattened, coloured by blame.

import { For, Show, createEffect, createMemo, createSignal, onCleanup, onMount } from "solid-js";
import { BLAME_KINDS } from "./colours";
import { duration, name } from "./format";
import type { Model } from "./model";

export function Strip(props: { model: Model }) {
  const { model } = props;
  const place = (from: number, to: number) => {
    const { from: left, to: right } = model.view();
    const width = right - left;
    const x0 = Math.max(0, (from - left) / width);
    const x1 = Math.min(1, (to - left) / width);
    return x1 <= 0 || x0 >= 1 ? null : { left: x0 * 100, width: Math.max(x1 - x0, 0) * 100 };
  };
  const names = createMemo(() => new Map(model.threads().map((t) => [t.utid, name(t)])));
  return (
    <Show when={model.verdict()}>
      {(verdict) => (
        <section class="strip" aria-label="How it came about">
          <ol>
            <For each={verdict().path}>
              {(step, i) => {
                const isLast = () => i() === verdict().path.length - 1;
                const text = () =>
                  `${duration(step.to_ns - step.from_ns)} ${name(step)} ${step.doing}`;
                return (
                  <li>
                    <div class="name" title={name(step)}>
                      <span class="number">{i() + 1}</span> {name(step)}
                    </div>
                    <div class="lane">
                      <Show when={place(step.from_ns, step.to_ns)}>
                        {(at) => (
                          <button
                            class="step"
                            classList={{
                              root: isLast(),
                              weak: step.edge?.strength === "weak",
                            }}
                            style={{ left: `${at().left}%`, width: `${at().width}%` }}
                            title={`${text()}${step.edge ? `, because ${step.edge.reason}` : ""}`}
                            onClick={() => {
                              model.setTab("path");
                              void model.select(
                                step.utid,
                                (step.from_ns + step.to_ns) / 2,
                              );
                            }}
                          >
                            <span>{text()}</span>
                          </button>
                        )}
                      </Show>
                    </div>
                  </li>
                );
              }}
            </For>
            <li>
              <div class="name quiet">where it went</div>
              <div class="lane">
                <Flat model={model} names={names()} />
              </div>
            </li>
          </ol>
        </section>
      )}
    </Show>
  );
}

/** The last row: a canvas, because it can have many thousand parts. */
function Flat(props: { model: Model; names: Map<number, string> }) {
  let canvas!: HTMLCanvasElement;
  const [size, setSize] = createSignal({ width: 0, height: 0 });
  const [colours, setColours] = createSignal<string[]>([]);
  onMount(() => {
    const look = () => {
      const style = getComputedStyle(canvas);
      setColours(BLAME_KINDS.map((kind) => style.getPropertyValue(`--k-${kind}`)));
      const box = canvas.getBoundingClientRect();
      setSize({
        width: Math.max(1, Math.round(box.width * devicePixelRatio)),
        height: Math.max(1, Math.round(box.height * devicePixelRatio)),
      });
    };
    const observer = new ResizeObserver(look);
    observer.observe(canvas);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", look);
    onCleanup(() => {
      observer.disconnect();
      dark.removeEventListener("change", look);
    });
  });
  createEffect(() => {
    canvas.width = size().width;
    canvas.height = size().height;
  });
  createEffect(() => {
    const spans = props.model.verdict()?.blame_over_time ?? [];
    const { from, to } = props.model.view();
    const { width, height } = size();
    const context = canvas.getContext("2d");
    if (!context || width === 0) return;
    context.clearRect(0, 0, width, height);
    // Each column's heights are the shares of the kinds: what is drawn has the area of its time.
    const kinds = BLAME_KINDS.length;
    const shares = new Float64Array(width * kinds);
    const scale = width / (to - from);
    for (let i = firstAfter(spans, from); i < spans.length && spans[i]!.from_ns < to; i++) {
      const span = spans[i]!;
      const x0 = Math.max(0, (span.from_ns - from) * scale);
      const x1 = Math.min(width, (span.to_ns - from) * scale);
      const kind = BLAME_KINDS.indexOf(span.kind as (typeof BLAME_KINDS)[number]);
      for (let x = Math.floor(x0); x < x1 && kind >= 0; x++) {
        shares[x * kinds + kind]! += Math.min(x + 1, x1) - Math.max(x, x0);
      }
    }
    const below = new Float64Array(width);
    for (let kind = 0; kind < kinds; kind++) {
      context.fillStyle = colours()[kind]!;
      for (let x = 0; x < width; x++) {
        const tall = shares[x * kinds + kind]! * height;
        if (tall <= 0) continue;
        context.fillRect(x, height - below[x]! - tall, 1, tall);
        below[x]! += tall;
      }
    }
  });
  const tell = (event: MouseEvent) => {
    const { from, to } = props.model.view();
    const box = canvas.getBoundingClientRect();
    const t = from + ((event.clientX - box.left) / box.width) * (to - from);
    const spans = props.model.verdict()?.blame_over_time ?? [];
    const span = spans[firstAfter(spans, t)];
    canvas.title = span && span.from_ns <= t
      ? `${span.kind} · ${props.names.get(span.utid) ?? "unknown"} for ${duration(span.to_ns - span.from_ns)}`
      : "";
  };
  return <canvas class="flat" ref={canvas} onMouseMove={tell} aria-hidden="true" />;
}

/** The index of the first span that ends after `t`; they are in order. */
function firstAfter(spans: { to_ns: number }[], t: number): number {
  let low = 0;
  let high = spans.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (spans[middle]!.to_ns <= t) low = middle + 1;
    else high = middle;
  }
  return low;
}

// What there is to look at: what the watch caught, and the traces of the folder.

import { For, Show } from "solid-js";
import type { Shelf } from "./api";
import { duration } from "./format";

export function ShelfList(props: { shelf: Shelf }) {
  return (
    <main class="shelf">
      <h1>hangdog</h1>
      <Show when={props.shelf.caught_error}>
        {(why) => <p class="quiet">What hangdog watch caught cannot be listed: {why()}</p>}
      </Show>
      <Show when={props.shelf.caught.length > 0}>
        <h2>Caught by hangdog watch</h2>
        <ul class="cards">
          <For each={props.shelf.caught}>
            {(row) => (
              <li>
                <Show when={row.id !== null} fallback={<strong>{row.sentence}</strong>}>
                  <a href={`#/t/${row.id}`}>{row.sentence}</a>
                </Show>
                <span class="quiet">
                  {row.program}, {row.count === 1 ? "once" : `${row.count} times`}, last{" "}
                  {new Date(row.last_unix_ns / 1e6).toLocaleString()}
                  {row.id === null ? "; its trace was removed to free space" : ""}
                </span>
              </li>
            )}
          </For>
        </ul>
      </Show>
      <h2>Traces in {props.shelf.folder}</h2>
      <Show
        when={props.shelf.traces.length > 0}
        fallback={
          <p>
            None. Record one with <code>sudo hangdog record -o slow.hang -- ./prog</code>.
          </p>
        }
      >
        <ul class="cards">
          <For each={props.shelf.traces}>
            {(trace) => (
              <li>
                <Show when={!trace.error} fallback={<strong>{trace.name}</strong>}>
                  <a href={`#/t/${trace.id}`}>{trace.name}</a>
                </Show>
                <span class="quiet">
                  {trace.error ??
                    [
                      trace.started && new Date(trace.started).toLocaleString(),
                      trace.duration_ns > 0 && duration(trace.duration_ns),
                      trace.command.join(" "),
                    ]
                      .filter(Boolean)
                      .join(" · ")}
                </span>
              </li>
            )}
          </For>
        </ul>
      </Show>
    </main>
  );
}

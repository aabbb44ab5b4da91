// One trace: the verdict above, the picture below, problems at the side, detail at the bottom.

import { Match, Show, Switch, onCleanup } from "solid-js";
import { Detail } from "./Detail";
import { Headline } from "./Headline";
import { Help } from "./Help";
import { Picture } from "./Picture";
import { Side } from "./Side";
import { Strip } from "./Strip";
import { handle } from "./keys";
import { createModel } from "./model";

export function TracePage(props: { id: number; canGoBack: boolean }) {
  const model = createModel(props.id);
  const onKey = (event: KeyboardEvent) => handle(model, event);
  addEventListener("keydown", onKey);
  onCleanup(() => removeEventListener("keydown", onKey));
  return (
    <Switch>
      <Match when={model.failure()}>
        <p class="failure" role="alert">
          {model.failure()}
          <Show when={props.canGoBack}>
            {" "}
            <a href="#/">Back to the list</a>
          </Show>
        </p>
      </Match>
      <Match when={!model.state() || model.state()!.phase === "reading"}>
        <p class="wait" role="status">
          Reading {model.state()?.path ?? "the trace"}
          {model.state()?.step ? `: ${model.state()!.step}` : ""} …
        </p>
      </Match>
      <Match when={model.state()}>
        <div class="page">
          <Headline model={model} canGoBack={props.canGoBack} />
          <Side model={model} />
          <main class="main" aria-label="What happened">
            <Strip model={model} />
            <Picture model={model} />
            <Detail model={model} />
          </main>
          <Show when={model.gone()}>
            <p class="toast" role="alert">
              {model.gone()} <button onClick={() => model.setGone("")}>Close</button>
            </p>
          </Show>
          <Show when={model.helps()}>
            <Help model={model} />
          </Show>
        </div>
      </Match>
    </Switch>
  );
}

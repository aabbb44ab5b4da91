import { Match, Show, Switch, createSignal, onCleanup } from "solid-js";
import { render } from "solid-js/web";
import { read } from "./address";
import { ShelfList } from "./ShelfList";
import { TracePage } from "./TracePage";
import { answerLocally, ask, type Shelf } from "./api";
import { answerOf, carried } from "./single";
import "./style.css";

if (carried) answerLocally(answerOf);

function App() {
  const [place, setPlace] = createSignal(read(location.hash));
  const [shelf, setShelf] = createSignal<Shelf | null>(null);
  const [error, setError] = createSignal("");
  const follow = () => setPlace(read(location.hash));
  addEventListener("hashchange", follow);
  addEventListener("popstate", follow);
  onCleanup(() => removeEventListener("hashchange", follow));
  ask<Shelf>("/api/traces").then(
    (found) => {
      const only = found.traces[0];
      if (found.is_named && only && place().trace === null) {
        history.replaceState(null, "", `#/t/${only.id}`);
        follow();
      }
      setShelf(found);
    },
    (why: Error) => setError(why.message),
  );
  return (
    <Switch fallback={<p class="wait">Asking for the traces …</p>}>
      <Match when={error()}>
        <p class="failure" role="alert">
          {error()}
        </p>
      </Match>
      <Match when={shelf() && place().trace !== null}>
        <Show keyed when={`${place().trace}`}>
          {(id) => <TracePage id={Number(id)} canGoBack={!shelf()!.is_named} />}
        </Show>
      </Match>
      <Match when={shelf()}>
        <ShelfList shelf={shelf()!} />
      </Match>
    </Switch>
  );
}

render(() => <App />, document.getElementById("app")!);

import { For, onMount } from "solid-js";
import { KEYS } from "./keys";
import type { Model } from "./model";

export function Help(props: { model: Model }) {
  let dialog!: HTMLDialogElement;
  onMount(() => dialog.showModal());
  return (
    <dialog ref={dialog} class="help" aria-label="Help" onClose={() => props.model.setHelps(false)}>
      <h2>Keys and mouse</h2>
      <table>
        <tbody>
          <For each={KEYS}>
            {([keys, what]) => (
              <tr>
                <th scope="row">{keys}</th>
                <td>{what}</td>
              </tr>
            )}
          </For>
        </tbody>
      </table>
      <h2>Arrows</h2>
      <p>
        A solid line leads from the waker to the wait that it ended, where the evidence is strong; a
        dashed one where it is weak; a dotted one shows who should have come and did not. The bar
        behind the arrow is the time until the thread had a CPU.
      </p>
      <button onClick={() => dialog.close()}>Close</button>
    </dialog>
  );
}

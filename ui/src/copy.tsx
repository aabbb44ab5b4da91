// A table to the clipboard, as CSV.

import { createSignal } from "solid-js";
import { cell } from "./csv";

/** A button that copies rows. */
export function copyButton(rows: () => unknown[][]) {
  const [said, setSaid] = createSignal("Copy as CSV");
  const copy = async () => {
    const text = rows()
      .map((row) => row.map(cell).join(","))
      .join("\n");
    try {
      await navigator.clipboard.writeText(text);
      setSaid("Copied");
    } catch {
      setSaid("The browser refused");
    }
    setTimeout(() => setSaid("Copy as CSV"), 1500);
  };
  return <button onClick={() => void copy()}>{said()}</button>;
}

// The keyboard. Letters that move are known by where they lie, so that they are the same fingers
// on every layout; the others by what they say.

import type { Model } from "./model";

/** How far a press moves, as a share of the view; and how much closer it goes. */
const STEP = 0.15;
const CLOSER = 0.75;

export const KEYS: [keys: string, what: string][] = [
  ["W / S", "closer / further, around the head or the middle"],
  ["A / D", "left / right"],
  ["wheel", "scroll the tracks"],
  ["Ctrl + wheel", "closer / further, where the pointer is"],
  ["Shift + wheel, Shift + drag", "left / right"],
  ["drag", "select a range of time"],
  ["click", "select an interval: draws who ended it"],
  ["double-click", "zoom to an interval"],
  ["F, Z", "zoom to the selection, or the problem"],
  ["0", "the whole trace"],
  [", / .", "the interval before / after"],
  ["[ / ]", "along the wake: to the waker of a wait, or of the wake"],
  ["E", "explain the selected interval, or the selected range of its thread"],
  ["/", "find threads"],
  ["P / Shift + P", "next / previous problem"],
  ["Esc", "close, clear the selection"],
  ["?", "this help"],
];

export function handle(model: Model, event: KeyboardEvent): void {
  const target = event.target as HTMLElement;
  if (event.key === "Escape") {
    if (target instanceof HTMLInputElement) target.blur();
    model.clear();
    return;
  }
  const isTyping = target instanceof HTMLInputElement || target instanceof HTMLSelectElement;
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const head = model.head();
  const around =
    head !== null && head > model.view().from && head < model.view().to ? head : undefined;
  switch (event.code) {
    case "KeyW":
      model.zoom(CLOSER, around);
      return;
    case "KeyS":
      model.zoom(1 / CLOSER, around);
      return;
    case "KeyA":
      model.pan(-STEP);
      return;
    case "KeyD":
      model.pan(STEP);
      return;
  }
  switch (event.key) {
    case "e": {
      const at = model.at();
      const start = at?.entry.start_ns ?? 0;
      const own = { from: start, to: start + (at?.entry.duration_ns ?? 0) };
      if (at) void model.explain(at.thread.utid, model.range() ?? own);
      break;
    }
    case "f":
    case "z":
      model.focus();
      break;
    case "0":
      model.all();
      break;
    case ",":
      void model.neighbour(-1);
      break;
    case ".":
      void model.neighbour(1);
      break;
    case "[":
      void model.along(true);
      break;
    case "]":
      void model.along(false);
      break;
    case "/":
      document.getElementById("filter")?.focus();
      break;
    case "p":
    case "P": {
      const by = event.shiftKey ? -1 : 1;
      const next = (model.chosen() ?? 1) + by;
      if (next >= 1 && next <= (model.problems()?.length ?? 0)) void model.openProblem(next);
      break;
    }
    case "?":
      model.setHelps(!model.helps());
      break;
    default:
      return;
  }
  event.preventDefault();
}

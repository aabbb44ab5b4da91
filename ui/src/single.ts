// The page as one file (`hangdog export --html`): it answers itself what it would ask the server,
// from the data that it carries.

import type { Calls, Problem, Thread, TraceState, Verdict } from "./api";
import type { TileView } from "./view";

interface Data {
  state: TraceState;
  verdict: Verdict;
  problems: Problem[];
  threads: Thread[];
  calls: Calls;
  from: number;
  shift: number;
  bins: number;
  /** By name of the track, in base64. */
  tracks: Record<string, string>;
}

const element = document.getElementById("hangdog-data");

/** What the file carries; null where the page comes from a server. */
export const carried: Data | null = element ? (JSON.parse(element.textContent ?? "") as Data) : null;

/** The answer to a question; undefined where the file does not hold it. */
export function answerOf(path: string): unknown {
  if (!carried) return undefined;
  switch (path.replace(/^\/api\/traces\/0/, "")) {
    case "/api/traces":
      return { is_named: true, folder: "", traces: [{ id: 0 }], caught: [], caught_error: null };
    case "":
      return carried.state;
    case "/threads":
      return { threads: carried.threads };
    case "/calls":
      return carried.calls;
    case "/verdict":
      return carried.verdict;
    case "/problems":
      return { problems: carried.problems };
    default:
      return undefined;
  }
}

/** The worker that draws: from the server, or from the file itself. */
export function drawingWorker(): Worker {
  const text = document.getElementById("hangdog-worker")?.textContent;
  if (!text) return new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  return new Worker(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
}

/** The tracks that the file carries, for the worker. */
export function carriedTiles(): { view: TileView; names: string[]; buffers: ArrayBuffer[] } | null {
  if (!carried) return null;
  const names = Object.keys(carried.tracks);
  const { from, shift, bins } = carried;
  const buffers = names.map(
    (name) => Uint8Array.from(atob(carried.tracks[name]!), (c) => c.charCodeAt(0)).buffer,
  );
  return { view: { from, shift, bins }, names, buffers };
}

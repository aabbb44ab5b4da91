// What the server answers (docs/API.md), as far as the page reads it.

export interface Who {
  process: string;
  thread: string;
  tid: number;
  pid: number;
}

export interface Thread extends Who {
  utid: number;
  upid: number;
  is_kernel: boolean;
  start_ns: number;
  end_ns: number;
  states_ns: number[];
  switches: number;
}

export interface Gap {
  cpu: number | null;
  from_ns: number;
  to_ns: number;
  count: number;
}

export interface TraceState {
  phase: "reading" | "tracks" | "ready" | "failed";
  path: string;
  step?: string;
  error?: string;
  duration_ns: number;
  cpus: number;
  started: string;
  host: string;
  kernel: string;
  command: string[];
  loss_text: string;
  gaps: Gap[];
  not_recorded: { what: string; how: string }[];
}

/** A way to look at a trace that has a name. */
export interface NamedView {
  name: string;
  description: string;
  sort: "busy" | "waiting" | "name" | null;
  filter: string;
}

/** An occurrence, with what its thread did. */
export interface Drawn {
  thread: Who & { utid: number };
  start_ns: number;
  duration_ns: number;
  segments: { state: string; from_ns: number; to_ns: number; what: string | null }[];
}

/** Fast against slow occurrences. */
export interface Compared {
  /** Why there is nothing to compare; then nothing else is there. */
  nothing: string | null;
  what: string;
  comparison: {
    sentence: string;
    difference: {
      slow: { max_ns: number };
      factors: {
        factor: string;
        fast_ns: number;
        slow_ns: number;
        difference_ns: number;
        share: number;
      }[];
    } | null;
  };
  aligned: { fast: Drawn[]; slow: Drawn[] } | null;
}

/** The system calls of a trace that recorded all of them. */
export interface Calls {
  threads: CallTrack[];
  /** What the numbers in tiles mean. */
  names: Record<string, string>;
}

/** A thread that made system calls. */
export interface CallTrack {
  utid: number;
  count: number;
  sum_ns: number;
}

/** A system call. */
export interface Called {
  start_ns: number;
  duration_ns: number;
}

/** A name of regions that programs marked. */
export interface RegionTrack {
  name: string;
  count: number;
  sum_ns: number;
}

/** A region. */
export interface Region {
  name: string;
  start_ns: number;
  duration_ns: number;
  open: boolean;
  thread: Who & { utid: number };
  arguments: number[];
}

export interface Problem extends Who {
  number: number;
  utid: number;
  start_ns: number;
  duration_ns: number;
  kind: string;
  severity: string;
  class: string;
  root_class: string;
  confidence: number;
  sentence: string;
  signature: string;
}

export interface Edge {
  kind: string;
  strength: string;
  reason: string;
}

export interface Step {
  thread: string;
  process: string;
  utid: number;
  from_ns: number;
  to_ns: number;
  doing: string;
  edge: Edge | null;
  stack: string[];
  stack_end: string | null;
}

export interface Question {
  number: number;
  text: string;
  at: string[];
  from_ns: number;
  to_ns: number;
  answer: number | null;
  possibilities: {
    choice: string;
    text: string;
    because: string;
    probability: number;
    root: string;
    chosen: boolean;
  }[];
}

export interface BlameRow extends Who {
  kind: string;
  ns: number;
  share: number;
}

export interface RanFunction {
  function: string;
  module: string | null;
  source: string | null;
  self: number;
  total: number;
}

export interface Verdict {
  sentence: string;
  number: number | null;
  problem: Who & { start_ns: number; duration_ns: number; class: string };
  root: Who & {
    class: string;
    function: string | null;
    where: string | null;
    share: number;
    confidence: number;
  };
  without_root_ns: number;
  paging: string | null;
  blame: { kind: string; ns: number; share: number }[];
  blame_by_thread: BlameRow[];
  blame_over_time: { from_ns: number; to_ns: number; utid: number; kind: string }[];
  estimated_ns: number;
  ran: (Who & { ns: number; samples: number; functions: RanFunction[] }) | null;
  path: Step[];
  knot: Who[] | null;
  questions: Question[];
  hints: { text: string; how: string }[];
}

export interface StoryRow {
  start_ns: number;
  duration_ns: number;
  state: string;
  text: string;
  places: string[];
  by?: (Who & { utid: number }) | null;
  holder?: (Who & { utid: number }) | null;
  stack?: string[];
  kernel_stack?: string[];
}

export interface StoryPage {
  thread: Who & { utid: number };
  of: number;
  first: number;
  at: number | null;
  intervals: StoryRow[];
}

export interface Ended {
  edge: Edge;
  by: (Who & { utid: number }) | null;
  source: string;
  was_seen: boolean;
  at_ns: number;
  ran_ns: number | null;
  wake: StoryRow | null;
  wake_text: string | null;
}

export interface At {
  thread: Who & { utid: number };
  index: number;
  of: number;
  entry: StoryRow;
  text: string;
  places: string[];
  call: Called | null;
  call_text: string | null;
  ended: Ended | null;
}

export interface RangeAnswer {
  from_ns: number;
  to_ns: number;
  states_ns: number[];
  switches: number;
  left_out: number;
  waits: {
    what: string;
    by: (Who & { utid: number }) | null;
    by_other: string;
    count: number;
    sum_ns: number;
    min_ns: number;
    max_ns: number;
    deviation_ns: number;
    longest_at_ns: number;
  }[];
}

export interface Flame {
  unit: "samples" | "ns";
  period_ns: number | null;
  lines: [string, number][];
}

export interface Load {
  width_ns: number;
  cpus: number;
  average: number[];
}

export interface Awake extends Who {
  utid: number;
  state: string;
  since_ns: number;
  cpu: number | null;
  priority: number | null;
}

export interface Shelf {
  is_named: boolean;
  folder: string;
  traces: {
    id: number;
    name: string;
    started: string;
    duration_ns: number;
    command: string[];
    error: string | null;
  }[];
  caught: {
    signature: string;
    program: string;
    count: number;
    sentence: string;
    last_unix_ns: number;
    id: number | null;
  }[];
  caught_error: string | null;
}

/** The server did not answer, or refused, and why. */
export class Refused extends Error {}

async function answer<T>(response: Response): Promise<T> {
  if (response.ok) return (await response.json()) as T;
  const text = await response.text();
  let why = text.trim();
  try {
    why = (JSON.parse(text) as { error: string }).error;
  } catch {
    // It is not JSON: the text itself says why.
  }
  throw new Refused(why || `the server answered ${response.status}`);
}

/** What answers in place of a server, where the page is a file of its own; set by `single.ts`. */
let local: ((path: string) => unknown) | null = null;
export const answerLocally = (by: (path: string) => unknown): void => void (local = by);

/** Asks the server. Throws `Refused` with a sentence. */
export async function ask<T>(
  path: string,
  query: Record<string, string | number | null | undefined> = {},
  signal?: AbortSignal,
): Promise<T> {
  if (local) {
    const found = local(path);
    if (found !== undefined) return found as T;
    throw new Refused("this file holds the verdict and the tracks around it: open the trace for more");
  }
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value === null || value === undefined) continue;
    // Moments are whole nanoseconds, and none lies before the trace.
    params.set(key, typeof value === "number" ? String(Math.max(0, Math.floor(value))) : value);
  }
  const text = params.toString();
  try {
    return await answer<T>(await fetch(text ? `${path}?${text}` : path, signal ? { signal } : {}));
  } catch (error) {
    if (error instanceof Refused || (error as Error).name === "AbortError") throw error;
    throw new Refused("the server does not respond: is hangdog open still running?");
  }
}

/** Tells the server something. */
export async function tell<T>(path: string, body: unknown): Promise<T> {
  const response = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return answer<T>(response);
}

// What the address holds, so that back, forward and reload restore the view.

export interface Place {
  trace: number | null;
  from: number | null;
  to: number | null;
  problem: number | null;
  thread: number | null;
  t: number | null;
}

/** Reads the part of an address behind the #. */
export function read(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#/, "").split("?");
  const trace = /^\/t\/(\d+)$/.exec(path)?.[1];
  const params = new URLSearchParams(query);
  const number = (key: string): number | null => {
    const text = params.get(key);
    const value = text === null ? NaN : Number(text);
    return Number.isFinite(value) ? value : null;
  };
  return {
    trace: trace === undefined ? null : Number(trace),
    from: number("from"),
    to: number("to"),
    problem: number("problem"),
    thread: number("thread"),
    t: number("t"),
  };
}

/** The part of an address behind the #, with it. */
export function write(place: Place): string {
  if (place.trace === null) return "#/";
  const params = new URLSearchParams();
  for (const key of ["problem", "from", "to", "thread", "t"] as const) {
    const value = place[key];
    if (value !== null) params.set(key, String(Math.round(value)));
  }
  const text = params.toString();
  return `#/t/${place.trace}${text ? `?${text}` : ""}`;
}

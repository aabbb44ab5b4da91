// Figures as hangdog prints them: three figures in ns, µs and ms, and ms of whole seconds.

const STEPS: [below: number, unit: number, digits: number, name: string][] = [
  [1e3, 1, 0, "ns"],
  [1e4, 1e3, 2, "µs"],
  [1e5, 1e3, 1, "µs"],
  [1e6, 1e3, 0, "µs"],
  [1e7, 1e6, 2, "ms"],
  [1e8, 1e6, 1, "ms"],
  [1e9, 1e6, 0, "ms"],
];

/** A duration, ns. */
export function duration(ns: number): string {
  for (const [below, unit, digits, name] of STEPS) {
    const step = unit / 10 ** digits;
    const rounded = Math.floor((ns + step / 2) / step) * step;
    if (rounded < below) return `${+(rounded / unit).toFixed(digits)} ${name}`;
  }
  return `${+(Math.round(ns / 1e6) / 1e3).toFixed(3)} s`;
}

/** A point in time: seconds to the microsecond. */
export function moment(ns: number): string {
  return `${(Math.floor(ns / 1e3) / 1e6).toFixed(6)} s`;
}

/** A share, 0 to 1, in percent; what is there is never shown as nothing. */
export function percent(share: number): string {
  if (share <= 0) return "0 %";
  if (share < 0.0005) return "<0.1 %";
  if (share >= 0.9995) return "100 %";
  return `${(share * 100).toFixed(1)} %`;
}

/** A number with its thousands apart. */
export function count(n: number): string {
  return n.toLocaleString("en-US");
}

/** A thread with its process, where the names differ. */
export function name(who: { process: string; thread: string }): string {
  return who.process === who.thread ? who.thread : `${who.process}/${who.thread}`;
}

// The colours of states and of blame. Told apart by lightness and by pattern too: running is
// solid, runnable has lines, preempted has crossed lines, interrupted has dots, blocked is a thin
// line.

export const STATE_NAMES = ["running", "runnable", "preempted", "blocked", "interrupted"] as const;

type Rgb = readonly [number, number, number];

export interface Palette {
  background: Rgb;
  stripe: Rgb;
  outside: Rgb;
  states: readonly Rgb[];
  /** Of regions by their argument, in the places of the states. */
  regions: readonly Rgb[];
  /** Of system calls, in the places of the states: returned, and failed. */
  calls: readonly Rgb[];
  problem: Rgb;
  path: Rgb;
  loss: Rgb;
  text: string;
  quiet: string;
  line: string;
  accent: string;
  over: Rgb;
  load: Rgb;
}

export const LIGHT: Palette = {
  background: [255, 255, 255],
  stripe: [247, 248, 250],
  outside: [236, 238, 241],
  states: [
    [11, 122, 85],
    [230, 150, 0],
    [200, 40, 30],
    [150, 158, 168],
    [118, 66, 190],
  ],
  regions: [
    [40, 100, 190],
    [160, 90, 20],
    [30, 130, 120],
    [150, 158, 168],
    [150, 60, 140],
  ],
  calls: [
    [70, 105, 160],
    [70, 105, 160],
    [195, 50, 40],
    [150, 158, 168],
    [70, 105, 160],
  ],
  problem: [255, 241, 205],
  path: [190, 20, 90],
  loss: [120, 120, 120],
  text: "#1c2127",
  quiet: "#59636e",
  line: "#d5dae0",
  accent: "#be145a",
  over: [225, 110, 0],
  load: [70, 120, 180],
};

export const DARK: Palette = {
  background: [20, 23, 27],
  stripe: [26, 30, 35],
  outside: [36, 40, 46],
  states: [
    [52, 199, 142],
    [245, 180, 50],
    [255, 110, 95],
    [100, 110, 122],
    [184, 140, 255],
  ],
  regions: [
    [110, 165, 245],
    [225, 165, 95],
    [90, 205, 190],
    [100, 110, 122],
    [220, 130, 210],
  ],
  calls: [
    [120, 160, 220],
    [120, 160, 220],
    [255, 115, 100],
    [100, 110, 122],
    [120, 160, 220],
  ],
  problem: [58, 48, 20],
  path: [255, 105, 165],
  loss: [140, 140, 140],
  text: "#e8ebef",
  quiet: "#a3adb8",
  line: "#363d45",
  accent: "#ff69a5",
  over: [255, 150, 50],
  load: [100, 155, 220],
};

/** The kinds of blame, each with the class of its colour in the style sheet. */
export const BLAME_KINDS = [
  "run",
  "runnable",
  "interrupt",
  "lock",
  "message",
  "disk",
  "network",
  "timer",
  "paging",
  "stopped",
  "kernel",
  "unknown",
] as const;

import { expect, test } from "vitest";
import { read, write } from "./address";
import { cell } from "./csv";
import { boxes } from "./flame";
import { duration, moment, percent } from "./format";

test("durations are those of the command", () => {
  for (const [ns, text] of [
    [0, "0 ns"],
    [999, "999 ns"],
    [1_000, "1 µs"],
    [1_234, "1.23 µs"],
    [98_760, "98.8 µs"],
    [999_499, "999 µs"],
    [999_500, "1 ms"],
    [52_100_000, "52.1 ms"],
    [9_996_000, "10 ms"],
    [999_600_000, "1 s"],
    [1_234_567_890, "1.235 s"],
  ] as const) {
    expect(duration(ns)).toBe(text);
  }
  expect(moment(1_234_567_999)).toBe("1.234567 s");
  expect(percent(1e-6)).toBe("<0.1 %");
});

test("an address restores what it holds", () => {
  const place = { trace: 3, from: 10, to: 2e10, problem: 2, thread: 17, t: 99 };
  expect(read(write(place))).toEqual(place);
  expect(read("#/t/x?from=a")).toEqual({
    trace: null,
    from: null,
    to: null,
    problem: null,
    thread: null,
    t: null,
  });
});

test("a name with commas and quotes stays one cell", () => {
  expect(cell('a,"b"')).toBe('"a,""b"""');
});

test("boxes lie within the box below, and self time is what no child has", () => {
  const { total, boxes: all } = boxes(
    [
      ["t;main;work", 6],
      ["t;main", 2],
      ["t;idle", 2],
    ],
    0,
  );
  expect(total).toBe(10);
  expect(all.map((b) => [b.name, b.depth, b.x, b.width])).toEqual([
    ["t", 0, 0, 1],
    ["main", 1, 0, 0.8],
    ["work", 2, 0, 0.6],
    ["idle", 1, 0.8, 0.2],
  ]);
});

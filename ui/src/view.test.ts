import { describe, expect, test } from "vitest";
import { clamp, covers, middleHalf, pan, tickText, ticks, tileView, zoom } from "./view";

const END = 10e9;

describe("moving", () => {
  test("what is under the pointer stays there when zooming", () => {
    const view = { from: 100, to: 1100 };
    const closer = zoom(view, 0.5, 350);
    expect(closer.to - closer.from).toBe(500);
    expect((350 - closer.from) / 500).toBeCloseTo((350 - 100) / 1000);
  });
  test("a problem takes the middle half of the width", () => {
    const view = middleHalf({ from: 2e9, to: 3e9 });
    const width = view.to - view.from;
    expect((2e9 - view.from) / width).toBeCloseTo(0.25);
    expect((3e9 - view.from) / width).toBeCloseTo(0.75);
  });
  test("a view stays at the trace, and no closer than can be shown", () => {
    for (const view of [pan({ from: 0, to: 1e9 }, -5), pan({ from: 0, to: 1e9 }, 50)]) {
      const kept = clamp(view, END);
      expect(kept.to - kept.from).toBe(1e9);
      expect(kept.to).toBeGreaterThan(0);
      expect(kept.from).toBeLessThan(END);
    }
    expect(clamp({ from: 5e9, to: 5e9 + 1 }, END).to - 5e9).toBeGreaterThan(100);
    expect(clamp({ from: -50e9, to: 50e9 }, END).to).toBeGreaterThanOrEqual(END);
  });
});

describe("tiles", () => {
  test("a bin is no wider than a pixel, and wider than half of one", () => {
    for (const width of [1e3, 12_345, 1e6, 7e8, 1e10]) {
      const { shift } = tileView({ from: 0, to: width }, 1000, END);
      expect(2 ** shift).toBeLessThanOrEqual(Math.max(width / 1000, 1));
      expect(2 ** shift * 2).toBeGreaterThan(width / 1000);
    }
  });
  test("a tile covers the view that it was asked for, and a little movement", () => {
    const view = { from: 3e9, to: 4e9 };
    const tile = tileView(view, 1100, END);
    expect(covers(tile, view, 1100, END)).toBe(true);
    expect(covers(tile, pan(view, 0.3), 1100, END)).toBe(true);
    expect(covers(tile, pan(view, 3), 1100, END)).toBe(false);
    expect(covers(tile, zoom(view, 0.4, 3.5e9), 1100, END)).toBe(false);
  });
  test("at the ends there is nothing beside the trace to ask for", () => {
    const view = clamp({ from: -1e9, to: 11e9 }, END);
    const tile = tileView(view, 1100, END);
    expect(tile.from).toBe(0);
    expect(covers(tile, view, 1100, END)).toBe(true);
  });
});

test("a ruler has round steps, far enough apart, with the digits that they need", () => {
  const { first, step } = ticks({ from: 0.37e9, to: 1.37e9 }, 1000, 110);
  expect(step).toBe(0.2e9);
  expect(first).toBeCloseTo(0.4e9);
  expect(tickText(first, step)).toBe("0.4 s");
  expect(tickText(1_234_500, 500)).toBe("0.0012345 s");
});

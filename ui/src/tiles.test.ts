import { expect, test } from "vitest";
import { STATES, coverage, decode, type Bins, type Intervals } from "./tiles";

const WIDTH = 97;

const sum = (cover: Float32Array, state: number) =>
  cover.slice(state * WIDTH, (state + 1) * WIDTH).reduce((all, share) => all + share, 0);

/** Numbers that look random and are the same each time. */
function* random(seed: number): Generator<number, number> {
  for (;;) {
    seed = (seed * 1103515245 + 12345) & 0x7fffffff;
    yield seed / 0x7fffffff;
  }
}

function intervals(lengths: number[]): Intervals {
  const n = lengths.length;
  const part: Intervals = {
    kind: "intervals",
    n,
    starts: new Float64Array(n),
    ends: new Float64Array(n),
    who: new Uint32Array(n),
    states: new Uint8Array(n),
  };
  let t = 1000;
  lengths.forEach((length, i) => {
    part.starts[i] = t;
    t += length;
    part.ends[i] = t;
    part.states[i] = i % STATES;
  });
  return part;
}

test("the drawn area of each state is its time, at any zoom", () => {
  const next = random(7);
  const part = intervals(Array.from({ length: 400 }, () => 1 + next.next().value * 900));
  const cover = new Float32Array(STATES * WIDTH);
  for (let turn = 0; turn < 10; turn++) {
    const from = next.next().value * 100_000;
    const to = from + 500 + next.next().value * 100_000;
    coverage(part, { from: 0, shift: 0 }, from, to, WIDTH, cover);
    for (let state = 0; state < STATES; state++) {
      let time = 0;
      for (let i = 0; i < part.n; i++) {
        if (part.states[i] !== state) continue;
        time += Math.max(0, Math.min(part.ends[i]!, to) - Math.max(part.starts[i]!, from));
      }
      const drawn = (sum(cover, state) / WIDTH) * (to - from);
      expect(Math.abs(drawn - time)).toBeLessThanOrEqual(time * 0.001 + 0.01);
    }
    for (let x = 0; x < WIDTH; x++) {
      let all = 0;
      for (let state = 0; state < STATES; state++) all += cover[state * WIDTH + x]!;
      expect(all).toBeLessThan(1.001);
    }
  }
});

test("a bin's shares spread over the columns that it covers", () => {
  const part: Bins = {
    kind: "bins",
    n: 1,
    at: Uint32Array.of(3),
    count: Uint32Array.of(9),
    who: Uint32Array.of(1),
    longest: Float32Array.of(5),
    shares: Uint16Array.of(32768, 0, 0, 0, 16384),
  };
  const cover = new Float32Array(STATES * WIDTH);
  // The bin is from 48 to 64 of 97 columns of 1 ns.
  coverage(part, { from: 0, shift: 4 }, 0, WIDTH, WIDTH, cover);
  expect(sum(cover, 0)).toBeCloseTo(8, 2);
  expect(sum(cover, 4)).toBeCloseTo(4, 2);
  expect(cover[47]).toBe(0);
  expect(cover[48]).toBeCloseTo(0.5, 3);
  expect(cover[64]).toBe(0);
});

test("what is no tile is refused", () => {
  expect(() => decode(new ArrayBuffer(8))).toThrow();
  expect(() => decode(new TextEncoder().encode("x".repeat(64)).buffer as ArrayBuffer)).toThrow();
});

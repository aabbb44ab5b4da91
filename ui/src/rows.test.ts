import { expect, test } from "vitest";
import type { Thread } from "./api";
import { build, columns, rowOf, type Choice } from "./rows";
import { ON_PATH, ROW_CALLS, ROW_REGION, ROW_THREAD } from "./scene";

const thread = (utid: number, process: string, name: string, busy: number, kernel = false) =>
  ({
    utid,
    upid: kernel ? 0 : process.length * 1000,
    process,
    thread: name,
    tid: 100 + utid,
    pid: 100,
    is_kernel: kernel,
    start_ns: 0,
    end_ns: 1e9,
    states_ns: [busy, 0, 0, 1e9 - busy, 0],
    switches: 0,
  }) satisfies Thread;

const THREADS = [
  thread(1, "app", "main", 5),
  thread(2, "app", "worker", 500),
  thread(3, "app", "lazy", 0),
  thread(4, "server", "server", 9000),
  thread(5, "kworker", "kworker/0:1", 90_000, true),
];

const choice = (over: Partial<Choice> = {}): Choice => ({
  threads: THREADS,
  cpus: 2,
  path: [],
  pinned: new Set(),
  open: new Map(),
  sort: "busy",
  filter: "",
  height: 22,
  regions: [],
  calls: new Map(),
  load: "of all",
  dim: false,
  ...over,
});

const labels = (over: Partial<Choice> = {}) => build(choice(over)).map((row) => row.label);

test("regions that programs marked have rows of their own, by name", () => {
  const regions = [
    { name: "frame", count: 4, sum_ns: 5e8 },
    { name: "load", count: 1, sum_ns: 4e8 },
  ];
  expect(labels({ regions }).slice(0, 3)).toEqual(["Regions", "frame", "load"]);
  // Filtered, each keeps its number.
  const [row] = build(choice({ regions, filter: "LOAD" })).filter((row) => row.kind === ROW_REGION);
  expect([row?.label, row?.id]).toEqual(["load", 1]);
  expect(labels()).not.toContain("Regions");
});

test("system calls have a row below their thread, wherever that is", () => {
  const calls = new Map([[2, { utid: 2, count: 3, sum_ns: 2e9 }]]);
  const rows = build(choice({ calls, pinned: new Set([2]) }));
  const at = rows.flatMap((row, i) => (row.kind === ROW_CALLS ? [i] : []));
  expect(at.map((i) => [rows[i]!.id, rows[i - 1]!.label])).toEqual([
    [2, "app/worker"],
    [2, "worker"],
  ]);
  expect(rows[at[0]!]!.note).toBe("3 · 2 s");
  expect(new Set(rows.map((row) => row.key)).size).toBe(rows.length);
});

test("rows lie one below another without gap", () => {
  let y = 0;
  for (const row of build(choice())) {
    expect(row.y).toBe(y);
    y += row.height;
  }
});

test("who did nothing is folded, and the kernel too; but never who is on the path", () => {
  expect(labels()).toContain("1 without activity");
  expect(labels()).not.toContain("lazy");
  expect(labels()).not.toContain("kworker/0:1");
  const onPath = labels({ path: [1, 3, 5] });
  expect(onPath.slice(0, 4)).toEqual([
    "On the path",
    "app/main",
    "app/lazy",
    "kworker/kworker/0:1",
  ]);
});

test("the busiest process and thread come first, unless sorted by name", () => {
  const busy = labels();
  expect(busy.indexOf("server")).toBeLessThan(busy.indexOf("app"));
  expect(busy.indexOf("worker")).toBeLessThan(busy.indexOf("main"));
  const named = labels({ sort: "name" });
  expect(named.indexOf("app")).toBeLessThan(named.indexOf("server"));
  expect(named.indexOf("main")).toBeLessThan(named.indexOf("worker"));
});

test("a filter shows what it finds, opened, and nothing else", () => {
  const found = labels({ filter: "kwork" });
  expect(found).toContain("kworker/0:1");
  expect(found).not.toContain("main");
});

test("an arrow's end that is folded goes to the header of its group", () => {
  const rows = build(choice({ open: new Map([["p3000", false]]) }));
  expect(rows[rowOf(rows, 2, THREADS)]?.label).toBe("app");
});

test("the worker gets the same rows", () => {
  const rows = build(choice({ path: [2] }));
  const all = columns(rows, "path:2");
  const at = rows.findIndex((row) => row.key === "path:2");
  expect(all.kind[at]).toBe(ROW_THREAD);
  expect(all.id[at]).toBe(2);
  expect(all.flags[at]! & ON_PATH).not.toBe(0);
});

// The page as a person uses it. Each test's name is what a person does.

import assert from "node:assert/strict";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { cannotRun, command, launch, serve, settled, spot, trace, view, visit } from "./support.mjs";

const MS = 1e6;
const START = 1.1 * MS;
const END = 902.3 * MS;
const HOSTILE = "onerror=document.title";

const skip = cannotRun();
if (skip) console.log(`NOT RUN: browser tests: ${skip}`);

let browser;
let hang;
let server;
let open = [];
if (!skip) {
  before(async () => {
    browser = await launch();
    hang = trace("ui/tests/traces/hang.trace");
    server = await serve([hang.path]);
  });
  after(async () => {
    server?.stop();
    hang?.remove();
    await browser?.close();
  });
  afterEach(async () => {
    for (const one of open) await one.close();
    open = [];
  });
}

async function look(url = server.url, options = {}) {
  const one = await visit(browser, url, options);
  open.push(one);
  return one;
}

async function picture(options) {
  const one = await look(server.url, options);
  await settled(one.page);
  return one;
}

const it = (name, body) => test(name, { skip: skip ?? false }, body);

it("reads why it hung on the first screen", async () => {
  const { page, complaints } = await picture();
  const h1 = await page.textContent("h1");
  assert.match(h1, /^client was held up for 901 ms by a lock: .* ran hash_row|rebuild_index/);
  assert.equal(new URL(page.url()).search, "", "the token has left the address");
  // The bar has one part for each row of the legend, and they add up.
  const parts = await page.locator(".blame .part").count();
  assert.equal(await page.locator(".legend .swatch").count(), parts);
  const widths = await page.$$eval(".blame .part", (all) => all.map((p) => p.clientWidth));
  const bar = await page.$eval(".blame", (bar) => bar.clientWidth);
  const sum = widths.reduce((a, b) => a + b, 0);
  assert(Math.abs(sum + parts - 1 - bar) <= parts, `${sum} of ${bar}`);
  assert.deepEqual(complaints, []);
});

it("sees the path from the problem to its root, each step within the one above", async () => {
  const { page } = await picture();
  const steps = await page.$$eval(".step", (all) =>
    all.map((step) => {
      const box = step.getBoundingClientRect();
      return [box.left, box.right];
    }),
  );
  assert.equal(steps.length, 3);
  for (let i = 1; i < steps.length; i++) {
    assert(steps[i][0] >= steps[i - 1][0] - 1 && steps[i][1] <= steps[i - 1][1] + 1);
  }
});

it("finds the problem in the middle half of the width, its path's tracks at the top", async () => {
  const { page } = await picture();
  const { from, to } = await view(page);
  const width = to - from;
  assert(Math.abs((START - from) / width - 0.25) < 0.01, `${from} ${to}`);
  assert(Math.abs((END - from) / width - 0.75) < 0.01, `${from} ${to}`);
  const labels = await page.$$eval(".row .label", (all) => all.map((l) => l.textContent.trim()));
  assert.equal(labels[0], "▾ On the path");
  assert.equal(labels[1], "client/client");
  assert.equal(labels[2], "server/server");
  assert(labels[3].includes(HOSTILE));
});

it("reads names that try to be markup as text", async () => {
  const { page, complaints } = await picture();
  assert.notEqual(await page.title(), "owned");
  assert.equal(await page.locator("img").count(), 0);
  assert.deepEqual(complaints, []);
});

it("moves with W A S D, 0 and F", async () => {
  const { page } = await picture();
  const width = (v) => v.to - v.from;
  await page.keyboard.press("0");
  const all = await view(page);
  await page.keyboard.press("w");
  const closer = await view(page);
  assert(Math.abs(width(closer) / width(all) - 0.75) < 0.01);
  await page.keyboard.press("d");
  const right = await view(page);
  assert(right.from > closer.from && Math.abs(width(right) - width(closer)) < 10);
  await page.keyboard.press("a");
  await page.keyboard.press("s");
  const back = await view(page);
  assert(Math.abs(back.from - all.from) < width(all) * 0.01);
  await page.keyboard.press("f");
  assert(width(await view(page)) > END - START);
});

it("zooms with Ctrl and the wheel where the pointer is", async () => {
  const { page } = await picture();
  await page.keyboard.press("0");
  const t = 400 * MS;
  const at = await spot(page, "client/client", t);
  await page.mouse.move(at.x, at.y);
  await page.keyboard.down("Control");
  for (let i = 0; i < 5; i++) await page.mouse.wheel(0, -120);
  await page.keyboard.up("Control");
  const after = await spot(page, "client/client", t);
  assert(Math.abs(after.x - at.x) < 3, `${at.x} ${after.x}`);
  const { from, to } = await view(page);
  assert(to - from < 500 * MS);
});

it("moves by Shift and dragging", async () => {
  const { page } = await picture();
  for (let i = 0; i < 6; i++) await page.keyboard.press("w");
  const t = (await view(page)).from + 20 * MS;
  const at = await spot(page, "client/client", t);
  await page.keyboard.down("Shift");
  await page.mouse.move(at.x, at.y);
  await page.mouse.down();
  await page.mouse.move(at.x + 150, at.y, { steps: 5 });
  await page.mouse.up();
  await page.keyboard.up("Shift");
  const after = await spot(page, "client/client", t);
  assert(Math.abs(after.x - at.x - 150) < 8, `${at.x} ${after.x}`);
});

it("selects a range by dragging, reads the time in it, zooms to it, and lets it go", async () => {
  const { page } = await picture();
  await page.keyboard.press("0");
  const a = await spot(page, "server/server", 200 * MS);
  const b = await spot(page, "server/server", 300 * MS);
  await page.mouse.move(a.x, a.y);
  await page.mouse.down();
  await page.mouse.move(b.x, b.y, { steps: 5 });
  await page.mouse.up();
  assert.match(await page.textContent(".chosen"), /^(99|100|101)(\.\d)? ms selected/);
  await page.click("text=Time and waits");
  await page.waitForSelector(".share");
  assert.match(await page.textContent(".panel"), /the selected range/);
  await page.keyboard.press("z");
  const { from, to } = await view(page);
  assert(Math.abs(from - 200 * MS) < 3 * MS && Math.abs(to - 300 * MS) < 3 * MS);
  await page.keyboard.press("Escape");
  assert.equal(await page.locator(".chosen").count(), 0);
});

it("clicks on a wait and reads who ended it, with both stacks", async () => {
  const { page } = await picture();
  const at = await spot(page, "server/server", 500 * MS);
  await page.mouse.click(at.x, at.y);
  await page.waitForSelector(".selected-detail");
  const text = await page.textContent(".selected-detail");
  assert.match(text, /ended by .*onerror/s);
  assert.match(text, /pthread_mutex_unlock/);
  assert.match(text, /pthread_mutex_lock/);
  assert.match(text, /It had a CPU 200 µs after it was woken/);
  // The interval is marked in the story too.
  await page.waitForSelector(".entry.selected");
});

it("goes along the wake with [, and to the neighbours with , and .", async () => {
  const { page } = await picture();
  const selected = async (who) =>
    page.waitForFunction(
      (who) => document.querySelector(".tabs .quiet")?.textContent.includes(who),
      who,
    );
  const at = await spot(page, "server/server", 500 * MS);
  await page.mouse.click(at.x, at.y);
  await selected("server (200), blocked");
  await page.keyboard.press(".");
  await selected("server (200), runnable");
  await page.keyboard.press(",");
  await selected("server (200), blocked");
  await page.keyboard.press("[");
  await selected("(201), running");
});

it("clicks in the story, and the head moves in the tracks", async () => {
  const { page } = await picture();
  const at = await spot(page, "client/client", 500 * MS);
  await page.mouse.click(at.x, at.y);
  await page.waitForSelector(".entry.selected");
  await page.locator(".entry").first().click();
  await page.waitForFunction(() => new URLSearchParams(location.hash.split("?")[1]).get("t") === "0");
});

it("sees the root's stack without a click, and every edge with its reason", async () => {
  const { page } = await picture();
  const last = page.locator(".path > li").last();
  assert.equal(await last.locator("details[open] .stack li").count() > 0, true);
  const edges = await page.$$eval(".path .edge", (all) => all.map((e) => e.textContent));
  assert.equal(edges.length, 2);
  for (const edge of edges) assert.match(edge, /^because .+(strong|weak)$/);
});

it("reads which threads were running or runnable at a moment", async () => {
  const { page } = await picture();
  const at = await spot(page, "CPU 0", 350.05 * MS);
  await page.mouse.click(at.x, at.y);
  await page.waitForSelector(".panel table td");
  const text = await page.textContent(".panel");
  assert.match(text, /other/);
  assert.match(text, /preempted/);
});

it("sees a flame graph of the range, on and off the CPU", async () => {
  const { page } = await picture();
  await page.click("#tab-flame");
  await page.waitForSelector(".box");
  assert.match(await page.textContent(".flame"), /rebuild_index/);
  await page.check("text=all threads");
  await page.selectOption(".flame-tools select", "off");
  await page.waitForFunction(() => /handle_request/.test(document.querySelector(".flame").textContent));
});

it("filters, sorts and pins threads", async () => {
  const { page } = await picture();
  await page.keyboard.press("/");
  await page.keyboard.type("other");
  await page.waitForFunction(() => !/▾ server/.test(document.querySelector(".rows").textContent));
  await page.keyboard.press("Escape");
  await page.fill("#filter", "");
  const row = page.locator(".row", { hasText: "client/client" }).first();
  await row.hover();
  await row.locator(".pin").click();
  await page.waitForSelector("text=Pinned");
});

it("goes back, forward and reloads to the same view", async () => {
  const { page } = await picture();
  const first = await view(page);
  await page.keyboard.press("0");
  const all = await view(page);
  for (let i = 0; i < 4; i++) await page.keyboard.press("w");
  await page.keyboard.press("f");
  const problem = await view(page);
  await page.reload();
  await settled(page);
  assert.deepEqual(await view(page), problem);
  assert(first.to > 0 && all.to > 0);
  await page.goBack();
  const back = await view(page);
  assert.notDeepEqual([back.from, back.to], [problem.from, problem.to]);
});

it("uses the keyboard alone: rows as a treegrid, Enter selects", async () => {
  const { page } = await picture();
  await page.locator('.row[tabindex="0"]').focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  const focused = await page.evaluate(() => document.activeElement.textContent);
  assert.match(focused, /server\/server/);
  assert.match(focused, /blocked 9\d\.\d %/, "what the canvas shows is said");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".selected-detail");
  await page.locator('.row[tabindex="0"]').focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowLeft");
  await page.waitForSelector('.row[data-key="path"][aria-expanded="false"]');
});

it("reads in light and dark what axe-core finds nothing wrong with", async () => {
  const axe = readFileSync(join(import.meta.dirname, "../node_modules/axe-core/axe.min.js"), "utf8");
  for (const colorScheme of ["light", "dark"]) {
    const { page } = await picture({ colorScheme, bypassCSP: true });
    await page.evaluate(axe);
    const found = await page.evaluate(async () => (await window.axe.run()).violations);
    const told = found.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).slice(0, 3).join(" | ")}`);
    assert.deepEqual(told, [], colorScheme);
  }
});

it("asks why an interval took so long, answers the question, and takes it back", async () => {
  const asked = trace("crates/cli/tests/golden/asked.trace");
  const own = await serve([asked.path]);
  try {
    const { page } = await look(own.url);
    await settled(page);
    await page.fill("#filter", "app");
    const at = await spot(page, "app", 160 * MS);
    const rows = await page.$$eval(".row", (all) =>
      all.map((row) => [row.querySelector(".label").textContent, row.getBoundingClientRect().y]),
    );
    const [, y] = rows.find(([label]) => label === "app");
    await page.mouse.click(at.x, y + 8);
    await page.waitForSelector(".selected-detail");
    await page.keyboard.press("e");
    await page.waitForSelector(".choice");
    const before = await page.textContent("h1");
    assert.match(before, /^app was held up for 100 ms/);
    await page.locator(".choice[aria-pressed=false]").first().click();
    await page.waitForFunction((text) => document.querySelector("h1").textContent !== text, before);
    assert.match(readFileSync(join(asked.path, "answers.toml"), "utf8"), /choice/);
    await page.click("text=Take the answer back");
    await page.waitForFunction((text) => document.querySelector("h1").textContent === text, before);
  } finally {
    own.stop();
    asked.remove();
  }
});

it("writes a problem as one file, and moves about in it offline", async () => {
  const file = join(hang.folder, "report.html");
  command(["export", "--html", file, "--redact", hang.path]);
  const text = readFileSync(file, "utf8");
  assert(text.length < 10e6);
  assert(!text.includes(hang.folder), "the trace's folder is left out");
  const { page, complaints } = await look(`file://${file}`, { offline: true });
  await settled(page);
  assert.match(await page.textContent("h1"), /^client was held up for 901 ms/);
  assert.equal(await page.locator(".step").count(), 3);
  const before = await view(page);
  await page.keyboard.press("w");
  const after = await view(page);
  assert(after.to - after.from < before.to - before.from);
  assert.deepEqual(complaints, []);
});

it("writes a report without what a command line tells", async () => {
  const secret = trace("ui/tests/traces/script.trace");
  try {
    const write = (...options) => {
      const file = join(secret.folder, "report.html");
      command(["export", "--html", file, ...options, secret.path]);
      return readFileSync(file, "utf8");
    };
    assert(write().includes("python3 salaries.py"));
    const text = write("--redact");
    assert.match(text, /python3 was held up/);
    for (const told of ["salaries", "--of-all", "/home", "ann/"]) assert(!text.includes(told), told);
  } finally {
    secret.remove();
  }
});

it("reads the load of one process, and of what goes before others", async () => {
  const { page, complaints } = await picture();
  const note = page.locator('.row[data-key="load"] .note');
  assert.equal((await note.textContent()).trim(), "of all");
  const asked = page.waitForResponse((answer) => /\/load\?.*process=/.test(answer.url()));
  await page.selectOption('select[aria-label="Load of"]', { label: "load of other (300)" });
  // It ran for 100 of the 1000 ms, from the 300th on.
  const { average } = await (await asked).json();
  const sum = average.reduce((all, value) => all + value * 10, 0);
  assert(Math.abs(sum - 100) < 1, String(sum));
  await page.waitForSelector('.row[data-key="load"] .note:has-text("of other (300)")');
  await page.selectOption('select[aria-label="Load of"]', { label: "load of realtime threads" });
  await page.waitForSelector('.row[data-key="load"] .note:has-text("of realtime threads")');
  assert.deepEqual(complaints, []);
});

it("sees the regions that a program marked, and clicks on the one that took long", async () => {
  const own = trace("ui/tests/traces/marks.trace");
  const marked = await serve([own.path]);
  try {
    const { page, complaints } = await look(marked.url);
    await settled(page);
    const names = await page.locator('.row[data-key^="r"] .label').allTextContents();
    assert.deepEqual(names.slice(1).map((name) => name.trim()), ["frame", "load"]);
    const at = await spot(page, "frame", 200 * MS);
    await page.mouse.click(at.x, at.y);
    await page.waitForSelector("text=frame (3): 410 ms in app/app (100)");
    // What is explained then is that frame.
    await page.keyboard.press("e");
    await page.waitForSelector("h1:has-text('for 410 ms'), .facts:has-text('for 410 ms')");
    assert.deepEqual(complaints, []);
  } finally {
    marked.stop();
    own.remove();
  }
});

it("sees system calls as capsules with their names, and clicks on the one that took long", async () => {
  const own = trace("ui/tests/traces/calls.trace");
  const called = await serve([own.path]);
  try {
    const { page, complaints } = await look(called.url);
    await settled(page);
    const notes = await page.locator('.row[data-key$=":calls"] .note').allTextContents();
    assert.deepEqual(notes.map((note) => note.trim()).sort(), ["1 · 20 ms", "2 · 450 ms"]);
    const row = await page.locator('.row[data-key$=":calls"]', { hasText: "450 ms" }).boundingBox();
    const at = await spot(page, "worker", 300 * MS);
    await page.mouse.click(at.x, row.y + row.height / 2);
    await page.waitForSelector("text=called read(3, 28672, 4096) = 4096 in 400 ms, in load < main");
    assert.deepEqual(complaints, []);
  } finally {
    called.stop();
    own.remove();
  }
});

it("compares fast and slow regions, aligned at their begin, and goes to one", async () => {
  const own = trace("ui/tests/traces/frames.trace");
  const framed = await serve([own.path]);
  try {
    const { page, complaints } = await look(framed.url);
    await settled(page);
    await page.click("#tab-compare");
    const at = await spot(page, "frame", 15 * MS);
    await page.mouse.click(at.x, at.y);
    await page.waitForSelector(".aligned");
    assert.match(await page.textContent("#tab-panel b"), /disk/);
    for (const [group, shortest, longest] of [
      ["Fast", 10, 10.4],
      ["Slow", 30, 30.4],
    ]) {
      const rows = page.locator(`section[aria-label="${group} occurrences"] .occurrence`);
      assert.equal(await rows.count(), 6);
      const all = await rows.locator(".course").evaluateAll((lanes) =>
        lanes.map((lane) => {
          const parts = [...lane.children].map((part) => part.getBoundingClientRect());
          return { left: parts[0].left - lane.getBoundingClientRect().left, text: lane.title };
        }),
      );
      // All begin at the same place.
      assert(all.every(({ left }) => Math.abs(left) < 1));
      assert.equal(
        all.every(({ text }) => /waited for the disk.* for 20/.test(text)),
        group === "Slow",
      );
      const length = parseFloat(await rows.first().locator(".n").textContent());
      assert(length >= shortest && length <= longest, String(length));
    }
    await page.locator('section[aria-label="Slow occurrences"] button').first().click();
    const { from, to } = await view(page);
    assert(to - from >= 30 * MS && to - from < 31 * MS, `${from} ${to}`);
    assert.deepEqual(complaints, []);
  } finally {
    framed.stop();
    own.remove();
  }
});

it("begins with a template's view, and takes another from the menu", async () => {
  const own = await serve(["--template", "hang", hang.path]);
  try {
    const { page, complaints } = await look(own.url);
    await settled(page);
    const sorted = () => page.inputValue('select[aria-label="Sort threads"]');
    await page.waitForFunction(
      () => document.querySelector('select[aria-label="Sort threads"]').value === "waiting",
    );
    const menu = 'select[aria-label="View of a template"]';
    const names = await page.locator(`${menu} option`).allTextContents();
    assert.deepEqual(names, ["view", "hang", "desktop", "latency", "paging"]);
    await page.selectOption(menu, { label: "latency" });
    assert.equal(await sorted(), "busy");
    // What it shows is the view that is chosen no more, so that the same can be chosen again.
    assert.equal(await page.inputValue(menu), "view");
    assert.deepEqual(complaints, []);
  } finally {
    own.stop();
  }
});

it("reads that the server was stopped", async () => {
  const own = await serve([hang.path]);
  const { page } = await look(own.url);
  await settled(page);
  own.stop();
  const at = await spot(page, "server/server", 500 * MS);
  await page.mouse.click(at.x, at.y);
  await page.waitForSelector("text=is hangdog open still running?");
});

it("reads that the token is missing", async () => {
  const { page } = await look(server.url.split("?")[0]);
  assert.match(await page.textContent("body"), /the token is missing/);
});

it("chooses among the traces of a folder, and reads which of them is damaged", async () => {
  const own = trace("ui/tests/traces/hang.trace");
  const other = trace("crates/cli/tests/golden/asked.trace");
  rmSync(join(other.path, "meta.json"));
  const folder = await serve(["--dir", "/nonexistent"], own.folder);
  try {
    const { page } = await look(folder.url);
    await page.click("text=t.hang");
    await settled(page);
    await page.click("text=All traces");
    await page.waitForSelector("text=Traces in");
  } finally {
    folder.stop();
    own.remove();
    other.remove();
  }
});

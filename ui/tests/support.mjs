// What the browser tests stand on: a trace made of text, a server, and Debian's Chromium.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { accessSync, constants, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { chromium } from "playwright-core";

const root = join(import.meta.dirname, "../..");
const target = process.env.CARGO_TARGET_DIR ?? join(root, "target");
const hangdog = process.env.HANGDOG ?? join(target, "debug/hangdog");
const fromText = join(target, "debug/examples/from_text");

/** Where the browser is; null where there is none. */
export function browserPath() {
  const names = ["chromium", "chromium-browser", "google-chrome"];
  for (const folder of (process.env.PATH ?? "").split(delimiter)) {
    for (const name of names) {
      const path = join(folder, name);
      try {
        accessSync(path, constants.X_OK);
        return path;
      } catch {
        // It is not there.
      }
    }
  }
  return null;
}

/** Why the tests cannot run here; null if they can. */
export function cannotRun() {
  if (!browserPath()) return "there is no chromium";
  for (const path of [hangdog, fromText, join(root, "ui/dist/index.html")]) {
    if (!existsSync(path)) return `${path} is not built`;
  }
  return null;
}

/** A trace made of a text file, in a folder of its own. */
export function trace(text) {
  const folder = mkdtempSync(join(tmpdir(), "hangdog-ui-"));
  const path = join(folder, "t.hang");
  execFileSync(fromText, [text.startsWith("/") ? text : join(root, text), path]);
  return { path, folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** Runs the command. */
export function command(args) {
  execFileSync(hangdog, args);
}

/** A server that shows a trace, or what is in a folder. */
export async function serve(args, cwd) {
  const server = spawn(hangdog, ["open", "--no-browser", ...args], { cwd });
  let said = "";
  server.stderr.on("data", (data) => (said += data));
  const url = await new Promise((done, fail) => {
    server.stdout.once("data", (data) => done(String(data).trim()));
    server.once("exit", () => fail(new Error(`hangdog open ended: ${said}`)));
  });
  return { url, pid: server.pid, stop: () => server.kill("SIGKILL") };
}

export async function launch() {
  return chromium.launch({
    executablePath: browserPath(),
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
  });
}

/** A page on an address, of which every complaint of the browser is kept. */
export async function visit(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (m) => m.type() === "error" && complaints.push(m.text()));
  page.on("pageerror", (error) => complaints.push(error.message));
  await page.goto(url);
  return { page, complaints, close: () => context.close() };
}

/** Waits until the verdict is there and the tracks are drawn. */
export async function settled(page) {
  await page.waitForSelector(".blame");
  await page.waitForSelector('.canvas[data-settled="true"]');
}

/** The view that the page shows, as its address has it, once it rests. */
export async function view(page) {
  let last = "";
  for (;;) {
    const hash = await page.evaluate(() => location.hash);
    if (hash === last && hash.includes("from=")) break;
    last = hash;
    await page.waitForTimeout(600);
  }
  const params = new URLSearchParams(last.split("?")[1]);
  return Object.fromEntries([...params].map(([key, value]) => [key, Number(value)]));
}

/** Where a track lies on the page, and the column of a moment. */
export async function spot(page, label, t) {
  const { from, to } = await view(page);
  const row = await page
    .locator(".row", { has: page.locator(".label", { hasText: label }) })
    .first()
    .boundingBox();
  const canvas = await page.locator(".canvas").boundingBox();
  assert(row && canvas, `there is no row ${label}`);
  return {
    x: canvas.x + ((t - from) / (to - from)) * canvas.width,
    y: row.y + row.height / 2,
  };
}

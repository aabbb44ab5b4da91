// What the page takes on large traces: `node bench.mjs TRACE...`, with HANGDOG naming an optimised
// command. Prints figures and judges nothing: the machine may be busy.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { launch, serve, visit } from "./support.mjs";

const quantile = (list, q) => {
  const sorted = [...list].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? NaN;
};
const ms = (value) => `${value.toFixed(1)} ms`;
const mb = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

/** Memory of a process and its children that is its own, bytes. */
function resident(pid) {
  const text = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/VmHWM:\s+(\d+)/.exec(text)[1]) * 1024;
}

for (const trace of process.argv.slice(2)) {
  const began = performance.now();
  const server = await serve([trace]);
  const browser = await launch();
  const { page, close } = await visit(browser, server.url);
  await page.waitForSelector('.canvas[data-settled="true"]', { timeout: 120_000 });
  const tracks = performance.now() - began;
  // The verdict, or that there is none.
  await page.waitForFunction(
    () => document.querySelector(".blame") ?? !/^Searching/.test(document.querySelector("h1").textContent),
    null,
    { timeout: 120_000 },
  );
  const verdict = performance.now() - began;
  const renderer = await page.evaluate(() => {
    const gl = document.createElement("canvas").getContext("webgl");
    const info = gl?.getExtension("WEBGL_debug_renderer_info");
    return info ? gl.getParameter(info.UNMASKED_RENDERER_WEBGL) : "no WebGL";
  });
  const stats = () =>
    page.evaluate(
      () =>
        new Promise((done) => {
          addEventListener(
            "hangdog-stats",
            (event) =>
              done({
                frames: [...event.detail.frames],
                tiles: [...event.detail.tiles],
                bytes: [...event.detail.bytes],
              }),
            { once: true },
          );
          dispatchEvent(new Event("hangdog-measure"));
        }),
    );
  await page.keyboard.press("0");
  await page.waitForTimeout(1500);
  await stats();
  // Ten seconds of moving: each frame a step, in and out and along.
  const moved = await page.evaluate(async () => {
    const canvas = document.querySelector(".canvas canvas");
    const box = canvas.getBoundingClientRect();
    const gaps = [];
    const work = [];
    let last = 0;
    const until = performance.now() + 10_000;
    await new Promise((done) => {
      const step = (now) => {
        if (last) gaps.push(now - last);
        last = now;
        const from = performance.now();
        const phase = Math.sin(now / 900);
        canvas.dispatchEvent(
          new WheelEvent("wheel", {
            bubbles: true,
            cancelable: true,
            ctrlKey: Math.floor(now / 1800) % 2 === 0,
            shiftKey: true,
            deltaY: phase * 24,
            clientX: box.left + box.width * 0.55,
            clientY: box.top + 100,
          }),
        );
        work.push(performance.now() - from);
        if (performance.now() < until) requestAnimationFrame(step);
        else done();
      };
      requestAnimationFrame(step);
    });
    return { gaps, work };
  });
  const drawn = await stats();
  const rows = await page.locator(".row").count();
  const info = JSON.parse(
    execFileSync(process.env.HANGDOG, ["info", "--json", trace], { encoding: "utf8" }),
  );
  const heap = await page.evaluate(() => performance.memory?.usedJSHeapSize ?? 0);
  console.log(`${trace}: ${info.event_count.toLocaleString("en-US")} events, ${info.threads} threads
  renderer                 ${renderer}; ${rows} rows in sight
  tracks can be used after ${ms(tracks)}
  verdict after            ${ms(verdict)}
  page: between two frames ${ms(quantile(moved.gaps, 0.5))} median, ${ms(quantile(moved.gaps, 0.99))} for 99 % (${moved.gaps.length} frames)
  page: work of a frame    ${ms(quantile(moved.work, 0.5))} median, ${ms(quantile(moved.work, 0.99))} for 99 %
  worker: drawing a frame  ${ms(quantile(drawn.frames, 0.5))} median, ${ms(quantile(drawn.frames, 0.99))} for 99 % (${drawn.frames.length} frames)
  tiles                    ${ms(quantile(drawn.tiles, 0.5))} median, ${ms(quantile(drawn.tiles, 0.95))} for 95 % (${drawn.tiles.length} answers)
  a view's tiles           ${mb(Math.max(0, ...drawn.bytes))} at most
  memory                   server ${mb(resident(server.pid))} at most, page's heap ${mb(heap)}`);
  await close();
  await browser.close();
  server.stop();
}

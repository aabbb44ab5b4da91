// A web shop: `shop.js PORT FOLDER`. `/health` answers at once and `/page` reads a file; the other
// pages do what blocks a server of one thread. The last part of their path is how long, in s.
"use strict";
const childProcess = require("node:child_process");
const crypto = require("node:crypto");
const fs = require("node:fs");
const http = require("node:http");
const path = require("node:path");

const [port, folder] = process.argv.slice(2);
const SAMPLE = 4000;
const HASHED = 20000;

function cpuSeconds(work) {
  const before = process.cpuUsage();
  work();
  const used = process.cpuUsage(before);
  return (used.user + used.system) / 1e6;
}

// Looks at each run of blanks from each of its blanks.
function endsInBlanks(text) {
  return /\s+$/.test(text);
}

// How long SAMPLE blanks take. The time grows by the square of the blanks.
function timeOfSample() {
  const sample = " ".repeat(SAMPLE) + ".";
  const some = () => { for (let n = 0; n < 5; n++) endsInBlanks(sample); };
  some();
  return cpuSeconds(some) / 5;
}

function postComment(seconds) {
  endsInBlanks(" ".repeat(SAMPLE * Math.sqrt(seconds / sampleTook)) + ".");
}

function bySales(a, b) {
  return b.sold - a.sold || a.title.localeCompare(b.title);
}

// As many lists are sorted as the time allows; each is one of 20 thousand articles.
function bestSellers(seconds) {
  const end = performance.now() + seconds * 1000;
  let best;
  while (performance.now() < end) {
    const articles = [];
    for (let n = 0; n < 20000; n++) {
      articles.push({ title: `article ${n}`, sold: (n * 7919) % 5003 });
    }
    best = articles.sort(bySales)[0];
  }
  return best;
}

function packOrders() {
  childProcess.execFileSync("xz", ["--keep", "--force", "-9", path.join(folder, "orders")]);
}

function readPrices() {
  return fs.readFileSync(path.join(folder, "prices"));
}

// Four at a time, as many as there are threads for it.
function login(seconds, done) {
  const rounds = Math.round((HASHED * seconds) / hashTook);
  let left = 4;
  for (let n = 0; n < 4; n++) {
    crypto.pbkdf2("secret", `salt ${n}`, rounds, 64, "sha512", () => { if (--left === 0) done(); });
  }
}

const sampleTook = timeOfSample();
const hashTook = cpuSeconds(() => crypto.pbkdf2Sync("secret", "salt", HASHED, 64, "sha512"));

http.createServer((request, answer) => {
  const [, page, seconds] = request.url.split("/");
  const done = () => answer.end("done\n");
  if (page === "login") {
    login(Number(seconds), done);
    return;
  }
  if (page === "page") {
    fs.readFile(path.join(folder, "page.html"), done);
    return;
  }
  if (page === "comment") postComment(Number(seconds));
  if (page === "best") bestSellers(Number(seconds));
  if (page === "pack") packOrders();
  if (page === "prices") readPrices();
  done();
}).listen(Number(port), "127.0.0.1", () => console.log("ready"));

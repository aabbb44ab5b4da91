// A catalog: `catalog.js PORT SUPPLIER_PORT`. `/health` answers at once. `/ask/S` asks the supplier,
// who takes S seconds, by an agent that opens one connection only; `/index/S` has a worker thread
// compute an index for S seconds and waits for it with Atomics.wait.
"use strict";
const http = require("node:http");
const { Worker, isMainThread, parentPort, workerData } = require("node:worker_threads");

function computeIndex(seconds) {
  const end = performance.now() + seconds * 1000;
  let index = 0;
  while (performance.now() < end) {
    for (let n = 0; n < 20000; n++) index = (index * 31 + n) % 1000003;
  }
  return index;
}

if (!isMainThread) {
  const done = new Int32Array(workerData);
  parentPort.on("message", (seconds) => {
    computeIndex(seconds);
    Atomics.store(done, 0, 1);
    Atomics.notify(done, 0);
  });
} else {
  const [port, supplierPort] = process.argv.slice(2).map(Number);
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const shared = new SharedArrayBuffer(4);
  const worker = new Worker(__filename, { workerData: shared });

  const askSupplier = (seconds, done) => {
    const options = { host: "127.0.0.1", port: supplierPort, path: `/${seconds}`, agent };
    http.get(options, (answer) => {
      answer.resume();
      answer.on("end", done);
    });
  };

  const waitForIndex = (seconds) => {
    const done = new Int32Array(shared);
    Atomics.store(done, 0, 0);
    worker.postMessage(seconds);
    Atomics.wait(done, 0, 0);
  };

  http.createServer((request, answer) => {
    const [, page, seconds] = request.url.split("/");
    const done = () => answer.end("done\n");
    if (page === "ask") {
      askSupplier(Number(seconds), done);
      return;
    }
    if (page === "index") waitForIndex(Number(seconds));
    done();
  }).listen(port, "127.0.0.1", () => console.log("ready"));
}

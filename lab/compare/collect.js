// A worker of node: each byte that comes is a turn. In a slow one it collects its garbage, of which there is
// much to look through. Run with --expose-gc.
process.title = "worker";
const kept = [];
for (let i = 0; i < 400000; i++) kept.push({ at: i, text: "item " + i });

function compute() {
  let sum = 0;
  for (let i = 0; i < 200000; i++) sum = (sum + i * 31) % 1000003;
  return sum;
}

process.stdin.on("data", (bytes) => {
  compute();
  if (bytes[0] === 0x73) globalThis.gc();
  process.stdout.write(bytes);
});

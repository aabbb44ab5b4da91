// A test of a shop's totals. `package.json` runs it with --inspect-brk, as somebody left it.
const assert = require("node:assert");

assert.strictEqual([1, 2, 3].reduce((sum, price) => sum + price, 0), 6);

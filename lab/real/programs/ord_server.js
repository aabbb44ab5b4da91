// A small web server in node: `node ord_server.js PORT` answers every request with some JSON.
const http = require("http");

http
  .createServer((request, response) => {
    const items = Array.from({ length: 50 }, (_, n) => ({ item: n, name: `item ${n}` }));
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify({ path: request.url, items }));
  })
  .listen(Number(process.argv[2]), "127.0.0.1");

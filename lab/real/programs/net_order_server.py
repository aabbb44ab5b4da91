"""A shop's web server with one thread and a queue for one connection: `net_order_server.py PORT
CONFIRMED`. GET /order checks an order, which is computing until the file CONFIRMED is there; GET
/page answers at once."""

import hashlib
import http.server
import pathlib
import sys


def handle_order(confirmed):
    """Checks an order against all that the shop has in stock."""
    digest = b""
    while not confirmed.exists():
        for _ in range(10000):
            digest = hashlib.sha256(digest).digest()
    return digest.hex()


class Shop(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        is_order = self.path == "/order"
        body = (handle_order(pathlib.Path(sys.argv[2])) if is_order else "welcome").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(http.server.HTTPServer):
    request_queue_size = 1


# A name of its own, as a service has.
with open("/proc/self/comm", "w", encoding="ascii") as file:
    file.write("shop")
Server(("127.0.0.1", int(sys.argv[1])), Shop).serve_forever()

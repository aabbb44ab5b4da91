"""A web server that other programs ask: `slow_upstream.py PORT`. It answers `/S` after S seconds,
in which it sleeps, as one does that limits how often it is asked."""

import http.server
import sys
import time


def limit_rate(seconds):
    time.sleep(seconds)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        limit_rate(float(self.path[1:]))
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"1.5")

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print("ready", flush=True)
server.serve_forever()

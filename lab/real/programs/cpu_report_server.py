"""A web server with a thread for each request: `cpu_report_server.py PORT DONE`. GET /report
renders a report, which is computing until the file DONE is there; GET /page answers at once."""

import hashlib
import http.server
import pathlib
import sys


def render_report(done):
    """Renders a report."""
    digest = b""
    while not done.exists():
        for _ in range(1000):
            digest = hashlib.sha256(digest).digest()
    return digest.hex()


class Reports(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        is_report = self.path == "/report"
        body = (render_report(pathlib.Path(sys.argv[2])) if is_report else "welcome").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


# A name of its own, as a service has.
with open("/proc/self/comm", "w", encoding="ascii") as file:
    file.write("reports")
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Reports).serve_forever()

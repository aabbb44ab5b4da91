"""A web service for reports: `gtk_report_server.py PORT [PAGE]`. `/report?seconds=S` is answered
after S seconds, in which the handler sleeps; any other path is answered with the file PAGE."""

import http.server
import pathlib
import sys
import time
import urllib.parse

def page():
    """The page that uses the service."""
    return pathlib.Path(sys.argv[2]).read_bytes()


class Reports(http.server.BaseHTTPRequestHandler):
    """Answers a request at a time."""

    def do_GET(self):
        """Called by the library for every request."""
        address = urllib.parse.urlsplit(self.path)
        asked = urllib.parse.parse_qs(address.query)
        body = self.slow_report(asked) if address.path == "/report" else page()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def slow_report(self, asked):
        """Makes a report, which takes as long as is asked for."""
        time.sleep(float(asked["seconds"][0]))
        return b"a report"

    def log_message(self, *_):
        """Nobody reads a log."""


open("/proc/self/comm", "w").write("report_server")
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Reports).serve_forever()

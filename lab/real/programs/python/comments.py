"""A web server for comments, a thread for each request: `comments.py PORT`. `/health` answers at
once; `/post/S` takes a comment with so many blanks in it that to strip it takes S seconds, for the
regular expression looks at each run of blanks from each of its blanks."""

import http.server
import re
import sys
import time

TRAILING_BLANKS = re.compile(r"\s+$")
SAMPLE = 4000


def strip_comment(text):
    return TRAILING_BLANKS.sub("", text)


def time_of_sample():
    """How long a comment of SAMPLE blanks takes. The time grows by the square of the blanks."""
    begin = time.thread_time()
    for _ in range(5):
        strip_comment(" " * SAMPLE + ".")
    return (time.thread_time() - begin) / 5


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path.startswith("/post/"):
            seconds = float(self.path.rpartition("/")[2])
            strip_comment(" " * int(SAMPLE * (seconds / SAMPLE_S) ** 0.5) + ".")
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


SAMPLE_S = time_of_sample()
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print("ready", flush=True)
server.serve_forever()

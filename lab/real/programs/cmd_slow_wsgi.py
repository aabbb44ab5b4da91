"""A web application for gunicorn that takes 2 s before it answers with 6 MB."""

import time


def application(_environment, start_response):
    """Answers a request."""
    time.sleep(2)
    body = b"x" * (6 << 20)
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]

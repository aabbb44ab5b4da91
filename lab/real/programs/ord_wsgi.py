"""A small web application for gunicorn: every page says welcome."""


def application(_environment, start_response):
    """Answers a request."""
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"welcome\n"]

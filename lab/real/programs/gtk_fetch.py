"""A GTK program that gets reports from a web service on its main thread: `gtk_fetch.py URL S`,
where the service is asked to take S seconds for a slow one."""

import sys
import urllib.request

import gtk_panel


def fetch_report(seconds):
    """Gets a report."""
    with urllib.request.urlopen(f"{sys.argv[1]}?seconds={seconds}") as answer:
        answer.read()


gtk_panel.run("gtk_fetch", lambda: fetch_report(0), lambda: fetch_report(sys.argv[2]))

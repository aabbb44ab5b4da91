#!/usr/bin/python3
"""Maintainer script of a package: waits until the service that it has restarted should be there, as
such scripts do. RESTART_SECONDS says how long."""

import os
import sys
import time


def await_service(seconds):
    """Gives the service its time."""
    time.sleep(seconds)


if sys.argv[1] == "configure":
    await_service(float(os.environ["RESTART_SECONDS"]))

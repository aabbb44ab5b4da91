"""Comma-separated values."""

import formats

SEPARATOR = ","
NAME = f"{formats.__name__}: comma"

"""Tab-separated values."""

import formats

SEPARATOR = "\t"
NAME = f"{formats.__name__}: tab"

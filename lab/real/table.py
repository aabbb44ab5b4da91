"""The table of results."""


def of(rows):
    """To be written."""
    return f"{len(rows)} rows"

"""The results of a run: one line of JSON each, in a file to which each is added as it comes, so
that a run that was ended can be resumed."""

import json


class Results:
    """The lines of a file, and which of them are there already."""

    def __init__(self, directory, resume):
        self.file = directory / "results.jsonl"
        self.rows = []
        if resume and self.file.exists():
            # A run that was killed may have left its last line unfinished.
            whole = self.file.read_text(encoding="utf-8").rpartition("\n")[0]
            self.rows = [json.loads(line) for line in whole.splitlines()]
            self.file.write_text("".join(json.dumps(row) + "\n" for row in self.rows))
        elif self.file.exists():
            self.file.unlink()
        self.done = {self.key(row) for row in self.rows}

    @staticmethod
    def key(row):
        return row["kind"], row["name"], row.get("setting")

    def add(self, row):
        self.rows.append(row)
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

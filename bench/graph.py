"""How long `hangdog graph` takes on ever larger traces, and a diagnosis of the same."""

import json
import statistics
import subprocess
import time

import answer
import recorders

SIZES = (1_000_000, 5_000_000, 20_000_000)
TIMES = 3


def run(hangdog, words):
    """What the command answers in JSON, and what it took."""
    begin = time.monotonic()
    process = subprocess.Popen([hangdog, *words, "--json"], stdout=subprocess.PIPE, text=True)
    text = process.stdout.read()
    _, peak = recorders.wait(process, words[0])
    return json.loads(text), {"wall_s": time.monotonic() - begin, "peak_bytes": peak}


def measure(hangdog, directory, largest):
    """For each size up to the largest: records, then builds and diagnoses a few times."""
    found = []
    for events in (size for size in SIZES if size <= largest):
        with recorders.empty(directory / "graph") as place:
            trace = place / "large.hang"
            answer.record(hangdog, trace, events)
            runs = []
            for _ in range(TIMES):
                graph, took = run(hangdog, ["graph", str(trace)])
                _, why = run(hangdog, ["why", "--yes", str(trace)])
                made = graph["took"]
                # Both read the trace and make its timeline before all else.
                diagnosis = why["wall_s"] - made["load_s"] - made["timeline_s"]
                runs.append(
                    made
                    | {"diagnosis_s": diagnosis, "why_s": why["wall_s"]}
                    | {"peak_bytes": max(took["peak_bytes"], why["peak_bytes"])}
                )
        counts = {name: graph[name] for name in ("events", "vertices", "edges", "threads")}
        found.append(counts | {"lost": graph["loss"]["total"], "runs": runs})
    return found


def show(found):
    """Prints it: medians, with the least and the greatest of the graph."""
    print("\nevents        vertices     edges        load s  timeline s  graph s           diagnosis s  GB")
    for one in found:
        middle = {
            key: statistics.median(run[key] for run in one["runs"]) for key in one["runs"][0]
        }
        graph = [run["graph_s"] for run in one["runs"]]
        print(
            f"{one['events']:<13,} {one['vertices']:<12,} {one['edges']:<12,} "
            f"{middle['load_s']:<7.2f} {middle['timeline_s']:<11.2f} "
            f"{middle['graph_s']:<5.2f} ({min(graph):.2f}-{max(graph):.2f}) "
            f"{middle['diagnosis_s']:<12.2f} {middle['peak_bytes'] / 1e9:.2f}"
        )

"""The formats that the exporter knows, each of which a thread imports."""

import importlib
import threading


def load(name):
    importlib.import_module(f"formats.{name}")


def load_all():
    threads = [threading.Thread(target=load, args=(name,)) for name in ("comma", "tab")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


load_all()

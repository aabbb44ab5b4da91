"""A news reader that obeys its stdin: `show` counts the articles, `refresh S` has a thread refresh
them, whose server has it try again after S seconds. Both take one lock."""

import sys
import threading
import time

articles = ["first", "second"]
articles_lock = threading.Lock()
asked = threading.Event()
retry_s = 0.0


def wait_before_retry():
    time.sleep(retry_s)


def refresh():
    while True:
        asked.wait()
        asked.clear()
        with articles_lock:
            print(threading.get_native_id(), flush=True)
            wait_before_retry()
            articles.append("another")


def show():
    with articles_lock:
        return len(articles)


threading.Thread(target=refresh, daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    word, _, rest = line.strip().partition(" ")
    if word == "refresh":
        retry_s = float(rest)
        asked.set()
        continue
    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    show()
    print(begin, time.clock_gettime_ns(time.CLOCK_MONOTONIC), flush=True)

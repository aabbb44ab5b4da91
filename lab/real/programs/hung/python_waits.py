"""A Python program that waits for good: python_waits.py PATTERN [FIFO]. PATTERN is
  locks    two threads take two locks in opposite orders; the main thread joins the first;
  queue    the main thread waits for what a thread should put into a queue, which reads a FIFO;
  pool     the main thread waits for the result of a process, which reads a FIFO;
  future   the main thread awaits a future that nobody resolves."""

import asyncio
import concurrent.futures
import queue
import sys
import threading


def name(text):
    """Gives the thread a name that others see."""
    with open("/proc/thread-self/comm", "w", encoding="ascii") as file:
        file.write(text)


def read(path):
    """Waits for somebody who writes."""
    with open(path, encoding="ascii") as file:
        return file.read()


def locks():
    first, second = threading.Lock(), threading.Lock()
    both_hold = threading.Barrier(2)

    def take(own_name, own, other):
        name(own_name)
        with own:
            both_hold.wait()
            with other:
                pass

    threads = [
        threading.Thread(target=take, args=("first", first, second)),
        threading.Thread(target=take, args=("second", second, first)),
    ]
    for thread in threads:
        thread.start()
    threads[0].join()


def from_queue(path):
    results = queue.Queue()

    def produce():
        name("producer")
        results.put(read(path))

    threading.Thread(target=produce).start()
    results.get()


def from_pool(path):
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        pool.submit(read, path).result()


async def never():
    await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    pattern, *rest = sys.argv[1:]
    if pattern == "locks":
        locks()
    elif pattern == "queue":
        from_queue(*rest)
    elif pattern == "pool":
        from_pool(*rest)
    elif pattern == "future":
        asyncio.run(never())

"""Threads that compute and wait, each in functions that the test knows by name."""

import json
import os
import sys
import threading
import time


def pick(seconds):
    time.sleep(seconds)


def climb(seconds):
    pick(seconds)


def harvest():
    for _ in range(20):
        climb(0.02)


class Press:
    def __init__(self):
        self.lock = threading.Lock()

    def turn(self):
        with self.lock:
            return True

    def crush(self, seconds=0.4):
        end = time.monotonic() + seconds
        juice = 1
        while time.monotonic() < end:
            juice = juice * 31 + 7 & 0xFFFFFFFF
        return juice


def ripen():
    while True:
        time.sleep(0.02)
        yield


def watch():
    for _, _ in zip(range(20), ripen()):
        pass


def water():
    return [time.sleep(0.02) for _ in range(20)]


def weigh(apple):
    time.sleep(0.002)
    return -apple


def sort():
    for _ in range(20):
        sorted(range(10), key=weigh)


def größer():
    for _ in range(20):
        time.sleep(0.02)


def work(task):
    fact = {"task": task.__name__, "tid": threading.get_native_id()}
    # In one piece: others write at the same time.
    os.write(1, (json.dumps(fact) + "\n").encode())
    task()


def main():
    # Until the recorder has learnt what this program is.
    time.sleep(float(sys.argv[1]))
    press = Press()
    press.lock.acquire()
    tasks = [harvest, press.turn, press.crush, watch, water, sort, größer]
    threads = [threading.Thread(target=work, args=[task]) for task in tasks]
    for thread in threads:
        thread.start()
    time.sleep(0.6)
    press.lock.release()
    for thread in threads:
        thread.join()
    child = os.fork()
    if child == 0:
        work(harvest)
        os._exit(0)
    os.waitpid(child, 0)


main()

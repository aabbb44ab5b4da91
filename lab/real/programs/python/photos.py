"""A photo service whose work goes through lists in Redis: `photos.py SOCKET ROLE LIST`. As `worker`
it takes a job from the list, scales the picture and answers; as `site` it obeys its stdin, where
each line is how long the next picture takes, in s."""

import json
import os
import sys
import time

import redis


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def scale_picture(seconds):
    """Makes a picture smaller."""
    end = time.monotonic() + seconds
    pixels = 0
    while time.monotonic() < end:
        pixels += sum(n * 7 % 255 for n in range(1000))
    return pixels


def work(server, jobs):
    """Takes one job after the other."""
    while True:
        _, job = server.blpop([jobs])
        job = json.loads(job)
        scale_picture(job["seconds"])
        server.rpush(job["answer"], "scaled")


def site(server, jobs):
    """Has a picture scaled for each line."""
    answer = f"answer:{os.getpid()}"
    for line in sys.stdin:
        begin = now_ns()
        server.rpush(jobs, json.dumps({"answer": answer, "seconds": float(line)}))
        server.blpop([answer])
        print(begin, now_ns(), flush=True)


def main():
    path, role, jobs = sys.argv[1:]
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write(f"photo_{role}")
    server = redis.Redis(unix_socket_path=path)
    server.ping()
    print("ready", flush=True)
    {"worker": work, "site": site}[role](server, jobs)


main()

"""Makes previews of documents with a ThreadPoolExecutor of two threads: `previews.py` obeys its
stdin. `page` makes the preview of one page. `book S` makes two of books, each of which has its pages
made by the same pool and waits for them for S seconds at most."""

import concurrent.futures
import sys
import time

pool = concurrent.futures.ThreadPoolExecutor(2, thread_name_prefix="preview")


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def preview_page(page):
    return sum(n * page for n in range(1000))


def preview_book(seconds):
    pages = [pool.submit(preview_page, page) for page in range(3)]
    done, _ = concurrent.futures.wait(pages, timeout=seconds)
    return len(done)


def main():
    print("ready", flush=True)
    for line in sys.stdin:
        word, _, rest = line.strip().partition(" ")
        begin = now_ns()
        if word == "book":
            for future in [pool.submit(preview_book, float(rest)) for _ in range(2)]:
                future.result()
        else:
            pool.submit(preview_page, 7).result()
        print(begin, now_ns(), flush=True)


main()

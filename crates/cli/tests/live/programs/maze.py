"""Sleeps at the end of many random chains of calls; prints the chains, as Python sees them."""

import functools
import json
import os
import random
import sys
import time

choose = random.Random(5)
chains = []


def sleep():
    frame, chain = sys._getframe(), []
    while frame:
        code = frame.f_code
        chain.append(f"{code.co_qualname} {code.co_filename}:{code.co_firstlineno}")
        frame = frame.f_back
    time.sleep(0.0005)
    chains.append(chain)


def descend(depth):
    if depth == 0:
        sleep()
    else:
        choose.choice(WAYS)(depth - 1)


def plainly(depth):
    descend(depth)


def by_sorting(depth):
    sorted([depth], key=descend)


def by_comprehension(depth):
    return {d: [descend(d) for d in [d]] for d in [depth]}


def by_generator(depth):
    def within():
        yield from (descend(d) for d in [depth])

    for _ in within():
        pass


def by_coroutine(depth):
    async def inner():
        descend(depth)

    async def outer():
        await inner()

    try:
        outer().send(None)
    except StopIteration:
        pass


def by_reducing(depth):
    functools.reduce(lambda _, d: descend(d), [depth], 0)


def by_mapping(depth):
    list(map(functools.partial(lambda x, d: descend(d), 1), [depth]))


def by_code(depth):
    exec(compile(f"\n\ndef made(): descend({depth})\nmade()", f"<made {depth}>", "exec"), globals())


def by_exception(depth):
    try:
        raise KeyError(depth)
    except KeyError as error:
        descend(error.args[0])


class Thing:
    def __init__(self, depth):
        self.depth = depth

    @property
    def value(self):
        return descend(self.depth)

    def __getitem__(self, depth):
        descend(depth)

    def __del__(self):
        descend(self.depth)

    def __enter__(self):
        descend(self.depth)

    def __exit__(self, *_):
        pass


class Quiet(Thing):
    def __del__(self):
        pass


def by_property(depth):
    Quiet(depth).value


def by_index(depth):
    Quiet(depth)[depth]


class Beginning:
    def __init__(self, depth):
        descend(depth)


def by_beginning(depth):
    Beginning(depth)


def by_end(depth):
    Thing(depth)


def by_context(depth):
    with Quiet(depth):
        pass


WAYS = [way for name, way in globals().items() if name.startswith("by_") or name == "plainly"]
time.sleep(float(sys.argv[1]))
for _ in range(400):
    descend(choose.randrange(9))
os.write(1, (json.dumps({"chains": chains, "tid": os.getpid()}) + "\n").encode())

#!/usr/bin/env python3
"""Looks for files of a crate that need each other in a circle: `circles.py CRATE_DIRECTORY...`.

A file needs another one if it names something of it, by `use` or by a path. A file in a folder may use
what the file that heads the folder has (`super::`): that one declares it, and the two are read together.
What tests need is not looked at. Prints each circle, and ends with 1 if there is one.
"""

import re
import sys
from pathlib import Path


def module_of(file, source):
    parts = list(file.relative_to(source).with_suffix("").parts)
    if parts[-1] in ("mod", "lib", "main"):
        parts.pop()
    return tuple(parts)


def code_of(file):
    """The text without comments, literals and the tests at its end."""
    text = re.sub(r"//[^\n]*", "", file.read_text())
    text = re.sub(r'"(?:\\.|[^"\\])*"', '""', text)
    return re.split(r"#\[cfg\(test\)\]\s*(?:pub\S* )?mod ", text)[0]


def paths_of(tree):
    """The paths that a `use` names: `a::{b, c::d}` is two."""
    head, brace, rest = tree.strip().partition("{")
    if not brace:
        return [head.strip()]
    paths, depth, begin = [], 0, 0
    inner = rest.rstrip().removesuffix("}") + ","
    for at, letter in enumerate(inner):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            paths += [head.strip() + path for path in paths_of(inner[begin:at])]
            begin = at + 1
    return paths


def target_of(path, module, modules):
    """The module that a path leads to, if it is one of the crate."""
    parts = re.findall(r"\w+", path)
    base = ()
    if parts[0] == "crate":
        parts = parts[1:]
    elif parts[0] in ("self", "super"):
        base = module
        while parts and parts[0] in ("self", "super"):
            base = base[:-1] if parts[0] == "super" else base
            parts = parts[1:]
    else:
        base = module
        if base + (parts[0],) not in modules:
            return None
    for end in range(len(parts), -1, -1):
        if base + tuple(parts[:end]) in modules:
            return base + tuple(parts[:end])
    return None


def needs(source):
    """What each module of the crate needs of the others."""
    modules = {module_of(file, source): file for file in source.rglob("*.rs")}
    graph = {}
    for module, file in modules.items():
        code = code_of(file)
        uses = re.findall(r"\buse\s+([^;]+);", code)
        paths = [path for tree in uses for path in paths_of(tree)]
        code = re.sub(r"\buse\s+[^;]+;|pub\((?:crate|super|in [^)]*)\)", "", code)
        paths += re.findall(r"(?<![\w:])\w+(?:::\w+)+", code)
        found = {target_of(path, module, modules) for path in paths if re.match(r"\w", path)}
        heads = {module[:end] for end in range(1, len(module) + 1)}
        graph[module] = found - heads - {None}
    return graph


def circles(graph):
    """The sets of modules that reach each other, by Tarjan's algorithm."""
    order, lowest, stack, found = {}, {}, [], []

    def visit(module):
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for needed in graph[module]:
            if needed not in order:
                visit(needed)
            if needed in stack:
                lowest[module] = min(lowest[module], lowest[needed])
        if lowest[module] == order[module]:
            at = stack.index(module)
            if len(stack) - at > 1:
                found.append(stack[at:])
            del stack[at:]

    for module in graph:
        if module not in order:
            visit(module)
    return found


def main():
    failed = False
    for crate in map(Path, sys.argv[1:]):
        for circle in circles(needs(crate / "src")):
            failed = True
            names = sorted("::".join(module) or "the crate's root" for module in circle)
            print(f"{crate}: these need each other in a circle: {', '.join(names)}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Measures the shape of the source tree: tools/figures.py [ROOT]

Prints one line for each figure, so that two trees can be compared line by line:

    git worktree add ../before dec2257
    diff <(tools/figures.py ../before) <(tools/figures.py)

Production code is every tracked Rust file under a `src` directory of `crates`, without the
crate `sluice-testing`, test files and `#[cfg(test)] mod tests` blocks at the end of a file.

    tools/figures.py --names   also lists the type names that are defined more than three times
    tools/figures.py --cycles  also lists the modules of sluice-core that form a cycle
"""

import collections
import pathlib
import re
import subprocess
import sys

DIALECT = re.compile(r"\b(whoever|somebody|nobody|anybody)\b", re.IGNORECASE)
TYPE = re.compile(r"^\s*(?:pub(?:\([^)]*\))? )?(?:struct|enum|union|trait|type) ([A-Z]\w*)", re.MULTILINE)
FUNCTION = re.compile(r"^\s*(?:pub(?:\([^)]*\))? )?(?:const |async |unsafe )*fn (\w+)", re.MULTILINE)
INLINE_TESTS = "\n#[cfg(test)]\nmod tests {"


def tracked(root):
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, check=True)
    return [name for name in listed.stdout.decode().split("\0") if name]


def is_test(path):
    return "/tests/" in path or path.endswith("/tests.rs") or path.startswith("crates/sluice-testing/")


def production(root):
    """Maps the path of every production source file to its text, tests removed."""
    sources = {}
    for name in tracked(root):
        if re.match(r"crates/[^/]+/src/.*\.rs$", name) and not is_test(name):
            text = (pathlib.Path(root) / name).read_text(encoding="utf-8")
            sources[name] = text.split(INLINE_TESTS)[0]
    return sources


def lines_of(text):
    """Counts lines of code, of documentation, of comments, and blank lines."""
    counts = collections.Counter()
    for line in text.splitlines():
        line = line.strip()
        if not line:
            counts["blank"] += 1
        elif line.startswith(("///", "//!")):
            counts["documentation"] += 1
        elif line.startswith("//"):
            counts["comment"] += 1
        else:
            counts["code"] += 1
    return counts


def without_associated_types(text):
    """Removes `type` lines inside `impl` and `trait` blocks: they name no new type."""
    return re.sub(r"^\s+type [A-Z]\w*.*$", "", text, flags=re.MULTILINE)


def type_names(sources):
    names = collections.Counter()
    for text in sources.values():
        names.update(TYPE.findall(without_associated_types(text)))
    return names


def core_imports(sources):
    """Maps each top module of sluice-core to the top modules that it names."""
    prefix = "crates/sluice-core/src/"
    modules = {
        path[len(prefix):].split("/")[0].removesuffix(".rs")
        for path in sources
        if path.startswith(prefix)
    } - {"lib"}
    graph = {module: set() for module in modules}
    for path, text in sources.items():
        if not path.startswith(prefix):
            continue
        module = path[len(prefix):].split("/")[0].removesuffix(".rs")
        if module == "lib":
            continue
        code = "\n".join(line.split("//")[0] for line in text.splitlines())
        named = set(re.findall(r"\bcrate::(\w+)", code))
        for group in re.findall(r"\bcrate::\{([^;]*?)\};", code, re.DOTALL):
            named |= set(re.findall(r"(?:^|[,{\s])(\w+)", group))
        graph[module] |= (named & modules) - {module}
    return graph


def reached(graph, start):
    seen, left = set(), [start]
    while left:
        for other in graph[left.pop()]:
            if other not in seen:
                seen.add(other)
                left.append(other)
    return seen


def in_cycles(graph):
    return sorted(module for module in graph if module in reached(graph, module))


def store_methods(sources):
    """Counts the methods that an implementation of the store port has to write."""
    counts = {}
    for path, text in sources.items():
        if not path.startswith("crates/sluice-core/src/port/"):
            continue
        for name, body in re.findall(r"^pub trait (\w+)[^{]*\{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL):
            counts[name] = len(re.findall(r"^    (?:async )?fn ", body, re.MULTILINE))
    return counts


def main():
    options = {word for word in sys.argv[1:] if word.startswith("--")}
    roots = [word for word in sys.argv[1:] if not word.startswith("--")]
    root = roots[0] if roots else "."
    sources = production(root)
    lines = sum((lines_of(text) for text in sources.values()), collections.Counter())
    names = type_names(sources)
    shared = {name: count for name, count in names.items() if count > 3}
    functions = [name for text in sources.values() for name in FUNCTION.findall(text)]
    graph = core_imports(sources)
    cycle = in_cycles(graph)
    ports = store_methods(sources)
    store = ["Store", "Ledger", "Deliveries", "Slots", "Lineage", "Feed", "Inspect"]
    print(f"production files: {len(sources)}")
    print(f"production lines: {sum(lines.values())}")
    for kind in ["code", "documentation", "comment", "blank"]:
        print(f"  {kind}: {lines[kind]}")
    share = 100 * sum(shared.values()) / max(1, sum(names.values()))
    print(f"types: {sum(names.values())} under {len(names)} names")
    print(f"types that share their name with at least three others: {share:.1f} % ({len(shared)} names)")
    short = sum(len(name) <= 5 for name in functions)
    print(f"functions: {len(functions)}, {100 * short / len(functions):.0f} % with at most five letters")
    print(f"whoever, somebody, nobody, anybody: {sum(len(DIALECT.findall(text)) for text in sources.values())}")
    print(f"modules of sluice-core in cycles: {len(cycle)} of {len(graph)}")
    print(f"methods of the store port: {sum(ports.get(name, 0) for name in store)}")
    print(f"uses of cfg(feature): {sum(text.count('cfg(feature') for text in sources.values())}")
    if "--names" in options:
        for name, count in sorted(shared.items(), key=lambda item: (-item[1], item[0])):
            places = [path for path, text in sources.items() if name in TYPE.findall(without_associated_types(text))]
            print(f"{count} {name}: {' '.join(sorted(places))}")
    if "--cycles" in options:
        for module in cycle:
            print(f"{module}: {' '.join(sorted(graph[module] & set(cycle)))}")


main()

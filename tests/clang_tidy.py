#!/usr/bin/env python3
"""Runs clang-tidy (.clang-tidy) over the product's C++ sources, as the translation units of a GCC build.

Usage: tests/clang_tidy.py BUILD [PATTERN]   PATTERN: regular expression on the paths of translation units.
Prints each hit once and ends with `N passed, N failed`. The generated sources of BUILD must exist.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROOMS = ("master", "common", "agent", "cli", "harness")


def clang_command(command):
    """The command without GCC's precompiled headers, warnings and outputs."""
    words = iter(shlex.split(command))
    for word in words:
        if re.search(r"(c|g)\+\+(-\d+)?$", word):
            break
    kept = ["clang++", "-w"]
    for word in words:
        if word in ("-include", "-MT", "-MF", "-o"):
            next(words)
        elif not word.startswith("-W") and word not in ("-MD", "-w"):
            kept.append(word)
    return shlex.join(kept)


def units(build, pattern):
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        base = build if path.is_relative_to(build) else ROOT
        name = str(path.relative_to(base)) if path.is_relative_to(base) else ""
        if name.split("/")[0] in ROOMS and "det_pch_" not in name and re.search(pattern, name):
            yield name, {"directory": entry["directory"], "file": entry["file"],
                         "command": clang_command(entry["command"])}


def check(tool, database, path):
    done = subprocess.run([tool, "--quiet", "-p", database, path], cwd=ROOT, capture_output=True, text=True)
    hits = set(re.findall(r"^(\S+:\d+):\d+: (?:warning|error): (.* \[[\w.,-]+\])$", done.stdout, re.M))
    if done.returncode != 0 and not hits:
        hits.add((path, (done.stderr.strip().split("\n") or ["failed"])[-1]))
    return hits


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1]).resolve()
    tool = shutil.which("clang-tidy-14") or shutil.which("clang-tidy")
    if not tool:
        print("clang-tidy is not installed; install the Debian package clang-tidy\n0 passed, 1 failed")
        return 1
    found = dict(units(build, sys.argv[2] if len(sys.argv) == 3 else ""))
    with tempfile.TemporaryDirectory() as database, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        (pathlib.Path(database) / "compile_commands.json").write_text(json.dumps(list(found.values())))
        results = list(pool.map(lambda unit: check(tool, database, unit["file"]), found.values()))
    for place, text in sorted(set().union(*results)):
        print(f"{place.removeprefix(str(ROOT) + '/')}: {text}")
    failed = sum(1 for hits in results if hits)
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())

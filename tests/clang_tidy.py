#!/usr/bin/env python3
"""Runs clang-tidy (.clang-tidy) over the product's C++ sources, with the commands of a GCC build.

Usage: tests/clang_tidy.py BUILD [PATTERN]    all translation units; PATTERN: regular expression on their paths
       tests/clang_tidy.py BUILD --changed    sources that differ from the merge base with main, each alone
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
            # Clang 14 instantiates vectors of LibTorch's IValue before the type is complete, unless it comes first.
            if "det_pch_torch" in next(words):
                kept += ["-include", "ATen/core/ivalue.h"]
        elif not word.startswith("-W") and word not in ("-MD", "-w"):
            kept.append(word)
    return shlex.join(kept)


def units(build):
    """Translation units by their paths in the source tree or in the build."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        base = build if path.is_relative_to(build) else ROOT
        name = str(path.relative_to(base)) if path.is_relative_to(base) else ""
        if name.split("/")[0] in ROOMS and "det_pch_" not in name:
            yield name, {"directory": entry["directory"], "file": entry["file"],
                         "command": clang_command(entry["command"])}


def sources(found):
    """Commands that compile each source alone, by the path of the source in the source tree."""
    for name, unit in found.items():
        parts = [unit["file"]]
        if "/Unity/" in name:
            parts = re.findall(r'#include "(.*)"', pathlib.Path(unit["file"]).read_text())
        for part in parts:
            command = unit["command"].replace(unit["file"], part)
            yield os.path.relpath(part, ROOT), {"directory": unit["directory"], "file": part, "command": command}


def git(*words):
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.split() if done.returncode == 0 else []


def changed():
    """Changed sources of the rooms. A changed header stands for the source of the same name."""
    base = git("merge-base", "HEAD", "main") or git("merge-base", "HEAD", "origin/main") or ["HEAD"]
    names = git("diff", "--name-only", base[0]) + git("ls-files", "-o", "--exclude-standard")
    return {re.sub(r"\.h$", ".cc", name) for name in names if name.endswith((".h", ".cc"))}


def check(tool, database, path):
    done = subprocess.run([tool, "--quiet", "-p", database, path], cwd=ROOT, capture_output=True, text=True)
    hits = set(re.findall(r"^(\S+:\d+):\d+: (?:warning|error): (.* \[[\w.,-]+\])$", done.stdout, re.M))
    if done.returncode != 0 and not hits:
        hits.add((path, (done.stderr.strip().split("\n") or ["failed"])[-1]))
    # The same header is reached through several rooms of the build (cmake/rooms.cmake).
    return {(re.sub(r"^.*/rooms/[^/]+/", "", place).removeprefix(f"{ROOT}/"), text) for place, text in hits}


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1]).resolve()
    only = sys.argv[2] if len(sys.argv) == 3 else ""
    tool = shutil.which("clang-tidy-14")
    if not tool:
        print("clang-tidy-14 is not installed; install Debian 12's package clang-tidy\n0 passed, 1 failed")
        return 1
    found = dict(units(build))
    if only == "--changed":
        wanted = changed()
        found = {name: unit for name, unit in sources(found) if name in wanted}
        if not found:
            print("no source of the product has changed\n1 passed, 0 failed")
            return 0
    else:
        found = {name: unit for name, unit in found.items() if re.search(only, name)}
    with tempfile.TemporaryDirectory() as database, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        (pathlib.Path(database) / "compile_commands.json").write_text(json.dumps(list(found.values())))
        results = list(pool.map(lambda unit: check(tool, database, unit["file"]), found.values()))
    for place, text in sorted(set().union(*results)):
        print(f"{place}: {text}")
    failed = sum(1 for hits in results if hits)
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())

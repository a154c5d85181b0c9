#!/usr/bin/env python3
"""Owns the house rules that a compiler does not check. Each rule is one test; a violation names file and line."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CODE = {".h", ".cc", ".cpp", ".proto", ".py", ".sh", ".ts", ".tsx", ".mjs", ".sql", ".cmake"}
CXX = {".h", ".cc", ".cpp"}


def files(suffixes):
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout.split("\n")
    for name in sorted(set(listed)):
        path = ROOT / name
        if name and path.suffix in suffixes and path.is_file():
            yield name, path.read_text(encoding="utf-8").split("\n")


def code_of(line):
    """The line without its comment and its string literals: words in prose are free."""
    line = re.sub(r'"(\\.|[^"\\])*"', '""', line)
    return re.sub(r"//.*", "", line)


def too_long_files():
    return [f"{name}: {len(lines)} lines; 500 is the most" for name, lines in files(CODE) if len(lines) > 501]


def opens_with_what_it_owns():
    wrong = []
    for name, lines in files({".h", ".cc", ".proto", ".sh", ".py", ".ts", ".tsx", ".mjs"}):
        if name.endswith(".cc") and (ROOT / name).with_suffix(".h").exists():
            continue  # the header says it
        head = [line for line in lines[:6] if line.strip() and not line.startswith("#!")]
        if not head or not re.match(r'\s*(//|#|/\*|""")', head[0]) or head[0].startswith(("#pragma", "#include")):
            wrong.append(f"{name}:1: does not open with what it owns")
    return wrong


def banned(pattern, suffixes, allowed, why):
    wrong = []
    for name, lines in files(suffixes):
        if any(name == place or (place.endswith("/") and name.startswith(place)) for place in allowed):
            continue
        for number, line in enumerate(lines, 1):
            if re.search(pattern, code_of(line)):
                wrong.append(f"{name}:{number}: {why}")
    return wrong


def long_functions():
    """A body that opens at a line's end and whose closing brace stands alone at the same indent."""
    wrong = []
    for name, lines in files(CXX):
        start = None
        for number, line in enumerate(lines, 1):
            opens = re.match(r"^( {0,4})(?!namespace|class|struct|enum|union|extern|else|if|for|while|switch|do\b|TEST_CASE|SCENARIO)[\w:<>,~&*\s\[\]=.\"()-]*\)[^;]*\{\s*$", line)
            if opens and start is None:
                start = number
                # A signature over several lines: the brace that closes stands below its first one.
                while lines[start - 1].startswith(" " * 5) and start > 1:
                    start -= 1
                indent = re.match(" *", lines[start - 1]).group()
            elif start is not None and line.rstrip() in (indent + "}", indent + "};"):
                if number - start > 71:
                    wrong.append(f"{name}:{start}: function of {number - start - 1} lines; 70 is the most")
                start = None
    return wrong


def unfinished_words():
    words = r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b"
    return [f"{name}:{number}: unfinished"
            for name, lines in files(CODE | {".md", ".yaml", ".txt"})
            for number, line in enumerate(lines, 1) if re.search(words, line)]


def sql_from_data():
    """SQL is text in one piece with parameters; nothing is pasted into it but column names of ours."""
    wrong = []
    for name, lines in files(CXX):
        if not name.startswith("master/"):
            continue
        for number, line in enumerate(lines, 1):
            if re.search(r'"\s*(SELECT|INSERT|UPDATE|DELETE)\b.*"\s*\+\s*(?!k[A-Z])\w+\.', line):
                wrong.append(f"{name}:{number}: SQL built from data; use a parameter")
    return wrong


def machine_words():
    wrong = []
    words = [r"/work/" + "main", r"/work/" + "shared", "farm-" + "studio", "farm-" + "bench"]
    for name, lines in files(CODE | {".md", ".yaml", ".json", ".txt"}):
        for number, line in enumerate(lines, 1):
            if any(re.search(word, line) for word in words):
                wrong.append(f"{name}:{number}: names a machine of ours")
    return wrong


def leftovers():
    """Of editors and of patch."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout.splitlines()
    return [f"{name}: a leftover" for name in listed if re.search(r"\.(orig|rej|bak|patch)$|~$", name) and (ROOT / name).exists()]


RULES = {
    "no tool has left a file behind": leftovers,
    "a file has at most 500 lines": too_long_files,
    "a function has at most 70 lines": long_functions,
    "a file opens with what it is for": opens_with_what_it_owns,
    "only base/queue.h and base/shared.h have a mutex": lambda: banned(
        r"std::(recursive_|shared_|timed_)?mutex", CXX, ["base/queue.h", "base/shared.h"], "std::mutex outside base/queue.h and base/shared.h"),
    "only base/clock asks for the time": lambda: banned(
        r"(system_clock|steady_clock)::now|\bgettimeofday\b|\bclock_gettime\b", CXX,
        ["base/clock.cc", "examples/", "tests/bench/"], "asks for the time outside base/clock"),
    "nothing naps": lambda: banned(
        r"sleep_for|sleep_until|\busleep\(|\bnanosleep\(", CXX, ["base/wait.cc"], "naps"),
    "the master, the agent and the CLI never see LibTorch": lambda: [
        wrong for wrong in banned(r"#include [<\"](torch|ATen|c10)/", CXX, ["harness/", "examples/", "tests/"],
                                  "LibTorch outside the harness")],
    "nothing is left for later": unfinished_words,
    "SQL is never built from data": sql_from_data,
    "no file names a machine of ours": machine_words,
}


def main():
    passed = failed = 0
    for rule, check in RULES.items():
        wrong = check()
        print(("ok    " if not wrong else "FAIL  ") + rule)
        for line in wrong:
            print("      " + line)
        passed, failed = (passed + 1, failed) if not wrong else (passed, failed + 1)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())

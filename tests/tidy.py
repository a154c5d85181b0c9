#!/usr/bin/env python3
"""Rules of the source tree that a compiler does not check. Each rule is one test; a violation names file and line."""
import collections
import pathlib
import re
import shutil
import subprocess
import sys

import prose

ROOT = pathlib.Path(__file__).resolve().parent.parent
MARKDOWN = {".md"}
CODE = {".h", ".cc", ".cpp", ".proto", ".py", ".sh", ".ts", ".tsx", ".mjs", ".sql", ".cmake", ".css"}
CXX = {".h", ".cc", ".cpp"}


def files(suffixes):
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout.split("\n")
    for name in sorted(set(listed)):
        path = ROOT / name
        if name and path.suffix in suffixes and path.is_file():
            yield name, path.read_text(encoding="utf-8").split("\n")


def code_of(line):
    """The line without its comment and its string literals: words in prose are not code."""
    line = re.sub(r'"(\\.|[^"\\])*"', '""', line)
    return re.sub(r"//.*", "", line)


def too_long_files():
    return [f"{name}: {len(lines)} lines; the maximum is 500" for name, lines in files(CODE) if len(lines) > 501]


def full_folders():
    """A folder with more files is several rooms."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\n")
    counts = collections.Counter(str(pathlib.PurePath(name).parent) for name in listed
                                 if pathlib.PurePath(name).suffix in CODE | MARKDOWN and "migrations" not in name)
    return [f"{folder}: {count} files; the maximum is 40" for folder, count in counts.items() if count > 40]


def unformatted():
    """Debian 12's clang-format decides; other releases format differently."""
    tool = shutil.which("clang-format-14") or shutil.which("clang-format")
    if not tool:
        return ["clang-format is not installed; run deploy/deps.sh test"]
    if "version 14." not in subprocess.run([tool, "--version"], capture_output=True, text=True).stdout:
        return []
    names = [name for name, _ in files(CXX)]
    wrong = set()
    for at in range(0, len(names), 100):
        out = subprocess.run([tool, "--dry-run", "--style=file", *names[at:at + 100]], cwd=ROOT, capture_output=True,
                             text=True).stderr
        wrong |= set(re.findall(r"^(\S+?):\d+:\d+: warning: code should be clang-formatted", out, re.M))
    return [f"{name}: clang-format -i {name}" for name in sorted(wrong)]


def banned(pattern, suffixes, allowed, why):
    wrong = []
    for name, lines in files(suffixes):
        if any(name == place or (place.endswith("/") and name.startswith(place)) for place in allowed):
            continue
        for number, line in enumerate(lines, 1):
            if re.search(pattern, code_of(line)):
                wrong.append(f"{name}:{number}: {why}")
    return wrong


MOST_LINES = 70  # of a function


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
                while start > 1 and re.match(" {5}|    : ", lines[start - 1]):
                    start -= 1
                indent = re.match(" *", lines[start - 1]).group()
            elif start is not None and line.rstrip() in (indent + "}", indent + "};"):
                code = [text for text in lines[start:number - 1] if text.strip() and not text.strip().startswith("//")]
                if len(code) > MOST_LINES:
                    wrong.append(f"{name}:{start}: function of {len(code)} lines; the maximum is {MOST_LINES}")
                start = None
    return wrong + long_page_functions()


def long_page_functions():
    """A function or component of the pages at the left margin, up to the brace that closes it there."""
    wrong = []
    for name, lines in files((".ts", ".tsx")):
        start = None
        for number, line in enumerate(lines, 1):
            if re.match(r"(export )?(default )?(async )?function |(export )?const \w+.* = .*(=> [({]|\{)$", line):
                start = number
            elif start is not None and re.match(r"[})]", line):
                code = [text for text in lines[start:number - 1] if text.strip() and not text.strip().startswith("//")]
                if len(code) > MOST_LINES:
                    wrong.append(f"{name}:{start}: function of {len(code)} lines; the maximum is {MOST_LINES}")
                start = None
    return wrong


def program_arrows():
    """An include of another program's header, or a link to its target. Nor does common/ use a program."""
    programs = ("master", "agent", "harness", "cli")
    lists = [(name, re.sub(r"#.*", "", "\n".join(lines)).replace("TARGET_OBJECTS:", ""))
             for name, lines in files({".txt", ".cmake"}) if name.split("/")[0] in (*programs, "common")]
    owner = {}
    for name, text in lists:
        for kind, target in re.findall(r"\b(add_library|add_executable|harness_room)\(\s*([\w-]+)(?![\w:-])", text):
            owner["det_harness_" + target if kind == "harness_room" else target] = name.split("/")[0]
    wrong = []
    commands = r"\b(?:add_(?:library|executable|dependencies)|target_(?:link_libraries|include_directories|sources)|harness_room)\([^)]*"
    for name, text in lists:
        for command in re.finditer(commands, text):
            number = text.count("\n", 0, command.start()) + 1
            for target in re.findall(r"(?:rooms/|(?<![\w:./-]))([\w-]+)(?![\w:./-])", command.group()):
                if owner.get(target, "common") not in ("common", name.split("/")[0]):
                    wrong.append(f"{name}:{number}: {target} is a target of {owner[target]}/")
    for name, lines in files(CXX):
        folder = name.split("/")[0]
        if folder not in (*programs, "common", "proto"):
            continue
        for number, line in enumerate(lines, 1):
            include = re.match(r'\s*#\s*include\s*[<"](\w+)/', line)
            if include and include.group(1) in programs and include.group(1) != folder:
                wrong.append(f"{name}:{number}: includes a header of {include.group(1)}/")
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


def words_of(text):
    """The words of names and prose in lower case: kMaxUses, max_uses and "max uses" have `max uses`."""
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", text)
    return " " + re.sub(r"[^a-z0-9]+", " ", text.lower()) + " "


def retired_words():
    """The table of docs/glossary.md under "Retired words"."""
    table = (ROOT / "docs/glossary.md").read_text(encoding="utf-8").split("## Retired words")[1]
    retired = []  # (word, only in code, words to use, folders that keep it)
    for row in re.findall(r"^\| (`.*?) \| (.*?) \| ?(.*?) ?\|$", table, re.M):
        for word in re.findall(r"`([^`]+)`", row[0]):
            retired.append((f" {word.removeprefix('code: ')} ", word.startswith("code: "), row[1],
                            tuple(re.findall(r"`([^`]+)`", row[2]))))
    wrong = []
    for name, lines in files(CODE | MARKDOWN | {".case", ".css", ".html"}):
        if name in ("docs/glossary.md", "CHANGELOG.md") or "/migrations/" in name:
            continue
        here = [(word, code, use) for word, code, use, kept in retired if not name.startswith(kept or ("|",))]
        text = words_of("\n".join(lines))
        here = [one for one in here if one[0] in text]
        for number, line in enumerate(lines if here else [], 1):
            for word, code, use in here:
                if word in words_of(code_of(line) if code else line) and not (code and not name.endswith((".cc", ".h", ".ts", ".tsx"))):
                    wrong.append(f"{name}:{number}: \"{word.strip()}\" is retired; use: {use}")
    return wrong


def dead_links():
    """Relative links of documents lead to files."""
    wrong = []
    for name, lines in files(MARKDOWN):
        fenced = False
        for number, line in enumerate(lines, 1):
            fenced ^= line.lstrip().startswith("```")
            for target in [] if fenced else re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", re.sub(r"`[^`]*`", "", line)):
                if not (ROOT / name).parent.joinpath(target).exists():
                    wrong.append(f"{name}:{number}: no file {target}")
    return wrong


def machine_words():
    wrong = []
    words = [r"/work/" + "main", r"/work/" + "shared", "farm-" + "studio", "farm-" + "bench"]
    for name, lines in files(CODE | {".md", ".yaml", ".json", ".txt"}):
        for number, line in enumerate(lines, 1):
            if any(re.search(word, line) for word in words):
                wrong.append(f"{name}:{number}: names a development machine")
    return wrong


def leftovers():
    """Files left by editors and by patch."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout.splitlines()
    return [f"{name}: a leftover" for name in listed if re.search(r"\.(orig|rej|bak|patch)$|~$", name) and (ROOT / name).exists()]


RULES = {
    "editors and patch left no file": leftovers,
    "a file has at most 500 lines": too_long_files,
    "a function has at most 70 lines": long_functions,
    "a folder has at most 40 sources": full_folders,
    "C++ sources agree with clang-format": unformatted,
    "comments are plain technical English": lambda: prose.violations(ROOT),
    "only queue.h, event.h and shared.h of common/base/ have a mutex": lambda: banned(
        r"std::(recursive_|shared_|timed_)?mutex", CXX,
        ["common/base/queue.h", "common/base/event.h", "common/base/shared.h"], "std::mutex outside its three headers"),
    "a flag between threads is an Event, not a queue of one item": lambda: banned(
        r"\bQueue<(int|char|bool)> \w+[({]1[)}]", CXX, ["tests/base/queue_test.cc"],
        "use Event of common/base/event.h"),
    "only common/base/clock reads the time": lambda: banned(
        r"(system_clock|steady_clock)::now|\bgettimeofday\b|\bclock_gettime\b", CXX,
        ["common/base/clock.cc", "examples/", "tests/bench/"], "reads the time outside common/base/clock"),
    "no code sleeps": lambda: banned(
        r"sleep_for|sleep_until|\busleep\(|\bnanosleep\(|\bpoll\(nullptr", CXX,
        ["common/base/wait.cc", "tests/chaos/program/", "tests/e2e/fixtures/"], "sleeps"),
    "the master, the agent and the CLI never see LibTorch": lambda: [
        wrong for wrong in banned(r"#include [<\"](torch|ATen|c10)/", CXX, ["harness/", "examples/", "tests/"],
                                  "LibTorch outside the harness")],
    "programs stand on common/, never on each other": program_arrows,
    "no retired word of docs/glossary.md is used": retired_words,
    "links between documents lead to files": dead_links,
    "no work is left for later": unfinished_words,
    "SQL is never built from data": sql_from_data,
    "no file names a development machine": machine_words,
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

#!/usr/bin/env python3
"""Checks the guides of the training library.

Every block of C++ or YAML must be a region of a file that is compiled and tested. Every file that a guide
names must exist, and every library name must be in a header. A block may omit lines: a line that is exactly
`// …` (in YAML `# …`) stands for any number of lines.

Usage: guides_check.py [--self-test]. Prints file:line for each miss and the number of passed and failed
pages. Exits with 1 if there is a miss."""
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
GUIDES = ("harness/guides/*.md", "harness/README.md")
SOURCE_FOLDERS = ("tests/harness/guides", "examples")
HEADERS = "harness/include/det"
SUFFIXES = {"cpp": {".h", ".cc", ".cpp"}, "yaml": {".yaml", ".yml"}}
ELISIONS = {"cpp": "// …", "yaml": "# …"}
OTHER_LANGUAGES = {"", "text", "sh", "python", "cmake", "diff"}
FILE_SUFFIX = r"\.(?:h|cc|cpp|py|md|yaml|sh|txt|cmake)"


def indent_of(line):
    return len(line) - len(line.lstrip(" "))


def dedent(lines):
    """Removes the common indentation of all lines; blank lines are ignored."""
    common = min((indent_of(line) for line in lines if line.strip()), default=0)
    return [line[common:].rstrip() for line in lines]


def chunks_of(lines, elision):
    """Non-empty runs of lines between elisions."""
    chunks = [[]]
    for line in lines:
        if line.strip() == elision:
            chunks.append([])
        else:
            chunks[-1].append(line)
    while any(not chunk for chunk in chunks):
        chunks.remove([])
    return chunks


def find_chunk(source, chunk, begin, shift):
    """The line after the first match of the chunk, indented by `shift`, at or after `begin`; -1 for none."""
    wanted = [" " * shift + line if line else "" for line in chunk]
    for at in range(begin, len(source) - len(wanted) + 1):
        if source[at:at + len(wanted)] == wanted:
            return at + len(wanted)
    return -1


def is_region(source, block, elision):
    """Matches greedily: the earliest place of a chunk leaves the most room for later chunks."""
    chunks = chunks_of(dedent(block), elision)
    for shift in sorted({indent_of(line) for line in source if line.strip()}):
        at = 0
        for chunk in chunks:
            at = find_chunk(source, chunk, at, shift)
            if at < 0:
                break
        else:
            return bool(chunks)
    return False


def blocks_of(text):
    """(language, number of the first line, lines) of every fenced block."""
    blocks, language, lines, start = [], None, [], 0
    for number, line in enumerate(text.split("\n"), 1):
        fence = re.match(r"\s*```(\w*)\s*$", line)
        if language is None and fence:
            language, lines, start = fence.group(1), [], number + 1
        elif language is not None and fence and not fence.group(1):
            blocks.append((language, start, lines))
            language = None
        elif language is not None:
            lines.append(line)
    if language is not None:
        blocks.append(("unclosed", start, lines))
    return blocks


def prose_of(text):
    """(number, line) outside of fenced blocks."""
    inside = False
    for number, line in enumerate(text.split("\n"), 1):
        if re.match(r"\s*```", line):
            inside = not inside
        elif not inside:
            yield number, line


class Tree:
    """The files of one checkout."""

    def __init__(self, root):
        self.root = root
        self.sources = {}
        for language, suffixes in SUFFIXES.items():
            self.sources[language] = [
                [line.rstrip() for line in path.read_text(encoding="utf-8").split("\n")]
                for folder in SOURCE_FOLDERS for path in sorted((root / folder).rglob("*")) if path.suffix in suffixes]
        self.names = set()
        for header in sorted((root / HEADERS).glob("*.h")):
            self.names |= set(re.findall(r"\w+", header.read_text(encoding="utf-8")))

    def misses_of_block(self, language, lines):
        if language in OTHER_LANGUAGES:
            return []
        if language not in self.sources:
            return [f"a block of the kind \"{language}\" cannot be checked"]
        if not any(is_region(source, lines, ELISIONS[language]) for source in self.sources[language]):
            return [f"this block is no region of a tested {language} file"]
        return []

    def misses_of_line(self, guide, line):
        misses = []
        for target in re.findall(r"\]\(([^)\s]+)\)", line):
            path = target.split("#")[0]
            if path and "://" not in path and not (guide.parent / path).exists():
                misses.append(f"there is no {path} beside this page")
        for code in re.findall(r"`([^`]+)`", line):
            for path in re.findall(r"(?<![\w/.<-])[\w.-]+(?:/[\w.-]+)+" + FILE_SUFFIX + r"\b(?![\w/])", code):
                places = (self.root, guide.parent, self.root / HEADERS / "..", self.root / SOURCE_FOLDERS[0])
                if not any((place / path).exists() for place in places):
                    misses.append(f"there is no file {path}")
            for name in re.findall(r"\bdet::((?:\w+::)*\w+)", code):
                for part in name.split("::"):
                    if part not in self.names:
                        misses.append(f"no header has the name {part} of det::{name}")
        return misses

    def guides(self):
        return sorted(path for pattern in GUIDES for path in self.root.glob(pattern))

    def misses(self):
        guides = self.guides()
        found = [] if guides else ["no guides"]
        for guide in guides:
            name, text = guide.relative_to(self.root), guide.read_text(encoding="utf-8")
            for language, number, lines in blocks_of(text):
                found += [f"{name}:{number}: {miss}" for miss in self.misses_of_block(language, lines)]
            for number, line in prose_of(text):
                found += [f"{name}:{number}: {miss}" for miss in self.misses_of_line(guide, line)]
        return found


SELF_TEST_SOURCE = """// Owns nothing.
class A {
 public:
  int one() {
    return 1;
  }

  int two() { return 2; }
};
"""
SELF_TEST_CASES = [  # (page, part of the expected miss or None)
    ("```cpp\nint one() {\n  return 1;\n}\n```", None),
    ("```cpp\nclass A {\n  // …\n    return 1;\n  // …\n  int two() { return 2; }\n};\n```", None),
    ("```cpp\nint one() {\n  return 2;\n}\n```", "harness/guides/page.md:2: this block is no region"),
    ("```cpp\nint one() {\nreturn 1;\n}\n```", "no region"),
    ("```cpp\nint two() { return 2; }\n// …\nint one() {\n```", "no region"),
    ("```cpp\n// …\n```", "no region"),
    ("```cpp\nint one() {", "unclosed"),
    ("```yaml\na: 1\n# …\nc: 3\n```", None),
    ("```yaml\na: 2\n```", "no region of a tested yaml file"),
    ("```rust\nfn main() {}\n```", "cannot be checked"),
    ("see [there](../../examples/a.cc) and `examples/a.cc`, `det/thing.h`, `const.yaml`", None),
    ("see [there](../../examples/b.cc)", "no ../../examples/b.cc"),
    ("line\nsee `examples/b.cc`", "harness/guides/page.md:2: there is no file examples/b.cc"),
    ("see `det/other.h`", "no file det/other.h"),
    ("call `det::Thing(1)`", None),
    ("call `det::Thing` and `det::thung::Thing`", "no header has the name thung"),
]


def self_test():
    failures = 0
    for page, wanted in SELF_TEST_CASES:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            files = {"harness/guides/page.md": page, "examples/a.cc": SELF_TEST_SOURCE,
                     "examples/a.yaml": "a: 1\nb: 2\nc: 3\n", "harness/include/det/thing.h": "class Thing;\n"}
            for path, text in files.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text, encoding="utf-8")
            misses = Tree(root).misses()
            if misses if wanted is None else not any(wanted in miss for miss in misses):
                failures += 1
                print(f"self-test: {page!r}: wanted {wanted}, got {misses}")
    print(f"{len(SELF_TEST_CASES) - failures} passed, {failures} failed")
    return failures


def main():
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(1 if self_test() else 0)
    tree = Tree(ROOT)
    misses = tree.misses()
    for miss in misses:
        print(miss)
    wrong = {miss.split(":")[0] for miss in misses}
    print(f"{len(tree.guides()) - len(wrong)} passed, {len(wrong)} failed")
    sys.exit(1 if misses else 0)


if __name__ == "__main__":
    main()

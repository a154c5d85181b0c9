"""Measures the language of comments and of the web UI's texts. The limits are a ratchet: they only go down.

Usage: tests/prose.py PATH...  prints counts per 1,000 words and each place.
"""
import ast
import io
import pathlib
import re
import subprocess
import sys
import tokenize

PICTURES = {".png", ".svg"}
C_LIKE = {".h", ".cc", ".cpp", ".proto", ".ts", ".tsx", ".mjs", ".css"}
HASH = {".sh", ".cmake", ".in", ".service", ".yaml"}
PHRASES = {
    # name: pattern, maximum per 1,000 words
    "who, somebody, nobody, for ever, anew, likewise, by now": (
        re.compile(r"\b(who|whoever|whom|whose|somebody|nobody|anybody|everybody|for ever|anew|likewise|by now)\b", re.I), 0.3),
    "sentence that opens with what, who, where or of": (
        re.compile(r"(?:^|(?<=[.!?] ))(What|Who|Whoever|Whom|Whose|Where|Whatever|Of)\b"), 0.3),
    "\"Owns\" as the opening": (re.compile(r"^\s*Owns\b"), 0.0),
    "reference to a document outside the repository": (
        re.compile(r"\(W\d+\)|promises §|determined-0\.38|upstream's §"), 0.0),
}
TOKENS = re.compile(
    r'R"(?P<tag>[^()\\ ]{0,16})\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|'
    r"(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])*'|(?P<line>//[^\n]*)|(?P<block>/\*.*?\*/)", re.S)


def c_comments(text):
    for match in TOKENS.finditer(text):
        comment = match["line"] or match["block"]
        if comment:
            yield text.count("\n", 0, match.start()) + 1, comment.strip("/*!< \n")


def ui_texts(text):
    """String literals with a space and text between tags: what users of the web UI read."""
    for match in TOKENS.finditer(text):
        literal = match.group()
        if literal[0] in "\"'`" and " " in literal:
            yield text.count("\n", 0, match.start()) + 1, re.sub(r"\$\{[^}]*\}", "…", literal.strip("\"'`"))
    for match in re.finditer(r">([^<>{}=;]*[a-z] [^<>{}=;]*)[<{]", text):
        yield text.count("\n", 0, match.start()) + 1, match[1].strip()


def hash_comments(text, mark):
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip().startswith(mark) and not line.startswith("#!"):
            yield number, line.strip()[len(mark):].strip()


def python_comments(text):
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith("#!"):
            yield token.start[0], token.string[1:].strip()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node):
            yield node.body[0].lineno, ast.get_docstring(node)


def comments(name, text):
    """Pairs of line number and text; comments on consecutive lines are one."""
    suffix = pathlib.PurePath(name).suffix
    if suffix in C_LIKE:
        found = c_comments(text)
        if name.startswith("webui-static/src/") and suffix != ".css":
            found = sorted({*found, *ui_texts(text)})
    elif suffix == ".py":
        found = python_comments(text)
    elif suffix == ".sql":
        found = hash_comments(text, "--")
    elif suffix in HASH or name.endswith("CMakeLists.txt"):
        found = hash_comments(text, "#")
    else:
        return []
    joined = []
    last = None
    for number, comment in found:
        if last is not None and number == last + 1:
            joined[-1][1] += " " + comment
        else:
            joined.append([number, comment])
        last = number
    return joined


def measure(root, paths):
    """Words of all comments, and the places of each phrase. Stored migrations are excluded: their text is hashed."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *paths], cwd=root, check=True,
                            capture_output=True, text=True).stdout.split("\n")
    words, places = 0, {phrase: [] for phrase in PHRASES}
    for name in sorted(set(listed)):
        path = pathlib.Path(root) / name
        if not name or "/migrations/" in name or not path.is_file() or name == "tests/prose.py":
            continue
        for number, comment in comments(name, path.read_text(encoding="utf-8")) if path.suffix not in PICTURES else []:
            words += len(comment.split())
            for phrase, (pattern, _) in PHRASES.items():
                places[phrase] += [f"{name}:{number}: {match.group().strip()}" for match in pattern.finditer(comment)]
    return words, places


def violations(root):
    words, places = measure(root, ["."])
    wrong = []
    for phrase, (_, limit) in PHRASES.items():
        if 1000 * len(places[phrase]) / words > limit:
            wrong.append(f"{phrase}: {len(places[phrase])} in {words} words; the maximum is {limit} per 1,000")
            wrong += places[phrase][:20]
    return wrong


if __name__ == "__main__":
    total, found = measure(pathlib.Path(__file__).resolve().parent.parent, sys.argv[1:] or ["."])
    print(f"{total} words of comments and texts")
    for one, where in found.items():
        print(f"{1000 * len(where) / max(total, 1):6.2f} per 1,000 words: {one}")
        for line in where:
            print("    " + line)

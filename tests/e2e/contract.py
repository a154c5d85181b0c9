"""Reader of contract/*.case, and comparison of responses with the expected ones.

A step is a paragraph:

    # 29 what it is about                   number of the endpoint group, title
    as allocation                           caller, in force until the next `as` of the file; initially admin
    GET /api/v1/checkpoints/{checkpoint}    {names} are replaced by kept values
      {"a": 1}                              body, JSON, indented
    200 {"checkpoint": {"uuid": "{checkpoint}", "resources": "<object>"}}
    keep size = checkpoint.size

An expected object lists the required fields. An expected list ["each", …] describes every element; any other
list is compared element by element. "<int>" and the like match any value of that type. With `stream` before
the status, the response is lines of JSON and each is compared; with `text`, it is not JSON; with `until`, the
call is repeated until the response is as expected."""
import dataclasses
import json
import pathlib
import re


@dataclasses.dataclass
class Step:
    place: str
    number: str
    words: str
    caller: str
    method: str
    path: str
    body: str = ""
    status: int = 0
    form: str = "json"
    expected: str = ""
    keep: dict = dataclasses.field(default_factory=dict)


def read(path):
    """Returns the steps of a file in order. ValueError names an invalid line."""
    steps, caller = [], "admin"
    for number, line in enumerate(pathlib.Path(path).read_text().split("\n"), 1):
        place = f"{pathlib.Path(path).name}:{number}"
        if not line.strip():
            continue
        if line.startswith("# "):
            first, _, words = line[2:].partition(" ")
            steps.append(Step(place, first, words, caller, "", ""))
            continue
        if not steps:
            raise ValueError(f"{place}: a file begins with # NUMBER WORDS")
        step = steps[-1]
        if line.startswith("as "):
            step.caller = caller = line[3:].strip()
        elif re.match(r"(GET|POST|PUT|PATCH|DELETE) /", line):
            step.method, step.path = line.split(" ", 1)
        elif line.startswith("  ") and not step.status:
            step.body += line.strip()
        elif line.startswith("  "):
            step.expected += line.strip()
        elif match := re.match(r"(stream |text |until )?(\d{3})(?: (.*))?$", line):
            step.form = (match[1] or "json").strip()
            step.status, step.expected = int(match[2]), match[3] or ""
        elif match := re.match(r"keep (\w+) = (.*)$", line):
            step.keep[match[1]] = match[2].strip()
        else:
            raise ValueError(f"{place}: cannot read {line!r}")
    for step in steps:
        if not step.method or not step.status:
            raise ValueError(f"{step.place}: a step needs a call and a status")
    return steps


def fill(text, names):
    """Replaces {name} by the kept value. Braces of JSON are unchanged."""
    def value(match):
        if match[1] not in names:
            raise KeyError(f"nothing was kept as {match[1]}")
        return str(names[match[1]])
    return re.sub(r"\{([a-z_][a-z_0-9]*)\}", value, text)


KINDS = {
    "<any>": lambda value: True,
    "<int>": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "<number>": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "<bool>": lambda value: isinstance(value, bool),
    "<string>": lambda value: isinstance(value, str),
    "<text>": lambda value: isinstance(value, str) and value != "",
    "<list>": lambda value: isinstance(value, list),
    "<object>": lambda value: isinstance(value, dict),
    "<int64>": lambda value: isinstance(value, str) and re.fullmatch(r"-?\d+", value) is not None,
    "<time>": lambda value: isinstance(value, str)
    and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", value) is not None,
}


def differences(expected, found, where="answer"):
    """The differences between `expected` and `found`, one a line."""
    if isinstance(expected, str) and expected in KINDS:
        return [] if KINDS[expected](found) else [f"{where}: expected {expected}, found {json.dumps(found)[:200]}"]
    if isinstance(expected, str) and expected.startswith("~"):
        ok = isinstance(found, str) and re.search(expected[1:], found)
        return [] if ok else [f"{where}: expected /{expected[1:]}/ in {json.dumps(found)[:200]}"]
    if isinstance(expected, dict):
        if not isinstance(found, dict):
            return [f"{where}: expected an object, found {json.dumps(found)[:200]}"]
        out = []
        for key, value in expected.items():
            if key not in found:
                out.append(f"{where}: has no {key}; it has {', '.join(sorted(found))}")
            else:
                out += differences(value, found[key], f"{where}.{key}")
        return out
    if isinstance(expected, list):
        if not isinstance(found, list):
            return [f"{where}: expected a list, found {json.dumps(found)[:200]}"]
        if len(expected) == 2 and expected[0] == "each":
            if not found:
                return [f"{where}: is empty"]
            return [line for i, one in enumerate(found) for line in differences(expected[1], one, f"{where}[{i}]")]
        if len(expected) != len(found):
            return [f"{where}: {len(expected)} elements expected, {len(found)} found: {json.dumps(found)[:300]}"]
        return [line for i, (a, b) in enumerate(zip(expected, found)) for line in differences(a, b, f"{where}[{i}]")]
    return [] if expected == found and type(expected) is type(found) else [
        f"{where}: expected {json.dumps(expected)}, found {json.dumps(found)[:200]}"]


def pick(value, path):
    """The value at a dotted path. Numbers are list indices."""
    for part in path.split("."):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value

"""The published API of Kubernetes: the models of its own JavaScript client, which are generated from its OpenAPI
specification. An object with an unknown field, a missing one or one of another type is not valid."""
import functools
import pathlib
import re
import subprocess

PACKAGE = "@kubernetes/client-node@2.0.1"  # of Kubernetes 1.36
SIMPLE = {"string": str, "number": (int, float), "boolean": bool, "Date": str, "any": object, "IntOrString": (int, str)}


def download(folder):
    """Returns the directory of the models; downloads the package once."""
    models = folder / "package" / "dist" / "gen" / "models"
    if not models.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=folder, check=True, timeout=120,
                                 stdout=subprocess.PIPE, text=True).stdout.strip()
        subprocess.run(["tar", "xzf", archive], cwd=folder, check=True)
    return models


class Schema:
    def __init__(self, folder):
        self.models = download(pathlib.Path(folder))

    @functools.lru_cache(maxsize=None)
    def fields(self, model):
        """{field: (type, required)} of a model."""
        text = (self.models / f"{model}.d.ts").read_text()
        body = re.sub(r"/\*.*?\*/", "", text[text.index(f"export declare class {model}"):], flags=re.S)
        found = re.findall(r"^    '([^']+)'(\??): (\{.*?\}|[^{;]+);", body, re.M | re.S)
        return {name.removeprefix("_"): (kind.strip(), not optional) for name, optional, kind in found}

    def problems(self, document):
        """What is wrong with an object, by its apiVersion and kind."""
        version = document["apiVersion"].rpartition("/")[2]
        return list(self.check(version[0].upper() + version[1:] + document["kind"], document, document["kind"]))

    def check(self, kind, value, path):
        if kind.startswith("Array<"):
            if not isinstance(value, list):
                yield f"{path} is no list"
                return
            for i, one in enumerate(value):
                yield from self.check(kind[6:-1], one, f"{path}[{i}]")
        elif kind.startswith("{"):
            inner = re.search(r"\]: (.*?);", kind)[1]
            if not isinstance(value, dict):
                yield f"{path} is no map"
                return
            # Servers take numbers as quantities as well.
            for key, one in value.items():
                quantity = path.endswith((".requests", ".limits")) and isinstance(one, int)
                yield from self.check("number" if quantity else inner, one, f"{path}.{key}")
        elif kind in SIMPLE:
            if not isinstance(value, SIMPLE[kind]) or (isinstance(value, bool) and kind not in ("boolean", "any")):
                yield f"{path}: {value!r} is no {kind}"
        elif not isinstance(value, dict):
            yield f"{path} is no {kind}"
        else:
            fields = self.fields(kind)
            yield from (f"{path}.{name} does not exist" for name in value.keys() - fields.keys())
            yield from (f"{path}.{name} is missing" for name, (_, required) in fields.items() if required and name not in value)
            for name in value.keys() & fields.keys():
                yield from self.check(fields[name][0], value[name], f"{path}.{name}")

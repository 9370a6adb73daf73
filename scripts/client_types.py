"""Writes the types of the Python client from the description of the API: `python -m scripts.client_types`.

`_types.py` has what jobs are created from and what is answered, `_kinds.py` a class for each kind of job.
"""

import keyword
from collections.abc import Iterator
from textwrap import wrap
from typing import Any

from app.api.openapi import document
from app.core.config import ROOT
from app.core.validation import Schema
from app.games.base import JSON
from app.matches.filter import NAMES

FOLDER = ROOT / "client" / "src" / "parlor_client"
WIDTH = 120
_JSON = "application/json"
_SCALARS = {"integer": "int", "number": "float", "string": "str", "boolean": "bool", "null": "None"}
_BY_HAND = {"recipes": "Recipes"}  # kinds whose class takes more than a spec, by the module that has it
_LISTS = {
    "/matches": ("Match", "A match, with the columns of matches.csv."),
    "/models": ("ModelRow", "A language model in the list of them."),
    "/datasets": ("DatasetRow", "A dataset in the list of them."),
    "/studies": ("StudyRow", "A study in the list of them."),
    "/waves/{number}/people": ("PersonRow", "A person of a wave."),
}
_HEAD = '"""{} Written by `python -m scripts.client_types` from the description of the API."""\n\n'


def files() -> dict[str, str]:
    """The text of each module, by its name."""
    described = document()
    return {"_types.py": _types(described), "_kinds.py": _kinds(described)}


def _types(described: JSON) -> str:
    """What is sent and what is answered, as typed dictionaries."""
    paths, parts = described["paths"], described["components"]["schemas"]
    blocks = [
        "from pathlib import Path\nfrom typing import Any, Literal, Required, TypedDict\n",
        *(_typed_dict(name, schema) for name, schema in parts.items() if name != "Error"),
        _typed_dict("TextFile", _text_file(paths)),
        *(_typed_dict(spec["title"], spec) for _, spec in _specs(paths)),
        _typed_dict("MatchFilter", _filter(paths)),
        *(_typed_dict(name, _items(paths[path], about)) for path, (name, about) in _LISTS.items()),
    ]
    return _HEAD.format("What Parlor's API takes and gives.") + "\n\n".join(blocks)


def _kinds(described: JSON) -> str:
    """A class for each kind of job, whose `run` takes the fields of its spec."""
    specs = dict(_specs(described["paths"]))
    own = {kind: spec for kind, spec in specs.items() if kind not in _BY_HAND}
    names = sorted(spec["title"] for spec in own.values())
    imports = [
        "from typing import Unpack\n",
        f"from parlor_client._types import {', '.join(names)}",
        "from parlor_client.connection import Connection",
        "from parlor_client.jobs import Job, Jobs",
        *(f"from parlor_client.{module} import {name}" for module, name in _BY_HAND.items()),
    ]
    if len(imports[1]) > WIDTH:
        imports[1] = "from parlor_client._types import (\n" + "".join(f"    {name},\n" for name in names) + ")"
    blocks = ["\n".join(imports) + "\n"]
    for kind, spec in own.items():
        blocks.append(
            f"class {kind.capitalize()}(Jobs):\n"
            + _docstring(f"{kind.capitalize()}: {_decapitalized(spec['description'])}")
            + f"\n    def run(self, **spec: Unpack[{spec['title']}]) -> Job:\n"
            + '        """Create one from its spec. Raises Refused, NotReachable, OSError for a file."""\n'
            + "        return self._create(spec)\n"
        )
    attributes = "".join(
        f'        self.{kind} = {_BY_HAND.get(kind, kind.capitalize())}(connection, "{kind}")\n' for kind in specs
    )
    blocks.append(
        'class JobKinds:\n    """The jobs of a Parlor, by kind."""\n\n'
        "    def __init__(self, connection: Connection) -> None:\n        self._connection = connection\n" + attributes
    )
    return _HEAD.format("The kinds of job.") + "\n\n".join(blocks)


def _specs(paths: JSON) -> Iterator[tuple[str, JSON]]:
    """The plural of each kind that can be created, with the schema of its spec."""
    for path, methods in paths.items():
        if path.count("/") == 1 and "post" in methods:
            yield path[1:], methods["post"]["requestBody"]["content"][_JSON]["schema"]


def _items(methods: JSON, about: str) -> JSON:
    """The schema of an item of a list; which columns it has is for who asks to choose."""
    found: JSON = methods["get"]["responses"]["200"]["content"][_JSON]["schema"]["properties"]["items"]["items"]
    return {"description": about, "properties": found["properties"]}


def _filter(paths: JSON) -> JSON:
    known = {each["name"]: each for each in paths["/matches"]["get"]["parameters"] if each["name"] in NAMES}
    properties = {name: {**each["schema"], "description": each["description"]} for name, each in known.items()}
    return {"description": "Which matches: those for which all of this holds.", "properties": properties}


def _text_file(paths: JSON) -> JSON:
    """The schema of a file, which all fields that take one share."""
    fields = (field for _, spec in _specs(paths) for field in spec["properties"].values())
    found: JSON = next(kind for field in fields for kind in field.get("anyOf", ()) if _is_file(kind))
    return {**found, "description": "A file, by its text; a Path of this machine is read into one."}


def _is_file(schema: Schema) -> bool:
    return "text" in schema.get("properties", ())


def _typed_dict(name: str, schema: JSON) -> str:
    """A typed dictionary; each field with what it is, where that fits in its line."""
    required, properties = schema.get("required", ()), schema["properties"]
    kinds = {field: _python_type(each) for field, each in properties.items()}
    fields = {field: f"Required[{kind}]" if field in required else kind for field, kind in kinds.items()}
    if any(keyword.iskeyword(field) for field in fields):
        body = "".join(f'        "{field}": {kind},\n' for field, kind in fields.items())
        head = f"# {schema['description']}\n{name} = TypedDict("
        return f'{head}\n    "{name}",\n    {{\n{body}    }},\n    total=False,\n)\n'
    lines = [_line(f"    {field}: {kind}", properties[field]) for field, kind in fields.items()]
    return f"class {name}(TypedDict, total=False):\n{_docstring(schema['description'])}\n" + "".join(lines)


def _line(code: str, field: Schema) -> str:
    texts = (field.get("description", ""), field.get("title", ""))
    comment = next((each for each in texts if each and len(f"{code}  # {each}") <= WIDTH), "")
    return f"{code}  # {comment}\n" if comment else f"{code}\n"


def _python_type(schema: Schema) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if _is_file(schema):
        return "TextFile | Path"
    if "anyOf" in schema:
        return _union(_python_type(each) for each in schema["anyOf"])
    if (values := schema.get("enum") or ([schema["const"]] if "const" in schema else None)) is not None:
        literal = "Literal[" + ", ".join(_literal(each) for each in values) + "]"
        # Too many for a line: the server names them when it refuses one.
        return literal if len(literal) < WIDTH or not all(isinstance(each, str) for each in values) else "str"
    kinds = schema.get("type", ())
    return _union(_simple_type(kind, schema) for kind in ([kinds] if isinstance(kinds, str) else kinds)) or "Any"


def _simple_type(kind: str, schema: Schema) -> str:
    if kind == "array":
        return f"list[{_python_type(schema.get('items', {}))}]"
    if kind == "object":
        of = schema.get("additionalProperties")
        return f"dict[str, {_python_type(of) if isinstance(of, dict) else 'Any'}]"
    return _SCALARS[kind]


def _union(kinds: Iterator[str]) -> str:
    """Kinds beside each other, None last."""
    return " | ".join(sorted(dict.fromkeys(kinds), key=lambda kind: kind == "None"))


def _literal(value: Any) -> str:
    return '"' + value + '"' if isinstance(value, str) else repr(value)


def _decapitalized(text: str) -> str:
    return text[:1].lower() + text[1:]


def _docstring(text: str) -> str:
    text = " ".join(text.split())
    whole = f'    """{text}"""\n'
    if len(whole) <= WIDTH + 1:
        return whole
    first, *rest = wrap(text, WIDTH - 7)
    return "\n    ".join([f'    """{first}', *rest]) + '\n    """\n'


if __name__ == "__main__":
    for _name, _text in files().items():
        (FOLDER / _name).write_text(_text, encoding="utf-8")

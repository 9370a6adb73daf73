"""What is worked out once for all apps of a process. Each test has an app of its own, on a database of its own, and
would compile again what others have: that is more than half of the time of the tests of pages.
"""

from pathlib import Path
from types import CodeType
from typing import Any

from flask import Flask
from jinja2 import FileSystemBytecodeCache
from jinja2.bccache import Bucket
from pydantic.fields import FieldInfo
from pydantic_settings.sources.base import PydanticBaseEnvSettingsSource, PydanticBaseSettingsSource
from sqlalchemy import Engine
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.util import LRUCache
from werkzeug.routing import Rule


class Templates(FileSystemBytecodeCache):
    """The templates that an app has compiled. They are kept beside the compiled tests, for other processes too."""

    def __init__(self) -> None:
        folder = Path(__file__).parent / "__pycache__" / "templates"
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(str(folder))
        self._known: dict[tuple[str, str], CodeType] = {}  # by template and what was in its file

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._known.get((bucket.key, bucket.checksum))
        if bucket.code is None:
            super().load_bytecode(bucket)
            self._keep(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        super().dump_bytecode(bucket)
        self._keep(bucket)

    def _keep(self, bucket: Bucket) -> None:
        if bucket.code is not None:
            self._known[bucket.key, bucket.checksum] = bucket.code


_rules: dict[object, dict[str, Any]] = {}
_builders: dict[object, Any] = {}
_statements: LRUCache[Any, Any] = LRUCache(5000)
_variables: dict[object, Any] = {}
_compile, _compile_builder = Rule.compile, Rule._compile_builder
_variables_of, _is_complex = (
    PydanticBaseEnvSettingsSource._extract_field_info,
    PydanticBaseSettingsSource.field_is_complex,
)


def _compiled_rule(rule: Rule) -> None:
    """What URLs a rule matches. The routes have no converters but Werkzeug's, which ask nothing of their app."""
    assert rule.map is not None
    host = rule.host if rule.map.host_matching else rule.subdomain
    key = rule.rule, host, rule.merge_slashes, repr(rule.defaults)
    if key not in _rules:
        _compile(rule)
        _rules[key] = {name: getattr(rule, name) for name in ("_parts", "_trace", "_converters", "arguments")}
        return
    vars(rule).update(_rules[key], arguments={*_rules[key]["arguments"]})
    rule._build = rule._compile_builder(False).__get__(rule, None)
    rule._build_unknown = rule._compile_builder(True).__get__(rule, None)


def _compiled_builder(rule: Rule, append_unknown: bool = True) -> Any:
    """What builds the URLs of a rule."""
    key = rule.rule, tuple(rule._trace), repr(rule.defaults), append_unknown
    if key not in _builders:
        _builders[key] = _compile_builder(rule, append_unknown)
    return _builders[key]


def _is_same_dialect(one: DefaultDialect, other: object) -> bool:
    """Whether statements that were compiled for the one do for the other: there is one database of each kind."""
    return type(one) is type(other)


def _known_variables(source: PydanticBaseEnvSettingsSource, field: FieldInfo, *rest: Any) -> Any:
    """The variables that a setting is read from, and how."""
    key = type(source), source.settings_cls, *rest
    if key not in _variables:
        _variables[key] = _variables_of(source, field, *rest)
    return _variables[key]


def _known_complexity(source: PydanticBaseSettingsSource, field: FieldInfo) -> bool:
    """Whether a setting is read as JSON."""
    key = source.settings_cls, id(field)  # which lives as long as the class
    if key not in _variables:
        _variables[key] = _is_complex(source, field)
    return bool(_variables[key])


def share() -> None:
    """Have templates, URLs, SQL and variables worked out once from now on."""
    Flask.jinja_options = {"bytecode_cache": Templates()}
    Rule.compile = _compiled_rule  # type: ignore[method-assign]
    Rule._compile_builder = _compiled_builder  # type: ignore[method-assign]
    # Each engine would begin with a cache of its own.
    Engine._compiled_cache = property(lambda _: _statements, lambda *_: None)  # type: ignore[assignment]
    DefaultDialect.__eq__ = _is_same_dialect  # type: ignore[method-assign]
    DefaultDialect.__hash__ = lambda dialect: hash(type(dialect))  # type: ignore[method-assign]
    PydanticBaseEnvSettingsSource._extract_field_info = _known_variables  # type: ignore[method-assign]
    PydanticBaseSettingsSource.field_is_complex = _known_complexity  # type: ignore[method-assign]

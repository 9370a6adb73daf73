"""A page that is only looked at changes nothing: programs look at links ahead, and back and refresh ask again."""

import ast
from collections.abc import Iterator
from pathlib import Path

from app.core.config import ROOT

APP = ROOT / "app"
PARTS = ("web", "api")
WRITES = {"write", "write_once", "write_progress"}
# What writes all the same when it is only asked for, and why.
EXCEPTIONS = {
    "web/study/pages.py: page": "a match that is over is settled, once, which upkeep would do a little later",
}


def handlers(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """The functions that answer a GET."""
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef):
            continue
        for each in node.decorator_list:
            if not isinstance(each, ast.Call):
                continue
            if isinstance(each.func, ast.Name) and each.func.id == "operation" and ast.unparse(each.args[0]) == "'GET'":
                yield node
            if not isinstance(each.func, ast.Attribute):
                continue
            methods = [ast.unparse(word.value) for word in each.keywords if word.arg == "methods"]
            if each.func.attr == "get" or (each.func.attr == "route" and (not methods or "GET" in methods[0])):
                yield node


def calls(node: ast.AST) -> set[str]:
    """The names of what is called in it."""
    return {each.func.id for each in ast.walk(node) if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)}


def writers(path: Path) -> Iterator[str]:
    """The handlers of GET that write, themselves or by a function of their module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for handler in handlers(tree):
        reached, waiting = set[str](), [handler.name]
        while waiting:
            name = waiting.pop()
            if name in reached or name not in functions:
                reached.add(name)
                continue
            reached.add(name)
            waiting.extend(calls(functions[name]))
        if reached & WRITES:
            yield f"{path.relative_to(APP).as_posix()}: {handler.name}"


def test_no_page_that_is_only_looked_at_writes() -> None:
    found = {each for part in PARTS for path in (APP / part).rglob("*.py") for each in writers(path)}
    assert found == set(EXCEPTIONS)

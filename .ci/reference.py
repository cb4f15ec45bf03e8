"""Writes docs/reference.md: every public name, with its fields and methods, from the source's own documentation.

A field is documented by the string under it, or by a line `field: …` of its class; all else by its docstring. Fails
where one has none.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import millstream

PAGE = Path(__file__).parent.parent / "docs" / "reference.md"
HEAD = """# Reference

Every public name of the package: `import millstream as ms`, then `ms.Engine`. `make reference` builds this page from
the source. How the names are used: [inside other tools](embedding.md), [your own benchmark](your-own-benchmark.md).
"""
# The sections in their order: a heading, and the rooms whose names stand under it.
SECTIONS = (
    ("Engines", ("wiring", "engine.lane", "engine.events", "engine.sink")),
    (
        "Calls and their outcomes",
        ("engine.call", "engine.usage", "engine.content", "providers.search.joined", "providers.pages"),
    ),
    ("Money, retries and faults", ("engine.attempts", "engine.prices", "engine.fault")),
    ("Benchmarks of one's own", ("bench", "interfaces", "configuration")),
    ("Statistics", ("metrics",)),
    ("Providers of one's own", ("engine.endpoint", "providers")),
)


class Undocumented(Exception):
    """A public name, field or method without documentation."""


def page() -> str:
    """The whole page. Raises Undocumented with every gap."""
    left = {name: home_of(getattr(millstream, name)) for name in millstream.__all__}
    parts, gaps = [HEAD], list[str]()
    for heading, rooms in SECTIONS:
        names = [name for name in left if any((left[name] + ".").startswith(f"millstream.{room}.") for room in rooms)]
        parts.append(f"## {heading}\n")
        for name in names:
            parts.extend(entry(name, getattr(millstream, name), gaps))
            del left[name]
    gaps.extend(f"{name} is in no section" for name in left)
    if gaps:
        raise Undocumented("\n".join(gaps))
    return "\n".join(parts)


def home_of(value: Any) -> str:
    """The module that defines a public name; a type alias has the one that says so in `__all__`'s table."""
    return str(getattr(value, "__module__", "millstream.providers"))


def entry(name: str, value: Any, gaps: list[str]) -> Iterator[str]:
    """One name's lines of the page."""
    if inspect.isfunction(value):
        yield f"### `{name}{signature_of(value)}`\n"
        yield text_of(name, inspect.getdoc(value), gaps)
        return
    if not inspect.isclass(value):
        gaps.append(f"{name} is neither a class nor a function")
        return
    yield f"### `{name}`\n"
    head = text_of(name, value.__dict__.get("__doc__"), gaps)
    yield head.split("\n\n")[0] + "\n" if documented_in(value) else head
    rows = [
        f"| `{field}` | `{cell(kind)}` | {f'`{cell(default)}`' if default else ''} | {cell(flat(doc))} |"
        for field, kind, default, doc in fields_of(value)
        if field_is_told(name, field, doc, gaps)
    ]
    if rows:
        yield "\n".join(["| field | type | default | |", "|---|---|---|---|", *rows]) + "\n"
    for method, function in methods_of(value):
        doc = flat(inspect.getdoc(function.fget if isinstance(function, property) else function))
        if not doc:
            gaps.append(f"{name}.{method} has no docstring")
        title = method if isinstance(function, property) else f"{method}{signature_of(function)}"
        yield f"- `{title}`: {doc}"
    yield ""


def text_of(name: str, doc: str | None, gaps: list[str]) -> str:
    if not doc:
        gaps.append(f"{name} has no docstring")
        return ""
    # A paragraph of lines `parameter: …` becomes a list.
    paragraphs = inspect.cleandoc(doc).split("\n\n")
    return "\n\n".join(as_list(part) if re.match(r"\w+: ", part) else part for part in paragraphs) + "\n"


def as_list(paragraph: str) -> str:
    lines = (re.sub(r"^(\w+): ", r"- `\1`: ", line) for line in paragraph.split("\n"))
    return "\n".join(line if line.startswith("- ") else f"  {line}" for line in lines)


def field_is_told(name: str, field: str, doc: str, gaps: list[str]) -> bool:
    if not doc:
        gaps.append(f"{name}.{field} has no documentation")
    return bool(doc)


def flat(doc: str | None) -> str:
    return " ".join((doc or "").split())


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def fields_of(cls: type) -> Iterator[tuple[str, str, str, str]]:
    """Name, type, default and documentation of each public annotated field, inherited ones first."""
    for owner in reversed(cls.__mro__):
        if not owner.__module__.startswith("millstream"):
            continue
        body, listed = class_node(owner).body, documented_in(owner)
        for node, after in zip(body, [*body[1:], ast.Pass()], strict=True):
            if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
                continue
            if node.target.id.startswith("_"):
                continue
            default = ast.unparse(node.value) if node.value is not None else ""
            yield (
                node.target.id,
                ast.unparse(node.annotation),
                default,
                documentation(after) or listed.get(node.target.id, ""),
            )


def documented_in(cls: type) -> dict[str, str]:
    """The lines `field: …` of a class's docstring, each with the lines that follow it."""
    found = re.findall(
        r"^(\w+): (.*(?:\n(?!\w+: |\n).*)*)", inspect.cleandoc(cls.__dict__.get("__doc__") or ""), re.MULTILINE
    )
    return dict(found)


def documentation(node: ast.AST) -> str:
    """The string that a statement is, where it is one."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return inspect.cleandoc(node.value.value) if is_text else ""  # type: ignore[attr-defined]


def class_node(cls: type) -> ast.ClassDef:
    module = sys.modules[cls.__module__]
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.ClassDef) and node.name == cls.__name__:
            return node
    raise Undocumented(f"{cls.__module__} does not define {cls.__name__}")


def tree_of(module: ModuleType) -> ast.Module:
    return ast.parse(inspect.getsource(module))


def methods_of(cls: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties, those of our own base classes too, in the order of the source."""
    seen = dict[str, Any]()
    for owner in reversed(cls.__mro__):
        if owner.__module__.startswith("millstream"):
            for name, value in vars(owner).items():
                if name.startswith("_"):
                    continue
                if isinstance(value, classmethod | staticmethod):
                    seen[name] = value.__func__
                elif inspect.isfunction(value) or isinstance(value, property):
                    seen[name] = value
    yield from seen.items()


def signature_of(function: Any) -> str:
    """As the source says it, without the types, and without `self`."""
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for name, parameter in inspect.signature(function).parameters.items()
        if name not in ("self", "cls")
    ]
    text = str(inspect.Signature(parameters))
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def main() -> int:
    try:
        PAGE.write_text(page(), "utf-8")
    except Undocumented as gaps:
        print(textwrap.indent(str(gaps), "  "), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

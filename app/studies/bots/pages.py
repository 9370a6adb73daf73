"""Pages as a bot reads them: forms with their fields, and the page's data about itself. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import unquote

_UNSENT = {"submit", "button", "reset", "image", "file"}
_RETURN = re.compile(r"/s/me/back/[\w-]+")


@dataclass(slots=True)
class FormField:
    """A field of a form. `options` are the values of a choice, without the empty one."""

    name: str
    kind: str  # text | number | hidden | radio | checkbox | select | textarea | range …
    value: str = ""
    options: list[str] = field(default_factory=list)
    longest: int | None = None


@dataclass(slots=True)
class Form:
    """A form: its action, its method, and its fields by name."""

    action: str
    method: str
    fields: dict[str, FormField] = field(default_factory=dict)


@dataclass(slots=True)
class Page:
    """The parts of a page that a bot needs.

    `data` holds the data attributes of `main`; `returns` are the paths that lead back from the linked surveys
    elsewhere.
    """

    forms: list[Form] = field(default_factory=list)
    data: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)  # text by the id of the element
    returns: list[str] = field(default_factory=list)

    def form_with(self, field_name: str) -> Form | None:
        """The first form that has a field of that name."""
        return next((each for each in self.forms if field_name in each.fields), None)


def read_page(html: str) -> Page:
    """Forms, outputs and data of a page."""
    reader = _Reader()
    reader.feed(html)
    return reader.page


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page()
        self._form: Form | None = None
        self._select: FormField | None = None
        self._area: FormField | None = None
        self._output: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "main":
            self.page.data = {name[5:]: value for name, value in given.items() if name.startswith("data-")}
        elif tag == "a":
            self.page.returns += _RETURN.findall(unquote(given.get("href", "")))
        elif tag == "output":
            self._output = given.get("id", "")
            self.page.outputs[self._output] = ""
        elif tag == "form":
            self._form = Form(given.get("action", ""), given.get("method", "get").lower())
            self.page.forms.append(self._form)
        elif self._form is not None:
            self._in_form(tag, given, self._form)

    def _in_form(self, tag: str, given: Mapping[str, str], form: Form) -> None:
        name, kind = given.get("name", ""), given.get("type", "text").lower()
        if tag == "option" and self._select is not None:
            if given.get("value"):
                self._select.options.append(given["value"])
        elif name and tag in ("input", "select", "textarea") and kind not in _UNSENT:
            self._field(tag, kind, name, given, form)

    def _field(self, tag: str, kind: str, name: str, given: Mapping[str, str], form: Form) -> None:
        kind = kind if tag == "input" else tag
        found = form.fields.setdefault(name, FormField(name, kind))
        if kind in ("radio", "checkbox"):
            found.options.append(given.get("value", "on"))
            return
        found.value = given.get("value", "")
        found.longest = int(given["maxlength"]) if given.get("maxlength", "").isdigit() else None
        self._select = found if tag == "select" else self._select
        self._area = found if tag == "textarea" else None

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._form = None
        elif tag == "select":
            self._select = None
        elif tag == "textarea":
            self._area = None
        elif tag == "output":
            self._output = None

    def handle_data(self, data: str) -> None:
        if self._area is not None:
            self._area.value += data
        elif self._output is not None:
            self.page.outputs[self._output] = (self.page.outputs[self._output] + data).strip()

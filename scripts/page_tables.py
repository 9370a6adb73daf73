"""Tables that scripts write into pages of docs, between two marks."""


def between(text: str, marks: tuple[str, str], written: str) -> str:
    """A page with `written` in place of what stands between its marks."""
    begin, end = marks
    before, _, rest = text.partition(begin)
    return f"{before}{begin}\n{written}\n{end}{rest.partition(end)[2]}"

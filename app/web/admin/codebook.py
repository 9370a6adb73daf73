"""The codebook: what every column of every CSV means, and the R and Stata code that reads the file."""

from flask import render_template, request

from app.codebook import all_tables, find_table
from app.web.admin.blueprint import blueprint

_FIRST = "matches"


@blueprint.get("/codebook")
def codebook() -> str:
    """One table, by its name. Raises NotFound."""
    table = find_table(request.args.get("table") or _FIRST)
    return render_template("admin/codebook.html", table=table, names=[*all_tables()])

"""``cobre.report``: the results of a run as a page."""

from __future__ import annotations

import os
from typing import Any

from cobre import _native
from cobre.settings import absolute
from cobre.tables import results_directory


def report(
    results: Any,
    *,
    output: str | os.PathLike[str] | None = None,
    png: str | os.PathLike[str] | None = None,
) -> str:
    """Writes the report of a run as one HTML page, and returns its path.

    ``results`` is the directory of a run's results, or the result of a run that has one. The page is ``report.html``
    there unless ``output`` names another file. With ``png`` the charts are also written as pictures into that directory.
    """
    directory = results_directory(results)
    page = os.path.join(directory, "report.html") if output is None else absolute(output)
    _native.write_report(directory, page, None if png is None else absolute(png))
    return page

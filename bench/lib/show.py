"""Formats numbers and tables, for a terminal and for a page. A table has the same content in both."""

import operator

MET = {"<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt}
SIGNS = {"<=": "≤", "<": "<", ">=": "≥", ">": ">"}


class Table:
    def __init__(self, title, headings):
        self.title, self.headings, self.rows = title, headings, []

    def add(self, *cells):
        self.rows.append([str(cell) for cell in cells])

    def text(self):
        """Aligned: the first column to the left, the others to the right."""
        rows = [self.headings, *self.rows]
        widths = [max(len(row[column]) for row in rows) for column in range(len(self.headings))]
        lines = [self.title, ""]
        for row in rows:
            first, *others = (cell.ljust(width) if not at else cell.rjust(width)
                              for at, (cell, width) in enumerate(zip(row, widths)))
            lines.append("  ".join([first, *others]).rstrip())
        return "\n".join(lines) + "\n"

    def markdown(self):
        marks = ["---"] + ["---:"] * (len(self.headings) - 1)
        rows = [self.headings, marks, *self.rows]
        return f"{self.title}:\n\n" + "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def target_table(lines, targets):
    """Targets are (line, name, value of line, comparison, bound, formatter). Targets that were not measured are left out."""
    table = Table("Targets", ["workload", "connections", "", "target", "measured", "met"])
    for name, what, value, sign, bound, write in targets:
        if name in lines:
            found = value(lines[name])
            workload, _, connections = name.partition("/")
            table.add(workload, connections, what, f"{SIGNS[sign]} {write(bound)}", write(found),
                      "yes" if MET[sign](found, bound) else "no")
    return table


def number(value):
    """At least three digits, and none without meaning."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def count(value):
    return f"{value:,.0f}" if value >= 100 else number(value)


def micros(value):
    """Microseconds; large values as milliseconds."""
    return f"{number(value / 1000)} ms" if value >= 1000 else f"{number(value)} µs"


def millis(value):
    """Microseconds, always as milliseconds."""
    return f"{number(value / 1000)} ms"


def seconds(value):
    """Seconds; small values as milliseconds."""
    return f"{number(value)} s" if value >= 1 else f"{number(value * 1000)} ms"


def times(value):
    return f"{number(value)} ×"


def mib(value):
    return f"{number(value)} MiB"


def bytes_text(value):
    """Bytes in the largest unit that they are a multiple of."""
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if value >= unit and value % unit == 0:
            return f"{value // unit:,} {name}"
    return f"{value:,} bytes"


def duration_or_none(value):
    return "–" if value is None else seconds(value)

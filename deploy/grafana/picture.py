"""Draws a dashboard of Grafana from Prometheus' answers to its queries, panel by panel, as SVG.

Not a picture of Grafana: it has the same panels at the same places with the same numbers, in our own lines.
"""

import html
import math

COLUMN, ROW, GAP = 52, 26, 8
WIDTH = 24 * COLUMN
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#999999", "#5f9e3f", "#b22222"]
POINTS = 160
LEGEND_MAX = 6


def as_sent(expression, rate_interval):
    """A query with Grafana's variables filled in."""
    for name, value in [("$job", "partita"), ("$instance", ".*"), ("$__rate_interval", rate_interval)]:
        expression = expression.replace(name, value)
    return expression


def draw(dashboard, ask, times, file, rate_interval="10s"):
    """`ask` is a call of Prometheus' API, `times` the begin and the end."""
    panels = dashboard["panels"]
    # The cluster's panels are empty without a cluster.
    first_of_cluster = next((panel["gridPos"]["y"] for panel in panels if panel["title"] == "Cluster"), None)
    shown = [panel for panel in panels if first_of_cluster is None or panel["gridPos"]["y"] < first_of_cluster]
    height = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in shown) * ROW
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="11">',
             f'<rect width="{WIDTH}" height="{height}" fill="#f4f5f5"/>']
    for panel in shown:
        place = panel["gridPos"]
        x, y, w, h = place["x"] * COLUMN, place["y"] * ROW, place["w"] * COLUMN, place["h"] * ROW
        if panel["type"] == "row":
            parts.append(f'<text x="{x + GAP}" y="{y + 18}" font-size="13" font-weight="bold" fill="#333">{html.escape(panel["title"])}</text>')
            continue
        series = []
        for target in panel["targets"]:
            query = as_sent(target["expr"], rate_interval)
            step = max(1, round((times[1] - times[0]) / POINTS))
            found = ask("query_range", query=query, start=times[0], end=times[1], step=step)["result"]
            series += [(legend(target["legendFormat"], one["metric"]), points(one["values"])) for one in found]
        parts.append(f'<rect x="{x + 3}" y="{y + 3}" width="{w - 6}" height="{h - 6}" rx="3" fill="#fff" stroke="#ddd"/>')
        parts.append(f'<text x="{x + GAP + 4}" y="{y + 20}" font-size="12" fill="#222">{html.escape(panel["title"])}</text>')
        unit = panel["fieldConfig"]["defaults"]["unit"]
        body = stat(series, unit, x, y, w, h) if panel["type"] == "stat" else graph(panel, series, times, (x, y, w, h))
        parts += body
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join([*parts, "</svg>"]) + "\n")


def points(values):
    numbers = ((float(at), float(value)) for at, value in values)
    return [(at, value) for at, value in numbers if math.isfinite(value)]


def legend(form, labels):
    for name, value in labels.items():
        form = form.replace("{{" + name + "}}", value)
    return form


def stat(series, unit, x, y, w, h):
    last = [values[-1][1] for _, values in series if values]
    text = shown(last[0], unit) if last else "no data"
    if unit == "none" and last and last[0] in (0, 1):
        text = "yes" if last[0] else "no"
    return [f'<text x="{x + w / 2}" y="{y + h / 2 + 16}" font-size="24" text-anchor="middle" fill="#0072b2">{text}</text>']


def graph(panel, series, times, place):
    x, y, w, h = place
    left, right, top, bottom = x + 58, x + w - 14, y + 32, y + h - 46
    series = sorted((one for one in series if one[1]), key=lambda one: -sum(value for _, value in one[1]) / len(one[1]))
    unit = panel["fieldConfig"]["defaults"]["unit"]
    is_stacked = panel["fieldConfig"]["defaults"].get("custom", {}).get("stacking", {}).get("mode") == "normal"
    if not series:
        return [f'<text x="{(left + right) / 2}" y="{(top + bottom) / 2}" text-anchor="middle" fill="#888">no data</text>']
    lines, below = [], {}
    for name, values in series:
        if is_stacked:
            values = [(at, value + below.get(at, 0)) for at, value in values]
            below.update(values)
        lines.append((name, values))
    most = max(value for _, values in lines for _, value in values)
    most = panel["fieldConfig"]["defaults"].get("max") or nice(most, unit)
    across = lambda at: left + (at - times[0]) / (times[1] - times[0]) * (right - left)
    up = lambda value: bottom - min(value / most, 1) * (bottom - top)
    parts = []
    for part in (0, 0.5, 1):
        level = up(most * part)
        parts.append(f'<line x1="{left}" x2="{right}" y1="{level:.1f}" y2="{level:.1f}" stroke="#e5e5e5"/>')
        parts.append(f'<text x="{left - 5}" y="{level + 4:.1f}" text-anchor="end" fill="#666">{shown(most * part, unit)}</text>')
    parts.append(f'<text x="{left}" y="{bottom + 14}" fill="#666">0</text>')
    parts.append(f'<text x="{right}" y="{bottom + 14}" text-anchor="end" fill="#666">{times[1] - times[0]:.0f} s</text>')
    # The lower lines of a stack are drawn last, over the areas of the others.
    for number, (name, values) in reversed(list(enumerate(lines))):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{across(at):.1f},{up(value):.1f}" for at, value in values)
        if is_stacked:
            parts.append(f'<polygon points="{across(values[0][0]):.1f},{bottom} {path} {across(values[-1][0]):.1f},{bottom}" fill="{colour}" fill-opacity="0.85"/>')
        else:
            parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    at, line = left, y + h - 20
    for number, (name, _) in enumerate(lines[:LEGEND_MAX]):
        room = 24 + 6.4 * len(name)
        if at + room > right and at > left:
            at, line = left, line + 13
        if line > y + h - 6:
            break
        parts.append(f'<rect x="{at}" y="{line - 8}" width="9" height="9" fill="{COLOURS[number % len(COLOURS)]}"/>')
        parts.append(f'<text x="{at + 13}" y="{line}" fill="#444">{html.escape(name)}</text>')
        at += room
    return parts


def nice(value, unit):
    """A round number that is not below it."""
    if value <= 0:
        return 1
    if unit in ("bytes", "Bps"):
        power = 1024 ** max(0, math.floor(math.log(value, 1024)))
        return power * nice(value / power, "none")
    power = 10 ** math.floor(math.log10(value))
    return next(power * times for times in (1, 2, 2.5, 5, 10) if power * times >= value * 0.999)


def shown(value, unit):
    if unit == "percentunit":
        return f"{value * 100:.3g} %"
    if unit == "s":
        return "0" if value == 0 else f"{value:.3g} s" if value >= 1 else f"{value * 1e3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.3g} µs"
    if unit in ("bytes", "Bps"):
        for name in ("B", "KiB", "MiB", "GiB", "TiB"):
            if value < 1024 or name == "TiB":
                return (f"{value:.0f}" if value >= 100 else f"{value:.3g}") + f" {name}" + ("/s" if unit == "Bps" else "")
            value /= 1024
    for limit, name in ((1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.3g}{name}"
    return f"{value:.3g}"

#!/usr/bin/env python3
"""Looks at reports in a real browser: are charts drawn, do they answer, do they fit.

usage: ci/report.py [--pictures DIR] [OUTPUT…]

Without OUTPUT it trains three problems and looks at their reports. With --pictures it leaves screenshots."""
import json
import os
import signal
import subprocess
import sys
import tempfile

from browser import Browser

COBRE = os.path.join(os.path.dirname(__file__), "..", "target", "release", "cobre")
LIMIT_SECS = 600
OPTIONS = ["--iterations", "8", "--simulate", "60"]
# By name: the problem, and charts that its report must have.
RUNS = {
    "four-regions": ("examples/four-regions", ["convergence", "cost-distribution", "cost-breakdown", "cost-stages", "storage",
                                               "inflow", "mix", "exchange", "marginal-cost", "water-value"]),
    "two-reservoirs": ("examples/two_reservoirs.sof.json", ["convergence", "stage-value", "states", "controls", "duals"]),
    "newsvendor": ("newsvendor.sof.json", ["convergence", "stage-value", "states", "controls", "duals"]),
}


def newsvendor():
    """A problem of two stages that have no decision in common, so that every control has one value."""
    def plus(*terms):
        return {"type": "ScalarAffineFunction", "constant": 0,
                "terms": [{"variable": name, "coefficient": factor} for name, factor in terms]}

    def at_least(least, *terms):
        return {"name": "floor", "function": plus(*terms), "set": {"type": "GreaterThan", "lower": least}}

    def at_most(name, most, *terms):
        return {"name": name, "function": plus(*terms), "set": {"type": "LessThan", "upper": most}}

    def stage(variables, cost, constraints, chance=()):
        return {"state_variables": {"x": {"in": "x_in", "out": "x_out"}}, "random_variables": list(chance), "subproblem": {
            "version": {"major": 1, "minor": 0}, "variables": [{"name": name} for name in variables],
            "objective": {"sense": "min", "function": plus(*cost)}, "constraints": constraints}}

    buying = stage(["x_in", "x_out", "buy"], [("buy", 1)], [
        at_least(0, ("buy", 1)), {"name": "store", "function": plus(("x_out", 1), ("buy", -1)), "set": {"type": "EqualTo", "value": 0}}])
    selling = stage(["x_in", "x_out", "sell", "demand"], [("sell", -2)], [
        at_least(0, ("sell", 1)), at_least(0, ("x_out", 1)), at_most("stock", 0, ("sell", 1), ("x_out", 1), ("x_in", -1)),
        at_most("market", 0, ("sell", 1), ("demand", -1))], ["demand"])
    chances = [{"probability": 0.25, "support": {"demand": demand}} for demand in (2, 4, 6, 8)]
    return {"version": {"major": 1, "minor": 0}, "root": {"state_variables": {"x": 0}, "successors": {"buy": 1}},
            "nodes": {"buy": {"subproblem": "buying", "successors": {"sell": 1}}, "sell": {"subproblem": "selling", "realizations": chances}},
            "subproblems": {"buying": buying, "selling": selling}}


# What every chart must be, asked of each; returns what is wrong.
SOUND = """[...document.querySelectorAll('figure')].flatMap((figure) => {
  const name = figure.dataset.panel, chart = figure.querySelector('svg.chart'), wrong = [];
  if (!chart) return [`${name}: no chart`];
  const marks = [...chart.querySelectorAll('.line, .band, .bar, .dot')].filter((mark) => {
    const box = mark.getBBox();
    return box.width + box.height > 0;
  });
  if (!marks.length) wrong.push(`${name}: nothing is drawn`);
  if (!chart.getAttribute('aria-label')) wrong.push(`${name}: no accessible name`);
  if (!document.getElementById(chart.getAttribute('aria-describedby'))?.textContent) wrong.push(`${name}: no description`);
  if (!figure.querySelector('h3').textContent) wrong.push(`${name}: no title`);
  if (/NaN|Infinity|undefined/.test(chart.outerHTML)) wrong.push(`${name}: a number is none`);
  const edge = chart.getBoundingClientRect();
  const texts = [...chart.querySelectorAll('text')].map((text) => [text.textContent, text.getBoundingClientRect()]);
  if (!texts.length) wrong.push(`${name}: no labels`);
  texts.forEach(([text, box], at) => {
    if (box.left < edge.left - 1 || box.right > edge.right + 1 || box.top < edge.top - 1 || box.bottom > edge.bottom + 1)
      wrong.push(`${name}: ${text} is cut off`);
    for (const [other, over] of texts.slice(at + 1)) {
      if (box.left < over.right && over.left < box.right && box.top + 2 < over.bottom && over.top + 2 < box.bottom)
        wrong.push(`${name}: ${text} and ${other} overlap`);
    }
  });
  return wrong;
})"""

WIDE = """[...document.querySelectorAll('body *')].filter((of) => !of.closest('.scroll, nav, .tip') &&
  of.getBoundingClientRect().right > innerWidth + 1).map((of) => of.tagName + '.' + of.getAttribute('class'))"""


class Check:
    """Questions to one report."""

    def __init__(self, browser, name, pictures):
        self.browser, self.name, self.pictures, self.problems = browser, name, pictures, []

    def that(self, holds, what):
        if not holds:
            self.problems.append(f"{self.name}: {what}")

    def picture(self, name):
        if self.pictures:
            self.browser.screenshot(os.path.join(self.pictures, f"{self.name}-{name}.png"))

    def sound(self, when):
        for problem in self.browser.run(SOUND):
            self.problems.append(f"{self.name}, {when}: {problem}")

    def on(self, figure, script):
        """The value of an expression about a figure, called `figure` there."""
        return self.browser.run(f"((figure) => {script})(document.querySelectorAll('figure')[{figure}])")

    def everything(self, charts):
        browser = self.browser
        there = browser.run("[...document.querySelectorAll('figure')].map((figure) => figure.dataset.panel)")
        self.that(set(charts) <= set(there), f"no chart of {sorted(set(charts) - set(there))}")
        self.sound("on a screen")
        self.picture("light")
        for figure in range(browser.run("document.querySelectorAll('figure').length")):
            self.tooltip(figure)
            self.legend(figure)
            self.zoom(figure)
            self.views(figure)
            self.table(figure)
        self.singles()
        self.dark()
        self.phone()
        self.paper()

    def place(self, figure, across, down):
        """A point of a chart on the screen, scrolled into view."""
        return self.on(figure, f"""{{ const chart = figure.querySelector('svg.chart');
            chart.scrollIntoView({{block: 'center', behavior: 'instant'}}); const box = chart.getBoundingClientRect();
            return [box.left + box.width * {across}, box.top + box.height * {down}]; }}""")

    def tooltip(self, figure):
        point = self.place(figure, 0.6, 0.5)
        self.browser.mouse("mouseMoved", *point)
        tip = self.on(figure, "{ const tip = figure.querySelector('.tip'); return [tip.hidden, tip.innerText]; }")
        name = self.on(figure, "figure.dataset.panel")
        self.that(not tip[0] and any(letter.isdigit() for letter in tip[1]), f"{name}: no tooltip ({tip})")
        if name == "storage":
            self.picture_of_view("tooltip")
        self.browser.mouse("mouseMoved", 2, 2)
        self.that(self.on(figure, "figure.querySelector('.tip').hidden"), f"{name}: the tooltip stays")
        keys = """{ const chart = figure.querySelector('svg.chart'); chart.focus();
            chart.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}));
            const shown = !figure.querySelector('.tip').hidden; chart.blur(); return shown; }"""
        self.that(self.on(figure, keys), f"{name}: arrow keys show nothing")

    def picture_of_view(self, name):
        if self.pictures:
            self.browser.screenshot(os.path.join(self.pictures, f"{self.name}-{name}.png"), whole=False)

    def legend(self, figure):
        count = "figure.querySelectorAll('svg.chart g > *').length"
        before = self.on(figure, count)
        press = "{ const entry = figure.querySelector('.legend button'); entry?.click(); return entry !== null; }"
        if not self.on(figure, press):
            return
        pressed = self.on(figure, "figure.querySelector('.legend button').getAttribute('aria-pressed')")
        name = self.on(figure, "figure.dataset.panel")
        after = self.on(figure, count)
        self.that(pressed == "false" and after < before, f"{name}: the legend switches nothing off ({before}, {after})")
        self.on(figure, press)
        self.that(self.on(figure, count) == before, f"{name}: the legend switches nothing on again")

    def zoom(self, figure):
        places = self.on(figure, "figure.querySelectorAll('svg.chart .middle').length")
        # Half of a few stages is less than two.
        if places < 4 or self.on(figure, "figure.querySelector('.reset') === null"):
            return
        name, reset = self.on(figure, "figure.dataset.panel"), "figure.querySelector('.reset').hidden"
        labels = "[...figure.querySelectorAll('svg.chart .middle')].map(of => of.textContent).join()"
        before = self.on(figure, labels)
        self.drag(self.place(figure, 0.4, 0.5), self.place(figure, 0.8, 0.5))
        self.that(not self.on(figure, reset) and self.on(figure, labels) != before, f"{name}: dragging does not zoom")
        self.sound(f"{name} zoomed by dragging")
        self.on(figure, "figure.querySelector('.reset').click()")
        self.that(self.on(figure, reset) and self.on(figure, labels) == before, f"{name}: the zoom is not reset")
        self.browser.mouse("mouseWheel", *self.place(figure, 0.5, 0.5), deltaX=0, deltaY=-100, modifiers=2)
        self.that(not self.on(figure, reset), f"{name}: the wheel does not zoom")
        self.on(figure, "figure.querySelector('.reset').click()")

    def drag(self, start, end):
        self.browser.mouse("mouseMoved", *start)
        self.browser.mouse("mousePressed", *start, buttons=1)
        self.browser.mouse("mouseMoved", *end, button="left", buttons=1)
        self.browser.mouse("mouseReleased", *end)

    def views(self, figure):
        count = self.on(figure, "figure.querySelector('select')?.options.length ?? 0")
        names = set()
        for view in [*range(count), 0] if count else []:
            pick = f"""{{ const select = figure.querySelector('select'); select.value = {view};
                select.dispatchEvent(new Event('change')); return figure.querySelector('svg.chart').ariaLabel; }}"""
            names.add(self.on(figure, pick))
            self.sound(f"view {view}")
        name = self.on(figure, "figure.dataset.panel")
        self.that(len(names) == count, f"{name}: the choice changes nothing ({len(names)} of {count})")

    def table(self, figure):
        self.on(figure, "figure.querySelector('details').open = true")
        self.browser.settle()
        rows = self.on(figure, "figure.querySelectorAll('details tbody tr').length")
        wrong = self.on(figure, "/NaN|undefined/.test(figure.querySelector('details').textContent)")
        self.that(rows > 0 and not wrong, f"figure {figure}: no sound table")
        self.on(figure, "figure.querySelector('details').open = false")

    def singles(self):
        if self.browser.run("document.querySelector('#singles')?.hidden ?? true"):
            return
        count = "document.querySelectorAll('svg.chart .single').length"
        click = "document.querySelector('#singles input').click()"
        before = self.browser.run(count)
        self.browser.run(click)
        self.that(self.browser.run(count) > before, "choosing a single scenario shows it in no chart")
        self.browser.run(click)
        self.that(self.browser.run(count) == before, "a single scenario stays")

    def ground(self):
        color = self.browser.run("getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in color.strip("rgba()").split(",")[:3]) / 3

    def dark(self):
        self.browser.media(scheme="dark")
        self.that(self.ground() < 60, "it is not dark for those who like it dark")
        self.picture("dark")
        self.browser.run("document.getElementById('theme').click()")
        self.that(self.ground() > 200, "the button does not make it light")
        self.browser.run("document.getElementById('theme').click()")
        self.that(self.ground() < 60, "the button does not make it dark")

    def phone(self):
        self.browser.media()
        self.browser.size(360, 740, phone=True)
        wide = self.browser.run("document.documentElement.scrollWidth")
        self.that(wide <= 360, f"{wide} px wide on a phone of 360: {self.browser.run(WIDE)[:5]}")
        self.sound("on a phone")
        self.picture("phone")
        self.browser.size(1200, 900)

    def paper(self):
        self.browser.media("print", "dark")
        self.that(self.browser.run("getComputedStyle(document.querySelector('.label')).fill") == "rgb(27, 35, 48)",
                  "dark mode is printed")
        self.sound("on paper")
        self.browser.media()
        printed = self.browser.pdf()
        self.that(printed.startswith(b"%PDF") and b"/Type /Page" in printed, "it cannot be printed")
        if self.pictures:
            with open(os.path.join(self.pictures, f"{self.name}.pdf"), "wb") as file:
                file.write(printed)


def look(output, name, charts, pictures, limit_bytes=2_000_000):
    page = os.path.join(output, "report.html")
    subprocess.run([COBRE, "report", output, "--output", page], check=True, stdout=subprocess.DEVNULL)
    with Browser() as browser:
        browser.size(1200, 900)
        browser.media()
        browser.open(page)
        check = Check(browser, name, pictures)
        check.everything(charts)
        check.problems += [f"{name}: {complaint}" for complaint in browser.complaints]
        away = [url for url in browser.requests if not url.startswith(("file:", "data:"))]
        check.that(not away, f"the page asks for {away}")
        check.that(os.path.getsize(page) < limit_bytes, f"{os.path.getsize(page)} bytes")
        print(f"{name}: {os.path.getsize(page)} bytes, "
              f"{browser.run('document.querySelectorAll(`svg.chart`).length')} charts, {len(check.problems)} problems")
        return check.problems


def too_long(*_):
    # Raised, not fatal, so that the browser is ended and nothing is left.
    raise TimeoutError(f"not done within {LIMIT_SECS} s")


def main(arguments):
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(LIMIT_SECS)
    pictures = None
    if arguments[:1] == ["--pictures"]:
        pictures = arguments[1]
        arguments = arguments[2:]
        os.makedirs(pictures, exist_ok=True)
    problems = []
    with tempfile.TemporaryDirectory(prefix="cobre-report-") as scratch:
        for output in arguments:
            problems += look(output, os.path.basename(os.path.normpath(output)), [], pictures)
        with open(os.path.join(scratch, "newsvendor.sof.json"), "w", encoding="utf-8") as file:
            json.dump(newsvendor(), file)
        for name, (problem, charts) in ({} if arguments else RUNS).items():
            output = os.path.join(scratch, name)
            place = problem if os.path.exists(problem) else os.path.join(scratch, problem)
            bound = [] if os.path.isdir(place) else ["--bound=-100"]
            command = [COBRE, "run", place, *OPTIONS, *bound, "--output", output]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            problems += look(output, name, charts, pictures)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

// A chart with what surrounds it: the choice of view, zoom, tooltip, legend and table.

class PanelView {
  constructor(figure, panel, singles) {
    // Stages have numbers and dates.
    if (panel.at.stages) panel.at = panel.at.stages;
    Object.assign(this, { figure, panel, singles, view: panel.views[0], hidden: new Set(), range: null, all: false, at: null });
    this.frame = html("div", { class: "frame" });
    this.tip = html("div", { class: "tip", role: "status", hidden: true });
    this.legend = html("div", { class: "legend", role: "group", "aria-label": `Series of ${panel.title}` });
    this.tools = html("div", { class: "tools" });
    this.table = html("details", { ontoggle: () => this.fillTable() }, html("summary", {}, "As a table"));
    this.makeTools();
    figure.append(this.tools, this.legend, this.frame, this.table);
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.frame);
  }

  get rows() {
    return this.panel.at.names !== undefined;
  }

  /** The series that are switched on. */
  get shown() {
    return this.view.series.filter((series) => this.isOn(series));
  }

  isOn(series) {
    return series.scenario === undefined ? !this.hidden.has(series.name) : this.singles.has(series.scenario);
  }

  makeTools() {
    const { panel, tools } = this;
    if (panel.views.length > 1) {
      const options = panel.views.map((view, at) => html("option", { value: at }, view.name));
      const pick = html("select", { onchange: () => this.pick(Number(pick.value)) }, ...options);
      tools.append(html("label", {}, `${panel.pick} `, pick));
    } else if (this.view.name) tools.append(html("span", {}, `${panel.pick} `, html("strong", {}, this.view.name)));
    if (this.rows) return;
    this.focusButton = html("button", { type: "button", onclick: () => this.turnFocus() }, "All values");
    this.resetButton = html("button", { type: "button", class: "reset", onclick: () => this.reset() }, "Reset zoom");
    tools.append(this.focusButton, this.resetButton);
  }

  pick(at) {
    this.view = this.panel.views[at];
    this.redraw();
  }

  turnFocus() {
    this.all = !this.all;
    this.redraw();
  }

  reset() {
    this.range = null;
    this.redraw();
  }

  /** Draws all of it anew: chart, legend and, if it is open, the table. */
  redraw() {
    this.draw();
    this.fillTable();
  }

  draw() {
    const width = Math.floor(this.frame.clientWidth);
    if (width < 50) return;
    this.hideTip();
    if (this.rows) this.drawn = drawRows(this.panel, this.view, width);
    else {
      const whole = wholeRange(this.panel.at.numbers, this.view);
      const focus = this.view.focus && !this.all && !this.range ? this.view.focus : null;
      this.drawn = drawPlot(this.panel, this.view, this.shown, this.range ?? whole, focus, width);
      this.resetButton.hidden = !this.range;
      this.focusButton.hidden = !this.view.focus || Boolean(this.range);
      this.focusButton.textContent = this.all ? "Later iterations" : "All values";
    }
    const { picture } = this.drawn;
    const name = this.view.name ? `${this.panel.title}: ${this.view.name}` : this.panel.title;
    fill(picture, { role: "img", tabindex: 0, "aria-label": name, "aria-describedby": `${this.panel.id}-about` }, []);
    this.cross = svg("path", { class: "cross" });
    this.selection = svg("rect", { class: "selection" });
    picture.append(this.cross, this.selection);
    const focused = this.frame.contains(document.activeElement);
    this.frame.replaceChildren(picture, this.tip);
    if (focused) picture.focus({ preventScroll: true });
    this.drawLegend();
  }

  drawLegend() {
    const { series: all } = this.view;
    // One kind of bars is what the axis says it is.
    const drawn = all.filter((series) => series.values.some((value) => value !== null) && (series.scenario === undefined || this.isOn(series)));
    const listed = this.rows || (all.length === 1 && all[0].mark === "bar") ? [] : drawn;
    const entries = listed.map((series) =>
      html("button", { type: "button", "aria-pressed": String(this.isOn(series)), onclick: () => this.turn(series) }, swatch(series, this.shown), series.name),
    );
    const at = [...this.legend.children].indexOf(document.activeElement);
    this.legend.replaceChildren(...entries);
    if (at >= 0) this.legend.children[at]?.focus({ preventScroll: true });
  }

  turn(series) {
    if (series.scenario !== undefined) return this.singles.turn(series.scenario);
    if (!this.hidden.delete(series.name)) this.hidden.add(series.name);
    this.redraw();
  }

  fillTable() {
    if (!this.table.open) return;
    const columns = this.shown.flatMap((series) =>
      series.low ? [[`${series.name}, from`, series.low], [`${series.name}, to`, series.values]] : [[series.name, series.values]],
    );
    const head = html("tr", {}, ...[this.panel.x, ...columns.map(([name]) => name)].map((name) => html("th", { scope: "col" }, name)));
    const places = this.panel.at.names ?? this.panel.at.labels ?? this.panel.at.numbers.map(told);
    const row = (place, at) =>
      html("tr", {}, html("th", { scope: "row" }, place), ...columns.map(([, values]) => html("td", {}, told(values[at]))));
    const table = html("table", {}, html("caption", {}, this.view.y), html("thead", {}, head), html("tbody", {}, ...places.map(row)));
    this.table.replaceChildren(this.table.firstChild, html("div", { class: "scroll tall" }, table));
  }

  listen() {
    const { frame } = this;
    frame.addEventListener("pointermove", (event) => this.move(event));
    frame.addEventListener("pointerleave", () => this.hideTip());
    frame.addEventListener("focusout", () => this.hideTip());
    frame.addEventListener("keydown", (event) => this.press(event));
    if (this.rows) return;
    frame.addEventListener("pointerdown", (event) => this.grab(event));
    frame.addEventListener("pointerup", (event) => this.release(event));
    frame.addEventListener("pointercancel", () => this.drop());
    frame.addEventListener("dblclick", () => this.reset());
    frame.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
  }

  /** Where the pointer is, in the units of the picture. */
  pointer(event) {
    const box = this.drawn.picture.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  /** The place on the axis that lies under a point of the picture. */
  placeAt(across) {
    const { area } = this.drawn;
    const [from, to] = this.range ?? wholeRange(this.panel.at.numbers, this.view);
    const share = Math.min(Math.max((across - area.left) / area.width, 0), 1);
    return from + share * (to - from);
  }

  move(event) {
    const [across, down] = this.pointer(event);
    if (this.grabbed !== undefined) return this.stretch(across);
    if (this.rows) return this.show(Math.floor((down - this.drawn.area.top) / this.drawn.row), across, down);
    const place = this.placeAt(across);
    let nearest = 0;
    this.panel.at.numbers.forEach((other, at) => {
      if (Math.abs(other - place) < Math.abs(this.panel.at.numbers[nearest] - place)) nearest = at;
    });
    this.show(nearest, across, down);
  }

  /** Shows the values of a place near a point of the picture. */
  show(at, across, down) {
    const places = this.panel.at.names ?? this.panel.at.numbers;
    if (at < 0 || at >= places.length) return this.hideTip();
    this.at = at;
    const title = this.rows ? places[at] : (this.panel.at.labels?.[at] ?? `${this.panel.x} ${told(places[at])}`);
    const value = (series) => (series.low ? `${told(series.low[at])} to ${told(series.values[at])}` : told(series.values[at]));
    const rows = this.shown.map((series) => html("tr", {}, html("th", { scope: "row" }, swatch(series, this.shown), series.name), html("td", {}, value(series))));
    this.tip.replaceChildren(html("strong", {}, title), html("span", {}, this.view.y), html("table", {}, ...rows));
    this.tip.hidden = false;
    const { clientWidth: room } = this.frame;
    const beyond = across + 18 + this.tip.offsetWidth > room;
    const left = beyond ? across - 18 - this.tip.offsetWidth : across + 18;
    this.tip.style.left = `${Math.min(Math.max(left, 0), Math.max(room - this.tip.offsetWidth, 0))}px`;
    this.tip.style.top = `${Math.max(Math.min(down - this.tip.offsetHeight / 2, this.drawn.height - this.tip.offsetHeight), 0)}px`;
    const { area, x } = this.drawn;
    if (x) this.cross.setAttribute("d", `M${x(places[at])} ${area.top}v${area.height}`);
  }

  hideTip() {
    this.tip.hidden = true;
    this.cross?.removeAttribute("d");
  }

  grab(event) {
    if (event.button !== 0) return;
    this.grabbed = this.pointer(event)[0];
    this.frame.setPointerCapture(event.pointerId);
  }

  stretch(across) {
    const { area } = this.drawn;
    const inside = (value) => Math.min(Math.max(value, area.left), area.left + area.width);
    const [from, to] = [this.grabbed, across].map(inside).sort((left, right) => left - right);
    this.hideTip();
    fill(this.selection, { x: from, y: area.top, width: to - from, height: area.height }, []);
  }

  release(event) {
    const from = this.grabbed;
    this.drop();
    if (from === undefined) return;
    const to = this.pointer(event)[0];
    if (Math.abs(to - from) > 8) this.zoom(...[from, to].map((across) => this.placeAt(across)).sort((left, right) => left - right));
  }

  drop() {
    this.grabbed = undefined;
    this.selection?.setAttribute("width", 0);
  }

  /** With the chart in focus, or with Ctrl, the wheel zooms; else it scrolls the page. */
  wheel(event) {
    if (!event.ctrlKey && !this.frame.contains(document.activeElement)) return;
    event.preventDefault();
    this.magnify(event.deltaY < 0 ? 0.8 : 1.25, this.placeAt(this.pointer(event)[0]));
  }

  magnify(factor, around) {
    const [from, to] = this.range ?? wholeRange(this.panel.at.numbers, this.view);
    this.zoom(around + (from - around) * factor, around + (to - around) * factor);
  }

  zoom(from, to) {
    const places = this.panel.at.numbers;
    const [first, last] = wholeRange(places, this.view);
    [from, to] = [Math.max(from, first), Math.min(to, last)];
    if (places.length < 2 || to - from < spacing(places)) return;
    this.range = from <= first && to >= last ? null : [from, to];
    this.redraw();
  }

  press(event) {
    const count = (this.panel.at.names ?? this.panel.at.numbers).length;
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (step) {
      const at = this.at === null ? 0 : Math.min(Math.max(this.at + step, 0), count - 1);
      const { area, x, row } = this.drawn;
      this.show(at, x ? x(this.panel.at.numbers[at]) : area.width / 2, x ? area.top : area.top + at * row);
    } else if (!this.rows && (event.key === "+" || event.key === "-")) {
      const [from, to] = this.range ?? wholeRange(this.panel.at.numbers, this.view);
      this.magnify(event.key === "+" ? 0.8 : 1.25, (from + to) / 2);
    } else if (!this.rows && (event.key === "0" || event.key === "Escape")) this.reset();
    else return;
    event.preventDefault();
  }
}

// The page: its charts, the choice of single scenarios for all of them, and its colours.

/** The single scenarios that are shown in all charts. */
class Singles {
  constructor(all) {
    this.panels = [];
    this.on = new Set(all.map((_, at) => at).filter((at) => all[at].shown));
    this.boxes = all.map((_, at) => html("input", { type: "checkbox", onchange: () => this.turn(at) }));
    const labels = all.map(({ name }, at) => html("label", {}, this.boxes[at], ` ${name}`));
    const field = document.getElementById("singles");
    field?.append(...labels);
    if (field) field.hidden = all.length < 2;
    this.mark();
  }

  has(at) {
    return this.on.has(at);
  }

  turn(at) {
    if (!this.on.delete(at)) this.on.add(at);
    this.mark();
    for (const panel of this.panels) panel.redraw();
  }

  mark() {
    this.boxes.forEach((box, at) => (box.checked = this.on.has(at)));
  }
}

function startTheme() {
  const button = document.getElementById("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const use = (theme) => {
    document.documentElement.dataset.theme = theme;
    button.textContent = theme === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `Use ${theme === "dark" ? "light" : "dark"} colours`);
  };
  use(dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => use(dark.matches ? "dark" : "light"));
  button.addEventListener("click", () => use(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  button.hidden = false;
}

function startCharts() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const singles = new Singles(data.singles);
  const figures = new Map([...document.querySelectorAll("[data-panel]")].map((figure) => [figure.dataset.panel, figure]));
  singles.panels = data.panels.map((panel) => new PanelView(figures.get(panel.id), panel, singles));
}

startTheme();
startCharts();

// Making elements. Text goes in as text: names in the data are never read as HTML.

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

function html(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

/** How a series looks in a legend or a tooltip, among those that are shown: ribbons lie on others of their colour. */
function swatch(series, shown) {
  const key = svg("svg", { class: "swatch", viewBox: "0 0 22 12", "aria-hidden": "true" });
  const paint = `color:var(--c${series.color})`;
  if (series.mark === "bar") key.append(svg("rect", { x: 4, width: 14, height: 12, rx: 2, class: "bar", style: paint }));
  else if (series.mark === "band") {
    const below = shown.slice(0, shown.indexOf(series)).filter((of) => of.mark === "band" && of.color === series.color);
    for (const { tint } of [...below, series])
      key.append(svg("rect", { width: 22, height: 12, rx: 2, class: "band", style: `${paint};opacity:${tint / 100}` }));
  } else key.append(svg("path", { d: "M0 6H22", class: `line ${series.mark}`, style: paint }));
  return key;
}

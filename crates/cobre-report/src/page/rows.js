// A chart over names: one horizontal bar each.

const ROW = 30;

/** Draws a bar for each name, with its value behind it. */
function drawRows(panel, view, width) {
  const names = panel.at.names;
  const [series] = view.series;
  const [least, most] = extent(series.values);
  const [low, high] = [Math.min(least, 0), Math.max(most, 0) || 1];
  const longest = Math.max(...names.map((name) => name.length)) * 7.2 + 12;
  // On a narrow page names stand over their bars.
  const above = longest > width * 0.34;
  const row = above ? ROW + 16 : ROW;
  const left = above ? 4 : longest;
  const end = width - 4 - 7.2 * Math.max(...series.values.map((value) => told(value).length)) - 8;
  const height = 26 + names.length * row + 8;
  const x = (value) => left + ((value - low) / (high - low)) * (end - left);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "chart" });
  picture.append(svg("text", { x: 4, y: 14, class: "label" }, view.y));
  names.forEach((name, at) => {
    const top = 26 + at * row;
    const value = series.values[at] ?? 0;
    const bar = top + (above ? 18 : 3);
    picture.append(
      svg("text", above ? { x: 4, y: top + 13, class: "tick" } : { x: left - 8, y: top + 19, class: "tick end" }, name),
      svg("rect", { x: Math.min(x(0), x(value)), y: bar, width: Math.max(Math.abs(x(value) - x(0)), 1), height: 22, rx: 2, class: "bar", style: `color:var(--c${series.color})` }),
      svg("text", { x: Math.max(x(value), x(0)) + 6, y: bar + 15, class: "tick" }, told(value)),
    );
  });
  return { picture, area: { left: 0, top: 26, width, height: height - 34 }, row, height };
}

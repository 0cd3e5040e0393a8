// A chart over numbers: ribbons, stacked bars, lines.

const MARGIN = { top: 26, right: 14, bottom: 40 };

/** The whole range of the horizontal axis, with room for bars and lonely points. */
function wholeRange(places, view) {
  const [first, last] = [places[0], places[places.length - 1]];
  const wide = view.series.some((series) => series.mark === "bar" || runs(series.values).some((run) => run.length === 1));
  if (!wide && places.length > 1) return [first, last];
  const half = places.length > 1 ? spacing(places) / 2 : 0.5;
  return [first - half, last + half];
}

function spacing(places) {
  let least = Infinity;
  for (let at = 1; at < places.length; at++) least = Math.min(least, places[at] - places[at - 1]);
  return least;
}

/** Where each bar begins and ends, stacked by place: up from zero, and down. */
function stacked(series, count) {
  const [up, down] = [new Array(count).fill(0), new Array(count).fill(0)];
  return series.map((of) =>
    of.values.map((value, at) => {
      const side = value < 0 ? down : up;
      const from = side[at];
      side[at] += value ?? 0;
      return [from, side[at]];
    }),
  );
}

/** The range of values to show between two places. */
function valueRange(places, series, [from, to]) {
  const within = places.map((place) => place >= from && place <= to);
  const inside = (values) => values.filter((_, at) => within[at]);
  const bars = series.filter((of) => of.mark === "bar");
  const lines = series.filter((of) => of.mark !== "bar");
  const stacks = stacked(bars, places.length).flatMap((stack) => inside(stack).flat());
  const rest = lines.flatMap((of) => inside(of.values).concat(of.low ? inside(of.low) : []));
  let [low, high] = extent(stacks.concat(rest));
  if (low > high) return [0, 1];
  // Zero belongs to bars, and to lines that come near it.
  if (bars.length || (low > 0 && low < 0.4 * high)) low = Math.min(low, 0);
  if (bars.length || (high < 0 && high > 0.4 * low)) high = Math.max(high, 0);
  if (low === high) return low === 0 ? [0, 1] : [low - Math.abs(low) * 0.1, high + Math.abs(high) * 0.1];
  const room = (high - low) * 0.05;
  // What is next to nothing beside the rest needs no room.
  const beyond = (edge, by) => (Math.abs(edge) < room / 5 ? edge : edge + by);
  return [beyond(low, -room), beyond(high, room)];
}

/** The places of values that are there, in runs without a gap. */
function runs(values) {
  const found = [];
  values.forEach((value, at) => {
    if (value === null) return;
    if (at > 0 && values[at - 1] !== null) found[found.length - 1].push(at);
    else found.push([at]);
  });
  return found;
}

/** The outline of a line from point to point. */
function outline(points) {
  return points.map(([x, y], at) => `${at ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
}

/** The places in a range that have a date below them: all, or one in two, three, six, twelve and so on. */
function dated(places, [from, to], room) {
  const inside = places.filter((place) => place >= from && place <= to);
  const most = Math.max(1, Math.floor(room));
  const step = [1, 2, 3, 6, 12, 24, 60, 120, 240].find((size) => inside.length / size <= most) ?? inside.length;
  return inside.filter((place) => places.indexOf(place) % step === 0);
}

/** Draws a chart; returns its picture and how places and values lie in it. */
function drawPlot(panel, view, series, range, focus, width) {
  const places = panel.at.numbers;
  const height = view.small ? 150 : Math.round(Math.min(Math.max(width * 0.42, 250), 380));
  let [low, high] = focus ?? valueRange(places, series, range);
  if (view.zero && !focus) low = Math.min(low, 0);
  const marks = ticks(low, high, height / 55, false);
  const after = digits(marks);
  const labels = marks.map((value) => fixed(value, after));
  const left = 14 + 7.2 * Math.max(...labels.map((label) => label.length));
  const area = { left, top: MARGIN.top, width: width - left - MARGIN.right, height: height - MARGIN.top - MARGIN.bottom };
  const x = (place) => area.left + ((place - range[0]) / (range[1] - range[0])) * area.width;
  const y = (value) => area.top + ((high - value) / (high - low)) * area.height;
  const clip = `clip-${panel.id}`;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "chart" });
  picture.append(
    svg("clipPath", { id: clip }, svg("rect", { x: area.left, y: area.top - 1, width: area.width, height: area.height + 2 })),
    svg("text", { x: 4, y: 14, class: "label" }, view.y),
    svg("text", { x: area.left + area.width, y: height - 6, class: "label end" }, panel.x),
  );
  marks.forEach((value, at) => {
    const line = value === 0 ? "zero" : "rule";
    picture.append(svg("path", { d: `M${area.left} ${y(value)}h${area.width}`, class: line }));
    picture.append(svg("text", { x: area.left - 7, y: y(value) + 4, class: "tick end" }, labels[at]));
  });
  const whole = places.every(Number.isInteger);
  const dates = panel.at.labels;
  const across = dates ? dated(places, range, area.width / 90) : ticks(range[0], range[1], area.width / 75, whole);
  const digitsAcross = whole ? 0 : digits(across);
  for (const place of across) {
    const label = dates ? dates[places.indexOf(place)] : fixed(place, digitsAcross);
    picture.append(svg("path", { d: `M${x(place)} ${area.top + area.height}v5`, class: "zero" }));
    // Those at the ends stay inside the picture.
    const half = 3.8 * label.length;
    const middle = Math.min(Math.max(x(place), half), width - half);
    picture.append(svg("text", { x: middle, y: area.top + area.height + 18, class: "tick middle" }, label));
  }
  const inner = svg("g", { "clip-path": `url(#${clip})` });
  drawSeries(inner, places, series, x, y);
  picture.append(inner);
  return { picture, area, x, y, height };
}

function drawSeries(inner, places, series, x, y) {
  const paint = (of) => `color:var(--c${of.color})`;
  const points = (values, run) => run.map((at) => [x(places[at]), y(values[at])]);
  const wide = places.length > 1 ? x(spacing(places)) - x(0) : x(0.6) - x(0);
  for (const of of series.filter((of) => of.mark === "band")) {
    const style = `${paint(of)};opacity:${of.tint / 100}`;
    for (const run of runs(of.values)) {
      const [top, bottom] = [points(of.values, run), points(of.low, run)];
      const [[left, high], [, low]] = [top[0], bottom[0]];
      if (run.length > 1) inner.append(svg("path", { d: `${outline(top.concat(bottom.reverse()))}Z`, class: "band", style }));
      else inner.append(svg("rect", { x: left - wide / 4, y: high, width: wide / 2, height: Math.max(low - high, 1), class: "band", style }));
    }
  }
  const bars = series.filter((of) => of.mark === "bar");
  const thick = Math.max(wide * (places.length > 1 ? 0.86 : 0.5), 1);
  stacked(bars, places.length).forEach((stack, number) => {
    let path = "";
    stack.forEach(([from, to], at) => {
      if (from === to) return;
      path += `M${(x(places[at]) - thick / 2).toFixed(1)} ${y(from).toFixed(1)}h${thick.toFixed(1)}V${y(to).toFixed(1)}h${(-thick).toFixed(1)}Z`;
    });
    inner.append(svg("path", { d: path, class: "bar", style: paint(bars[number]) }));
  });
  for (const of of series.filter((of) => of.mark === "line" || of.mark === "dashes")) {
    const single = of.scenario !== undefined ? " single" : "";
    const all = runs(of.values).map((run) => points(of.values, run));
    const path = all.filter((run) => run.length > 1).map(outline).join("");
    if (path) inner.append(svg("path", { d: path, class: `line ${of.mark}${single}`, style: paint(of) }));
    for (const [[cx, cy]] of all.filter((run) => run.length === 1))
      inner.append(svg("circle", { cx, cy, r: 4.5, class: `dot${single}`, style: paint(of) }));
  }
}

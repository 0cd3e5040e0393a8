// Round values for axes, and numbers as text.

/** Round values that divide a range into about `count` parts, whole ones if `whole`. */
function ticks(low, high, count, whole) {
  const rough = (high - low) / Math.max(count, 1);
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 5, 10].map((part) => part * power).find((size) => size >= rough * 0.7);
  if (whole) step = Math.max(1, Math.round(step));
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: Math.max(last - first + 1, 0) }, (_, at) => (first + at) * step);
}

/** The digits after the point that tell ticks apart. */
function digits(values) {
  const step = values.length > 1 ? Math.abs(values[1] - values[0]) : Math.abs(values[0]) || 1;
  return Math.min(Math.max(0, -Math.floor(Math.log10(step) + 1e-9)), 8);
}

/** A number with a fixed count of digits after the point and thin gaps between thousands. */
function fixed(value, after) {
  const [whole, part] = Math.abs(value).toFixed(after).split(".");
  const grouped = whole.length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, "\u202f") : whole;
  const zero = !/[1-9]/.test(whole + (part ?? ""));
  return (value < 0 && !zero ? "\u2212" : "") + grouped + (part ? "." + part : "");
}

/** A number with the five digits that the page has of it. */
function told(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.floor(Math.log10(Math.abs(value)));
  if (size < -4) return value.toExponential(2).replace("-", "\u2212");
  const after = Math.max(0, 4 - size);
  const text = fixed(value, after);
  return after > 0 ? text.replace(/\.?0+$/, "") : text;
}

/** The smallest and the largest of the values that are there. */
function extent(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value === null) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

// Probabilities of rows that a model had no part in, beside what came to pass.

function reliabilitySection() {
  if (!data.reliability) return;
  const { classes, curves, brier } = data.reliability;
  const cards = classes.map((name, k) => {
    const [predicted, observed, counts] = curves[k].map((part) => f8(part));
    const host = el("div", { class: "figure" });
    onWidth(host, () => drawReliability(host, name, predicted, observed, counts));
    return card("Class " + name, host);
  });
  main.append(section("Probabilities",
    `Brier score ${num(brier, 3)}: the mean squared error of the probabilities, 0 at the best. `
    + "A point is a tenth of the rows; on the diagonal a class came to pass as often as was said.",
    el("div", { class: "cards three", id: "reliability" }, ...cards)));
}

function drawReliability(host, name, predicted, observed, counts) {
  const width = host.clientWidth;
  if (!width) return;
  const size = Math.min(width, 300);
  const frame = new Frame(host, size, size, { left: 46, right: 8, top: 10, bottom: 36 }, `Reliability curve of class ${name}`);
  frame.domain(0, 1, 0, 1);
  frame.yAxis([[0, "0"], [0.5, "0.5"], [1, "1"]]);
  frame.xAxis([[0, "0"], [0.5, "0.5"], [1, "1"]], "probability");
  frame.add("text", {
    class: "axis", x: 0, y: 0, "text-anchor": "middle",
    transform: `translate(10 ${(frame.top + frame.bottom) / 2}) rotate(-90)`,
  }, "share of the rows");
  frame.add("line", { class: "diagonal", x1: frame.x(0), y1: frame.y(0), x2: frame.x(1), y2: frame.y(1) });
  const points = Array.from(predicted, (p, i) => [frame.x(p), frame.y(observed[i])]);
  frame.add("path", { class: "curve", d: lineThrough(points) });
  points.forEach(([x, y], i) => frame.add("circle", {
    class: "marker", cx: x, cy: y, r: 4,
    onpointermove: (event) => showTip(event, [`probability ${num(predicted[i], 3)}`, `came to pass ${num(observed[i], 3)}`, plural(counts[i], "row", "rows")]),
    onpointerleave: hideTip,
  }));
}

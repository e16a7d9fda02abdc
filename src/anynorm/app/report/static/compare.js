// Several models side by side: their errors with intervals, and what each costs.

function comparePage() {
  const host = el("div", { class: "figure" });
  const title = data.measure[0].toUpperCase() + data.measure.slice(1);
  const heads = ["Model", title, "95 % interval", "Above the best", "Uses", "Gap", "Seconds"];
  const rows = data.models.map((model) => el("tr", { class: model.name === data.best ? "chosen" : "" },
    el("th", { scope: "row", class: "text" }, model.report ? el("a", { href: model.report }, model.name) : model.name,
      model.name === data.best ? " (lowest)" : "", el("small", { class: "muted" }, model.choice)),
    ...[percent(model.error), `${percent(model.low)} to ${percent(model.high)}`,
      model.name === data.best ? "–" : `${percent(model.more)} ± ${percent(model.more_se)}`,
      model.size, num(model.gap, 2), num(model.seconds, 3)].map((text) => el("td", { class: "number" }, text))));
  const table = el("table", { class: "data" }, el("caption", {}, "Models"),
    el("thead", {}, el("tr", {}, ...heads.map((text, k) => el("th", { scope: "col", class: k ? "number" : "text" }, text)))),
    el("tbody", {}, ...rows));
  main.append(section("The models", "All were judged by the same folds, with everything chosen anew inside each: preparation, settings and features. “Above the best” compares row by row; less than two of its standard errors is no difference to speak of. The lowest of several errors flatters its model a little.",
    card(title + " of rows that no search has seen", host), el("div", { class: "scroll" }, table)));
  onWidth(host, (width) => drawModels(host, width));
}

function drawModels(host, width) {
  const row = 34;
  const { models, baseline } = data;
  const margin = { left: Math.min(150, 0.3 * width), right: 18, top: 12, bottom: 38 };
  const frame = new Frame(host, width, margin.top + margin.bottom + row * models.length, margin, "Errors of the models");
  const most = Math.max(baseline, ...models.map((model) => model.high));
  frame.domain(0, 1.04 * most, 0, 1);
  frame.xAxis(niceTicks(0, most, Math.max(2, Math.floor(width / 110))).map((v) => [v, percent(v)]), data.measure);
  const at = frame.x(baseline);
  frame.add("line", { class: "bound", x1: at, x2: at, y1: frame.top, y2: frame.bottom });
  frame.add("text", { class: "tick", x: at - 5, y: frame.top + 10, "text-anchor": "end" }, "most frequent class");
  models.forEach((model, k) => {
    const y = frame.top + row * (k + 0.5);
    frame.add("text", { class: "tick", x: frame.left - 8, y: y + 4, "text-anchor": "end" }, shortened(model.name, 20));
    frame.add("path", { class: "curve", d: `M${frame.x(model.low)} ${y}H${frame.x(model.high)}` });
    frame.add("circle", {
      class: model.name === data.best ? "marker" : "dot", cx: frame.x(model.error), cy: y, r: 5,
      onpointermove: (event) => showTip(event, [model.name, percent(model.error), model.choice]), onpointerleave: hideTip,
    });
  });
}

pages.compare = comparePage;

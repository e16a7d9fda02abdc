// Accuracy against the number of support vectors.

function budgetPage() {
  const [budgets, support, accuracy, se] = [f8(data.budgets), f8(data.support), f8(data.accuracy), f8(data.se)];
  const host = el("div", { class: "figure" });
  const body = el("tbody", {}, ...Array.from(budgets, (budget, i) => el("tr", { class: i === data.chosen ? "chosen" : "" },
    el("th", { scope: "row", class: "text" }, num(budget) + (i === data.chosen ? " (chosen)" : "")),
    ...[num(support[i]), percent(accuracy[i]), se ? "± " + percent(se[i]) : "–"].map((text) => el("td", { class: "number" }, text)))));
  const table = el("table", { class: "data" }, el("caption", {}, "Budgets"), el("thead", {}, el("tr", {},
    ...["Budget", "Support vectors", "Accuracy", "Standard error"].map((text, k) => el("th", { scope: "col", class: k ? "number" : "text" }, text)))), body);
  main.append(section("Accuracy against the number of support vectors", "A smaller budget leaves fewer support vectors: a smaller and faster model. The band is one standard error.",
    el("div", { class: "cards wide" }, card("Cross-validated accuracy", host), card("Budgets tried", el("div", { class: "scroll" }, table)))));
  const marks = data.reference ? [{ x: data.reference[1], y: data.reference[2], text: data.reference[0] }] : [];
  const chart = new PointChart(host, {
    x: support, y: accuracy, se, marks, height: 300, xTitle: "support vectors", format: percent,
    label: "Accuracy against the number of support vectors",
    tipOf: (i) => [`budget ${num(budgets[i])}`, `${num(support[i])} support vectors`, percent(accuracy[i]) + (se ? " ± " + percent(se[i]) : "")],
  });
  chart.move(data.chosen);
  if (data.supportNames) supportTable();
}

function supportTable() {
  const weights = f8(data.supportWeights);
  const n = data.supportNames.length;
  const problems = weights.length / n;
  const name = (i) => data.supportNames[i];
  const columns = [{ key: "sample", label: "Sample", value: name, head: true, text: true }];
  const labels = data.supportLabels;
  if (labels) columns.push({ key: "class", label: "Class", value: (i) => labels[i], format: (text) => text, text: true });
  for (let k = 0; k < problems; k++) {
    columns.push({
      key: problems === 1 ? "dual_coefficient" : "dual_coefficient_" + data.classes[k],
      label: problems === 1 ? "Dual coefficient" : data.classes[k], value: (i) => weights[k * n + i],
      size: (i) => Math.abs(weights[k * n + i]), format: (x) => num(x, 6),
    });
  }
  const host = el("div", {});
  main.append(section("Support vectors", "The samples that the model keeps.", host));
  new DataTable(host, {
    caption: "Support vectors", csv: "support_vectors.csv", count: n, name, columns, sortBy: labels ? 2 : 1,
    shows: [["all", () => true]], empty: "There are none.",
  }).update();
}

pages.budget = budgetPage;

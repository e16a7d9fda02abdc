// The pages: header and notes of all of them, and the models without a path.

function certificateBadge() {
  const found = data.certificate;
  if (!found) return null;
  const good = found.status === "optimal";
  const text = found.status ? `${good ? "Certified optimal" : "Not certified: " + found.status}` : "Certificate";
  return el("p", { class: "badge " + (found.status ? (good ? "good" : "bad") : "") },
    el("b", {}, text), found.status && found.gap !== null ? ` relative gap ${num(found.gap, 2)}` : null);
}

function header() {
  const top = document.querySelector("header.top");
  top.append(el("div", { class: "actions" }, certificateBadge(), themeButton()));
  if (data.facts.length) {
    top.append(el("dl", { class: "facts" }, ...data.facts.map(([name, value]) => {
      const [, short, detail] = /^([^()]+) \((.+)\)$/s.exec(value) || [null, value, null]; // "3% (how)"
      return el("div", {}, el("dt", {}, name), el("dd", {}, short, detail ? el("small", {}, detail) : null));
    })));
  }
}

function closing() {
  const parts = [];
  if (data.certificate) {
    const found = data.certificate;
    parts.push(card("Certificate", el("p", { id: "certificate" }, found.text),
      found.status ? el("p", { class: "muted" }, "The optimum lies between the dual and the primal value. Both are computed apart from the solver: the primal from the weights alone, the dual from the dual variables alone.") : null));
  }
  if (data.notes.length) parts.push(card("Notes", el("ul", { class: "notes" }, ...data.notes.map((note) => el("li", {}, note)))));
  if (parts.length) main.append(section("About this model", null, el("div", { class: "cards two" }, ...parts)));
}

// Out-of-fold results that do not change along the page: the classes as tabs.
class FixedEvaluation {
  constructor(host, packed) {
    const names = packed.classes;
    this.codes = i4(packed.codes);
    this.n = this.codes.length;
    this.names = names;
    const scores = f4(packed.scores);
    const training = f4(packed.training);
    const several = scores.length > this.n;
    const part = (values, k) => (values ? Float64Array.from(values.subarray(k * this.n, (k + 1) * this.n)) : null);
    const panelId = newId("held");
    const inner = el("div", { id: panelId });
    this.evaluation = new Evaluation(inner, packed.samples, training !== null);
    const show = (k) => this.evaluation.update({
      target: Uint8Array.from(this.codes, (code) => (several ? code === k : code === 1)),
      name: several ? names[k] : names[1], other: several ? "rest" : names[0],
      oof: part(scores, k), training: part(training, k),
    });
    if (several) {
      inner.setAttribute("role", "tabpanel");
      const bar = tabs("Classes, held-out samples", names, panelId, show);
      const together = el("div", {});
      host.append(card("All classes together", together), bar.list, inner);
      bar.select(0);
      showTogether(together, names, judgeTogether(this.codes, names.map((_, k) => part(scores, k))), packed.samples);
    } else {
      host.append(inner);
      show(0);
    }
  }
}

function heldOut() {
  if (!data.evaluation) return;
  const host = el("div", {});
  main.append(section("Held-out samples", "Each sample is judged by a model that did not see it.", host));
  new FixedEvaluation(host, data.evaluation);
}

// A table of weights by feature, a column per class.
function weightTable(host, problems, names, weight, csv) {
  const label = (k) => (problems === 1 ? "Weight" : names[k]);
  const largest = (j) => {
    let most = 0;
    for (let k = 0; k < problems; k++) most = Math.max(most, Math.abs(weight(k, j)));
    return most;
  };
  const columns = [{ key: "feature", label: "Feature", value: featureName, head: true, text: true }];
  for (let k = 0; k < problems; k++) {
    columns.push({
      key: problems === 1 ? "weight" : "weight_" + names[k], label: label(k), value: (j) => weight(k, j),
      size: (j) => Math.abs(weight(k, j)), format: (x) => num(x, 6),
    });
    if (scales) {
      columns.push({
        key: columns[columns.length - 1].key + "_original_units", label: label(k) + " per original unit",
        value: (j) => weight(k, j) / scales[j], size: (j) => Math.abs(weight(k, j) / scales[j]), format: (x) => num(x, 6),
      });
    }
  }
  if (frequency) columns.push({ key: "selection_frequency", label: "Share of folds", value: (j) => frequency[j], format: percent });
  return new DataTable(host, {
    caption: "Features", csv, count: data.p, name: featureName, columns, sortBy: 1,
    shows: [["in use", (j) => largest(j) !== 0], ["all " + data.p, () => true]], empty: "No feature is in use.",
  });
}

function genericPage() {
  heldOut();
  if (!data.coefs) return;
  const coefs = f8(data.coefs);
  const host = el("div", {});
  main.append(section("Features", null, host));
  weightTable(host, coefs.length / data.p, data.classes, (k, j) => coefs[k * data.p + j], "features.csv").update();
}

function walkPage() {
  const objectives = f8(data.objectives);
  const counts = i4(data.counts);
  const [errors, se] = [f8(data.error), f8(data.se)];
  const rounds = objectives.length;
  const number = Array.from({ length: rounds }, (_, r) => r + 1);
  const [indptr, indices, values] = [i4(data.indptr), i4(data.indices), f4(data.values)];
  const problems = (indptr.length - 1) / rounds;
  const weights = Array.from({ length: rounds * problems }, (_, row) => {
    const found = new Map();
    for (let e = indptr[row]; e < indptr[row + 1]; e++) found.set(indices[e], values[e]);
    return found;
  });
  let round = data.chosen;
  const out = el("p", { class: "told", id: "round-text" });
  const slider = el("input", {
    type: "range", id: "slider", min: 1, max: rounds, step: 1, "aria-label": "Round", oninput: () => pick(Number(slider.value) - 1),
  });
  const hosts = [el("div", { class: "figure" }), el("div", { class: "figure" }), errors ? el("div", { class: "figure" }) : null];
  main.append(section("Round by round", "The first round is the 2-norm SVM. Each further one weights the features by the round before, on the way to the 1-norm SVM.",
    el("div", { class: "cards " + (errors ? "three" : "two") }, card("1-norm objective", hosts[0]), card("Features in use", hosts[1]),
      errors ? card("Cross-validated " + data.measure, hosts[2]) : null),
    el("label", { class: "roundslider" }, el("span", {}, "Round"), slider), out));
  const tipOf = (r) => [`round ${r + 1}`, `objective ${num(objectives[r], 6)}`, plural(counts[r], "feature")];
  const common = { x: number, xTitle: "round", whole: true, tipOf, onPick: (r) => pick(r) };
  const charts = [
    new PointChart(hosts[0], { ...common, y: objectives, bound: data.bound, label: "1-norm objective by round" }),
    new PointChart(hosts[1], { ...common, y: counts, label: "Features in use by round" }),
  ];
  if (errors) {
    charts.push(new PointChart(hosts[2], {
      ...common, y: errors, se, format: percent, label: "Cross-validated error by round",
      tipOf: (r) => [`round ${r + 1}`, percent(errors[r]) + (se ? " ± " + percent(se[r]) : "")],
    }));
  }
  heldOut();
  const host = el("div", {});
  const lead = el("p", { class: "lead" });
  main.append(section("Features", null, lead, host));
  const table = weightTable(host, problems, data.classes, (k, j) => weights[round * problems + k].get(j) || 0, "features.csv");
  function pick(r) {
    round = r;
    slider.value = String(r + 1);
    const chosen = r === data.chosen ? " (the model)" : "";
    const told = `Round ${r + 1} of ${rounds}${chosen}: objective ${num(objectives[r], 6)}, ${plural(counts[r], "feature")} in use`
      + (errors ? `, cross-validated ${data.measure} ${percent(errors[r])}` : "") + ".";
    out.textContent = told;
    slider.setAttribute("aria-valuetext", told);
    lead.textContent = `The weights after round ${r + 1}${chosen}.`;
    charts.forEach((chart) => chart.move(r));
    table.update();
    announce(told);
  }
  pick(round);
}

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
  heldOut();
  if (data.supportNames) supportTable();
}

function supportTable() {
  const weights = f8(data.supportWeights);
  const n = data.supportNames.length;
  const problems = weights.length / n;
  const name = (i) => data.supportNames[i];
  const columns = [{ key: "sample", label: "Sample", value: name, head: true, text: true }];
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
    caption: "Support vectors", csv: "support_vectors.csv", count: n, name, columns, sortBy: 1,
    shows: [["all", () => true]], empty: "There are none.",
  }).update();
}

main.replaceChildren();
header();
({ path: () => new Explorer(main), walk: walkPage, budget: budgetPage, generic: genericPage })[data.kind]();
closing();
root.dataset.ready = "true";

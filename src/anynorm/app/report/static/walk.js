// A re-weighted model, round by round.

function walkPage() {
  const objectives = f8(data.objectives);
  const counts = i4(data.counts);
  const [errors, se] = [f8(data.error), f8(data.se)];
  const rounds = objectives.length;
  const number = Array.from({ length: rounds }, (_, r) => r + 1);
  const [indptr, indices, values] = [i4(data.indptr), i4(data.indices), f8(data.values)];
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

pages.walk = walkPage;

// The cross-validated errors of a grid of settings: C across, what else changes down.

function gridSection() {
  if (!data.grid) return;
  const [columnName, columns] = [data.grid.columns[0], f8(data.grid.columns[1])];
  const [rowName, rows] = [data.grid.rows[0], f8(data.grid.rows[1])];
  const [error, se] = [f8(data.grid.error), f8(data.grid.se)];
  const known = error.filter(Number.isFinite);
  const [least, most] = [Math.min(...known), Math.max(...known)];
  const share = (value) => (most > least ? (most - value) / (most - least) : 1);
  const cell = (i, j) => {
    const k = i * columns.length + j;
    const chosen = i === data.grid.chosen[0] && j === data.grid.chosen[1];
    const node = el("td", { class: "cell right" + (chosen ? " chosen" : "") },
      el("b", {}, percent(error[k])), el("i", {}, Number.isFinite(se[k]) ? "± " + percent(se[k]) : ""),
      chosen ? el("i", {}, "chosen") : null);
    node.style.setProperty("--share", Number.isFinite(error[k]) ? (2.2 * share(error[k])).toFixed(3) : "0");
    return node;
  };
  const corner = rowName ? `${rowName} ↓  ${columnName} →` : columnName;
  const table = el("table", { class: "matrix many grid" }, el("caption", {}, `Cross-validated ${data.measure}`),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, corner), ...Array.from(columns, (value) => el("th", { scope: "col" }, num(value, 3))))),
    el("tbody", {}, ...Array.from(rows, (value, i) => el("tr", {}, el("th", { scope: "row" }, rowName ? num(value, 3) : ""),
      ...Array.from(columns, (_, j) => cell(i, j))))));
  main.append(section("What was compared", "Every setting in the folds that chose the model, with the standard error over the folds; darker is better. The lowest of many is too good: the error of the model is that of the held-out samples.",
    el("div", { class: "scroll" }, table)));
}

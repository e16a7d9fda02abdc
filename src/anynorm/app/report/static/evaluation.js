// Held-out rows: confusion matrix, ROC and precision-recall curves, margins; training values greyed.

class Evaluation {
  // words: what the values are called, e.g. "held out" or "folds that chose s"
  constructor(host, samples, hasTraining, words) {
    this.samples = samples;
    this.words = words;
    this.threshold = 0;
    this.chosenCell = null;
    this.confusion = el("div", { class: "confusion" });
    this.summary = el("p", { class: "muted" });
    this.members = el("div", { class: "members", "aria-live": "polite" });
    this.rocHost = el("div", { class: "figure" });
    this.rocText = el("p", { class: "muted" });
    this.recallHost = el("div", { class: "figure" });
    this.recallText = el("p", { class: "muted" });
    this.marginHost = el("div", { class: "figure" });
    this.marginText = el("p", { class: "muted" });
    host.replaceChildren(
      el("div", { class: "cards four" },
        card("Confusion matrix", this.confusion, this.#thresholdField(), this.summary, this.members),
        card("ROC curve", this.rocHost, this.rocText),
        card("Precision and recall", this.recallHost, this.recallText),
        card("Margins", this.marginHost, this.marginText)),
      hasTraining ? el("p", { class: "muted legend-line" }, el("span", { class: "swatch grey" }),
        " Grey: the same by the model that was fitted to these very rows. It flatters: with more features than samples it is perfect, and says nothing about new ones.") : null,
    );
    onWidth(this.rocHost, () => this.#drawRoc());
    onWidth(this.recallHost, () => this.#drawRecall());
    onWidth(this.marginHost, () => this.#drawMargins());
  }

  #thresholdField() {
    this.slider = el("input", {
      type: "range", step: "any", class: "threshold", "aria-label": "Threshold of the decision value",
      oninput: () => { this.threshold = Number(this.slider.value); this.#judge(); },
    });
    this.reset = el("button", {
      type: "button", class: "button", onclick: () => { this.threshold = 0; this.slider.value = "0"; this.#judge(); },
    }, "Threshold 0");
    this.slide = el("div", { class: "slide" }, this.slider, this.reset);
    return this.slide;
  }

  // target, held-out and training values (either may be null), class names
  update(state) {
    this.state = state;
    const values = (state.oof || state.training || []).filter(Number.isFinite);
    const [low, high] = values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [0, 0]);
    this.slide.hidden = !state.oof || !(high > low);
    [this.slider.min, this.slider.max] = [String(low), String(high)];
    this.slider.value = String(this.threshold);
    this.#judge();
    this.#drawMargins();
  }

  #judge() {
    const { target, oof, training } = this.state;
    this.judged = oof ? judge(target, oof, this.threshold) : null;
    this.trained = training ? judge(target, training, this.threshold) : null;
    this.#showConfusion();
    this.#drawRoc();
    this.#drawRecall();
  }

  wrong() {
    return this.judged ? this.judged.cells[0][1].concat(this.judged.cells[1][0]) : [];
  }

  #showConfusion() {
    const names = [this.state.other, this.state.name];
    const { judged, trained } = this;
    const table = el("table", { class: "matrix" },
      el("caption", {}, `${judged ? this.words[0].toUpperCase() + this.words.slice(1) : "Training rows"}, threshold ${num(this.threshold, 3)}`),
      el("thead", {}, el("tr", {}, el("td", {}),
        ...names.map((name) => el("th", { scope: "col" }, el("small", {}, "predicted "), name)))));
    const body = el("tbody", {});
    [0, 1].forEach((truth) => {
      const row = el("tr", {}, el("th", { scope: "row" }, el("small", {}, "true "), names[truth]));
      const total = judged ? judged.cells[truth][0].length + judged.cells[truth][1].length : 0;
      [0, 1].forEach((guess) => row.append(this.#cell(truth, guess, names, total)));
      body.append(row);
    });
    table.append(body);
    this.confusion.replaceChildren(table);
    if (judged) {
      const sensitivity = judged.cells[1][1].length / judged.positives;
      const specificity = judged.cells[0][0].length / judged.negatives;
      const missing = this.state.target.length - judged.n;
      this.summary.textContent = `${judged.errors} of ${judged.n} wrong (${percent(judged.errors / judged.n)}) · `
        + `sensitivity ${percent(sensitivity)} · specificity ${percent(specificity)} · precision ${percent(precisionOf(judged))}`
        + (missing ? ` · ${plural(missing, "row was", "rows were")} never held out` : "");
    } else {
      this.summary.textContent = trained
        ? `${trained.errors} of ${trained.n} training rows wrong. There are no held-out values in this file.` : "";
    }
    this.#showMembers();
  }

  #cell(truth, guess, names, total) {
    const count = this.judged ? this.judged.cells[truth][guess].length : null;
    const grey = this.trained ? this.trained.cells[truth][guess].length : null;
    const pressed = this.chosenCell === truth * 2 + guess;
    const share = total ? count / total : 0;
    const button = el("button", {
      type: "button", class: "cell " + (truth === guess ? "right" : "wrong"), "aria-pressed": String(pressed),
      "aria-label": `${count === null ? grey : count} samples of true class ${names[truth]} predicted ${names[guess]}: list them`,
      onclick: () => {
        this.chosenCell = pressed ? null : truth * 2 + guess;
        this.#showConfusion();
        this.confusion.querySelectorAll("button")[truth * 2 + guess].focus();
      },
    });
    button.style.setProperty("--share", share.toFixed(3));
    if (count !== null) button.append(el("b", {}, String(count)));
    if (grey !== null) button.append(el("i", { title: "training rows" }, count === null ? String(grey) : "train " + grey));
    return el("td", {}, button);
  }

  #showMembers() {
    if (!this.judged) {
      this.members.replaceChildren();
      return;
    }
    const { cells } = this.judged;
    const names = [this.state.other, this.state.name];
    let title = "Wrong, " + this.words;
    let rows = this.wrong();
    if (this.chosenCell !== null) {
      const [truth, guess] = [this.chosenCell >> 1, this.chosenCell & 1];
      rows = cells[truth][guess];
      title = `True ${names[truth]}, predicted ${names[guess]}`;
    }
    const most = 60;
    const chips = rows.slice(0, most).map((i) => el("li", {
      onpointermove: (event) => showTip(event, this.#about(i)), onpointerleave: hideTip,
    }, nameOf(this.samples, i)));
    if (rows.length > most) chips.push(el("li", { class: "muted" }, `and ${rows.length - most} more`));
    this.members.replaceChildren(el("h4", {}, `${title}: ${rows.length}`), el("ul", { class: "chips" }, ...chips));
  }

  #about(i) {
    const { target, oof, training, name, other } = this.state;
    const lines = [nameOf(this.samples, i), "class " + (target[i] ? name : other)];
    if (oof) lines.push("held-out value " + num(oof[i]) + (Number.isNaN(oof[i]) ? " (never held out)" : ""));
    if (training) lines.push("training value " + num(training[i]));
    return lines;
  }

  #drawRoc() {
    const width = this.rocHost.clientWidth;
    if (!this.state || !width) return;
    const size = Math.min(width, 300);
    const { judged, trained } = this;
    const said = judged ? `ROC curve, area ${num(judged.auc, 3)}, ${this.words}` : "ROC curve of the training rows";
    const frame = new Frame(this.rocHost, size, size, { left: 46, right: 8, top: 10, bottom: 36 }, said);
    frame.domain(0, 1, 0, 1);
    frame.yAxis([[0, "0"], [0.5, "0.5"], [1, "1"]]);
    frame.xAxis([[0, "0"], [0.5, "0.5"], [1, "1"]], "false positive rate");
    frame.add("text", {
      class: "axis", x: 0, y: 0, "text-anchor": "middle",
      transform: `translate(10 ${(frame.top + frame.bottom) / 2}) rotate(-90)`,
    }, "true positive rate");
    frame.add("line", { class: "diagonal", x1: frame.x(0), y1: frame.y(0), x2: frame.x(1), y2: frame.y(1) });
    const draw = (points, kind) => frame.add("path", {
      class: kind, d: lineThrough(points.map(([x, y]) => [frame.x(x), frame.y(y)])),
    });
    if (trained) draw(trained.points, "curve grey");
    if (judged) {
      draw(judged.points, "curve");
      const at = [judged.cells[0][1].length / (judged.negatives || 1), judged.cells[1][1].length / (judged.positives || 1)];
      frame.add("circle", { class: "marker", cx: frame.x(at[0]), cy: frame.y(at[1]), r: 5 });
      frame.svg.addEventListener("pointermove", (event) => this.#rocTip(event, frame));
      frame.svg.addEventListener("pointerleave", hideTip);
    }
    const parts = [];
    if (judged) parts.push("AUC " + num(judged.auc, 4) + ", " + this.words);
    if (trained) parts.push((judged ? "training " : "AUC of the training rows ") + num(trained.auc, 4));
    this.rocText.textContent = parts.join(" · ");
  }

  #drawRecall() {
    const width = this.recallHost.clientWidth;
    if (!this.state || !width) return;
    const size = Math.min(width, 300);
    const { judged, trained } = this;
    const frame = new Frame(this.recallHost, size, size, { left: 46, right: 8, top: 10, bottom: 36 }, "Precision against recall");
    frame.domain(0, 1, 0, 1);
    frame.yAxis([[0, "0"], [0.5, "0.5"], [1, "1"]]);
    frame.xAxis([[0, "0"], [0.5, "0.5"], [1, "1"]], "recall");
    frame.add("text", {
      class: "axis", x: 0, y: 0, "text-anchor": "middle",
      transform: `translate(10 ${(frame.top + frame.bottom) / 2}) rotate(-90)`,
    }, "precision");
    const shown = judged || trained;
    if (!shown) return;
    const share = shown.positives / (shown.n || 1);
    frame.add("line", { class: "diagonal", x1: frame.x(0), y1: frame.y(share), x2: frame.x(1), y2: frame.y(share) });
    for (const [found, kind] of [[trained, "curve grey"], [judged, "curve"]]) {
      if (found) frame.add("path", { class: kind, d: lineThrough(found.recalls.map(([x, y]) => [frame.x(x), frame.y(y)])) });
    }
    if (judged && Number.isFinite(precisionOf(judged))) {
      const recall = judged.cells[1][1].length / (judged.positives || 1);
      frame.add("circle", { class: "marker", cx: frame.x(recall), cy: frame.y(precisionOf(judged)), r: 5 });
    }
    this.recallText.textContent = `Average precision ${num(shown.precision, 4)}; guessing has ${num(share, 3)}`;
  }

  #rocTip(event, frame) {
    const box = frame.svg.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let [best, near] = [null, 24 ** 2];
    for (const point of this.judged.points) {
      const distance = (frame.x(point[0]) - x) ** 2 + (frame.y(point[1]) - y) ** 2;
      if (point[2] !== null && distance < near) [best, near] = [point, distance];
    }
    if (!best) return hideTip();
    return showTip(event, ["threshold " + num(this.state.oof[best[2]]), `true positives ${percent(best[1])}`,
      `false positives ${percent(best[0])}`, "at " + nameOf(this.samples, best[2])]);
  }

  #drawMargins() {
    const width = this.marginHost.clientWidth;
    if (!this.state || !width) return;
    const { target, oof, training } = this.state;
    const margins = (values) => values && Float64Array.from(values, (v, i) => (target[i] ? v : -v));
    const [held, fitted] = [margins(oof), margins(training)];
    const all = [...(held || []), ...(fitted || [])].filter(Number.isFinite);
    const limits = all.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [-0.2, 1.2]);
    const bins = 24;
    const step = (limits[1] - limits[0]) / bins || 1;
    const frame = new Frame(this.marginHost, width, 260, { left: 34, right: 10, top: 10, bottom: 62 },
      "Histogram of margins; margins below 0 are errors");
    const binned = (values, test) => {
      const found = Array.from({ length: bins }, () => []);
      (values || []).forEach((v, i) => {
        if (Number.isFinite(v) && test(i)) found[Math.min(bins - 1, Math.floor((v - limits[0]) / step))].push(i);
      });
      return found;
    };
    const own = binned(held, (i) => target[i]);
    const rest = binned(held, (i) => !target[i]);
    const grey = binned(fitted, () => true);
    // training rows pile up at margin 1: where there are others, they may leave the frame
    const tallest = Math.max(...own.map((bin, k) => bin.length + rest[k].length));
    const high = tallest ? 1.15 * tallest : Math.max(1, ...grey.map((bin) => bin.length));
    frame.domain(limits[0], limits[1], 0, high);
    frame.yAxis(niceTicks(0, high, 4).filter(Number.isInteger).map((v) => [v, String(v)]));
    for (const [at, kind] of [[0, "zero"], [1, "one"]]) {
      frame.add("line", { class: "rule " + kind, x1: frame.x(at), x2: frame.x(at), y1: frame.top, y2: frame.bottom });
    }
    this.#bars(frame, limits[0], step, { own, rest, grey });
    frame.xAxis(numberTicks(limits[0], limits[1], 5));
    frame.add("text", { class: "axis", x: (frame.left + frame.right) / 2, y: 256, "text-anchor": "middle" },
      "margin");
    this.#dots(frame, held || fitted, held === null);
    const inside = held ? [...held].filter((v) => v < 1 && v >= 0).length : 0;
    this.marginText.replaceChildren(...(held ? [
      el("span", { class: "swatch own" }), " " + this.state.name + " ", el("span", { class: "swatch rest" }),
      " " + this.state.other + ` · `, term("margin"), `: ${inside} right but between 0 and 1`,
    ] : ["Training rows only: there are no held-out values in this file."]));
  }

  #bars(frame, low, step, { own, rest, grey }) {
    const most = frame.yDomain[1];
    const bar = (k, from, to, kind) => (to > from ? frame.add("rect", {
      class: kind, x: frame.x(low + k * step) + 0.5, width: Math.max(1, frame.x(low + step) - frame.left - 1),
      y: frame.y(Math.min(to, most)), height: frame.y(from) - frame.y(Math.min(to, most)),
    }) : null);
    grey.forEach((bin, k) => bar(k, 0, bin.length, "bar grey"));
    own.forEach((bin, k) => {
      const parts = [bar(k, 0, bin.length, "bar own"), bar(k, bin.length, bin.length + rest[k].length, "bar rest")];
      const rows = bin.concat(rest[k]);
      for (const part of parts.filter(Boolean)) {
        part.addEventListener("pointermove", (event) => showTip(event, [
          plural(rows.length, "sample"), `margin ${num(low + k * step, 3)} to ${num(low + (k + 1) * step, 3)}`,
          listed(rows.map((i) => nameOf(this.samples, i)), 12),
        ]));
        part.addEventListener("pointerleave", hideTip);
      }
    });
  }

  // A dot per sample under the bars, where they are few enough to tell apart.
  #dots(frame, margins, greyed) {
    if (!margins || margins.length > 400) return;
    margins.forEach((margin, i) => {
      if (!Number.isFinite(margin)) return;
      const kind = greyed ? "grey" : this.state.target[i] ? "own" : "rest";
      const y = frame.bottom + (this.state.target[i] ? 24 : 34);
      frame.add("circle", {
        class: "sample " + kind, cx: frame.x(margin), cy: y, r: 3.2,
        onpointermove: (event) => showTip(event, this.#about(i)), onpointerleave: hideTip,
      });
    });
  }
}

function showTogether(host, names, judged, samples, words) {
  const table = el("table", { class: "matrix many" },
    el("caption", {}, "The class of highest value, " + words),
    el("thead", {}, el("tr", {}, el("td", {}),
      ...names.map((name) => el("th", { scope: "col" }, el("small", {}, "predicted "), name)))),
    el("tbody", {}, ...names.map((name, k) => el("tr", {}, el("th", { scope: "row" }, el("small", {}, "true "), name),
      ...judged.counts[k].map((count, guess) => {
        const total = judged.counts[k].reduce((sum, c) => sum + c, 0);
        const cell = el("td", { class: "cell " + (guess === k ? "right" : "wrong") }, el("b", {}, String(count)));
        cell.style.setProperty("--share", (total ? count / total : 0).toFixed(3));
        return cell;
      })))));
  const { wrong, n } = judged;
  const chips = wrong.slice(0, 60).map(([i, truth, guess]) =>
    el("li", {}, `${nameOf(samples, i)} (${names[truth]} as ${names[guess]})`));
  if (wrong.length > 60) chips.push(el("li", { class: "muted" }, `and ${wrong.length - 60} more`));
  host.replaceChildren(el("div", { class: "scroll" }, table),
    el("p", { class: "muted" }, `${wrong.length} of ${n} wrong (${percent(wrong.length / n)})`),
    el("ul", { class: "chips" }, ...chips));
}

// Counts, rates and curves of decision values; NaN rows are left out.
function judge(target, scores, threshold = 0) {
  const rows = [];
  const cells = [[[], []], [[], []]];
  for (let i = 0; i < scores.length; i++) {
    if (Number.isNaN(scores[i])) continue;
    rows.push(i);
    cells[target[i]][scores[i] > threshold ? 1 : 0].push(i);
  }
  const positives = cells[1][0].length + cells[1][1].length;
  const negatives = cells[0][0].length + cells[0][1].length;
  const wrong = cells[0][1].length + cells[1][0].length;
  return { rows, cells, positives, negatives, errors: wrong, n: rows.length, ...roc(target, scores, rows, positives, negatives) };
}

// All classes of a classifier at once: the class of highest decision value.
function judgeTogether(codes, columns) {
  const K = columns.length;
  const counts = Array.from({ length: K }, () => new Array(K).fill(0));
  const wrong = [];
  let n = 0;
  for (let i = 0; i < codes.length; i++) {
    if (codes[i] < 0 || columns.some((column) => Number.isNaN(column[i]))) continue;
    let best = 0;
    for (let k = 1; k < K; k++) if (columns[k][i] > columns[best][i]) best = k;
    counts[codes[i]][best] += 1;
    n += 1;
    if (best !== codes[i]) wrong.push([i, codes[i], best]);
  }
  return { counts, wrong, errors: wrong.length, n };
}

// Of the rows that are said to be of the class, the share that is.
function precisionOf(judged) {
  const said = judged.cells[0][1].length + judged.cells[1][1].length;
  return said ? judged.cells[1][1].length / said : NaN;
}

function roc(target, scores, rows, positives, negatives) {
  const order = rows.slice().sort((a, b) => scores[b] - scores[a]);
  const points = [[0, 0, null]];
  let hits = 0;
  let alarms = 0;
  let area = 0;
  const recalls = [];
  let precision = 0;
  for (let i = 0; i < order.length;) {
    const score = scores[order[i]];
    const [hitsBefore, alarmsBefore] = [hits, alarms];
    while (i < order.length && scores[order[i]] === score) {
      if (target[order[i]]) hits += 1;
      else alarms += 1;
      i += 1;
    }
    area += (alarms - alarmsBefore) * (hits + hitsBefore) / 2;
    points.push([alarms / (negatives || 1), hits / (positives || 1), order[i - 1]]);
    recalls.push([hits / (positives || 1), hits / (hits + alarms)]);
    precision += (hits - hitsBefore) / (positives || 1) * hits / (hits + alarms);
  }
  return { points, recalls, precision: positives ? precision : NaN, auc: positives && negatives ? area / (positives * negatives) : NaN };
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
    this.evaluation = new Evaluation(inner, packed.samples, training !== null, "held out");
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
      showTogether(together, names, judgeTogether(this.codes, names.map((_, k) => part(scores, k))), packed.samples, "held out");
    } else {
      host.append(inner);
      show(0);
    }
  }
}

function heldOut() {
  if (!data.evaluation) return;
  const host = el("div", {});
  main.append(section("Held-out samples", `Each sample is judged by a model, and a search for it, that knew nothing of it: ${data.evaluation.judgedBy}. The error at the top is that of these.`, host));
  new FixedEvaluation(host, data.evaluation);
}

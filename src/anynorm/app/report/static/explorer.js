// The path explorer: one place s, and everything that follows from it.

const RULES = {
  steady: "The lowest cross-validated error on average over a factor of 4 in s.",
  best: "The lowest cross-validated error.",
  one_se: "The smallest s within one standard error of the best.",
  fewest: "The fewest features at nearly the lowest error.",
};
const IN_COMMON = {
  s: "all have the same s.", C: "all have the same C, and each its own s.", nothing: "each has its own s and C.",
};
const CHOSE = "folds that chose s";
const COLOURS = 8;
const THUMB = 18;
const MOST_PRINTED = 50;

// The prices C of which a place is the solution, in words, and one of them.
function pricesText([low, high]) {
  if (low === high) return num(low);
  if (high === Infinity) return low === 0 ? "any" : "from " + num(low) + " up";
  return low === 0 ? "up to " + num(high) : num(low) + " to " + num(high);
}

function onePrice([low, high]) {
  if (high === Infinity) return low === 0 ? 1 : 2 * low;
  return low === 0 ? high / 2 : Math.sqrt(low * high);
}

// 2nd, 3rd, 4th, 11th, 22nd.
function ordinal(n) {
  const teens = n % 100 > 10 && n % 100 < 14;
  return n + (teens ? "th" : { 1: "st", 2: "nd", 3: "rd" }[n % 10] || "th");
}

class Explorer {
  constructor(host) {
    this.views = data.classes.map((view) => new View(view));
    this.end = Math.max(...this.views.map((view) => Math.max(view.path.end, ...view.picks.map(([, s]) => s))));
    this.index = 0;
    this.#goTo(this.views[0].chosen);
    this.samples = data.samples || null;
    // several classes: one curve of the whole classifier, or one for each class
    const curves = new Set(data.classes.map((view) => JSON.stringify(view.cv)));
    this.whole = this.views.length > 1 && curves.size === 1 && this.views[0].cv !== null;
    this.codes = this.views.length > 2 && this.views.every((view) => view.oof) ? this.#labels() : null;
    this.hovered = null;
    this.pending = false;
    this.near = this.#interesting();
    this.limit = this.near;
    this.even = this.#crowded(this.views[0]);
    const panelId = newId("class");
    this.panel = el("div", { id: panelId });
    this.printed = el("div", { class: "printed" });
    if (this.views.length > 1) window.addEventListener("beforeprint", () => this.#printOthers());
    if (this.views.length > 1) {
      this.panel.setAttribute("role", "tabpanel");
      const bar = tabs("Classes", this.views.map((view) => view.name), panelId, (k) => this.choose(k));
      host.append(bar.list, this.panel, this.printed);
      this.#build();
      bar.select(0);
    } else {
      host.append(this.panel);
      this.#build();
      this.choose(0);
    }
  }

  // The rows' classes, where the views are all the classes there are.
  #labels() {
    return Array.from(this.views[0].target, (_, i) => this.views.findIndex((view) => view.target[i]));
  }

  // The class of highest out-of-fold value against the true one, all classes together.
  #judgedTogether(places) {
    return judgeTogether(this.codes, this.views.map((view, k) => view.oof.at(places[k])));
  }

  get view() {
    return this.views[this.index];
  }

  // The place on the path of the class that is shown.
  get s() {
    return this.places[this.index];
  }

  // Every class where a rule has it; without one, where each opens.
  #goTo(rule) {
    const common = data.inCommon === "s" ? this.view : null;
    this.places = this.views.map((view) => Math.min((common || view).start(rule), this.end));
    const ranges = this.views.map((view, k) => view.path.at(this.places[k]).prices);
    const shared = [Math.max(...ranges.map(([low]) => low)), Math.min(...ranges.map(([, high]) => high))];
    this.price = data.prices[rule] ?? (data.inCommon === "C" && shared[0] <= shared[1] ? onePrice(shared) : null);
  }

  // This class at s, and the others where they have the same s or C, or where they are.
  #follow(s, price) {
    const here = Math.max(0, Math.min(s, this.end));
    this.price = data.inCommon === "C" ? price ?? onePrice(this.view.path.at(here).prices) : null;
    this.places = this.places.map((place, k) => {
      if (k === this.index || data.inCommon === "s") return here;
      return data.inCommon === "C" ? this.views[k].path.ofPrice(this.price) : place;
    });
  }

  // How far to show the path at first: paths may run on for long after the last pick, or (where
  // there are none) after most of the joints.
  #interesting() {
    const far = Math.max(...this.views.map(({ picks, path }) => (picks.length
      ? 2.5 * Math.max(...picks.map(([, s]) => s)) : path.s[Math.floor(0.8 * (path.s.length - 1))])));
    return far > 0 && far < 0.4 * this.end ? far : this.end;
  }

  // Whether what matters is squeezed into a small part of the axis.
  #crowded(view) {
    if (view.picks.length) return view.start() < 0.08 * this.limit;
    const s = view.path.s.filter((place) => place <= this.limit);
    return s.length > 8 && s[Math.floor(0.6 * s.length)] < 0.2 * this.limit;
  }

  #build() {
    const described = this.views.length > 1 ? " A tab per class, each against the rest; " + IN_COMMON[data.inCommon] : "";
    this.panel.append(
      section("Along the path", "Drag in the figure or the slider, or type. Between joints every weight moves on a straight line: what is shown is the exact solution for that s." + described,
        this.#controls(),
        el("div", { class: "stage" }, this.#figures(), this.#readout())),
      this.#rules(), this.#held(), this.#features());
  }

  #controls() {
    const field = (label, key, attributes, of) => {
      const input = el("input", {
        id: "input-" + key, autocomplete: "off", ...attributes,
        onchange: () => this.#typed(input, of),
      });
      this.inputs[key] = input;
      return el("label", { class: "field" }, el("span", {}, label), input);
    };
    this.inputs = {};
    this.problem = el("p", { class: "problem", role: "alert" });
    const axis = el("select", { id: "axis", onchange: () => { this.even = axis.value === "even"; this.#drawFigures(); } },
      el("option", { value: "linear" }, "linear in s"), el("option", { value: "even" }, "joints evenly spaced"));
    axis.value = this.even ? "even" : "linear";
    const place = { type: "text", inputmode: "decimal", size: 9 };
    return el("div", { class: "tools" },
      field(term("s", "s, the 1-norm"), "s", place, (s) => (s >= 0 ? s : null)),
      field(term("C"), "C", place, (C) => (C > 0 ? this.view.path.ofPrice(C) : null)),
      field("Features", "count", { type: "number", min: 0, step: 1, size: 6 },
        (count) => (Number.isInteger(count) && count >= 0 ? this.view.path.ofCount(count) : null)),
      el("label", { class: "field" }, el("span", {}, "Axis"), axis), this.#ranges(), this.problem);
  }

  #ranges() {
    if (this.near === this.end) return null;
    this.range = el("select", { id: "range", onchange: () => this.#show(this.range.value === "near" ? this.near : this.end) },
      el("option", { value: "near" }, "to s = " + num(this.near, 3)),
      el("option", { value: "whole" }, "whole path, to s = " + num(this.end, 3)));
    return el("label", { class: "field" }, el("span", {}, "Range"), this.range);
  }

  // Show the path as far as a limit.
  #show(limit) {
    this.limit = limit;
    this.range.value = limit === this.end ? "whole" : "near";
    if (this.s > limit) this.set(limit);
    this.#drawFigures();
    this.slider.value = String(this.toAxis(this.s));
  }

  #typed(input, of) {
    const value = parseNumber(input.value);
    const s = Number.isNaN(value) ? null : of(value);
    input.setAttribute("aria-invalid", String(s === null));
    if (s === null) {
      this.problem.textContent = {
        s: "s must be a number of at least 0.", C: "C must be a number above 0.",
        count: "No point of the path uses so few features: give a whole number of at least "
          + this.#fewest() + ".",
      }[input.id.slice(6)];
      return;
    }
    this.problem.textContent = "";
    const kept = input === this.inputs.C ? input.value : null;
    this.set(s, kept !== null ? value : undefined);
    if (kept !== null) this.inputs.C.value = kept;
  }

  #fewest() {
    const { indptr, s } = this.view.path;
    return s.reduce((least, _, k) => Math.min(least, indptr[k + 1] - indptr[k]), Infinity);
  }

  #figures() {
    this.lines = el("div", { class: "figure lines" });
    this.curve = el("div", { class: "figure" });
    this.slider = el("input", {
      type: "range", id: "slider", min: 0, max: 1, step: "any", "aria-label": "s, the place on the path",
      oninput: () => this.set(this.fromAxis(Number(this.slider.value))),
      onkeydown: (event) => this.#key(event),
    });
    this.legend = el("ul", { class: "legend", "aria-label": "Largest weights" });
    this.figures = el("div", { class: "figures" }, saveButtons("Path", this.lines), this.lines, this.legend,
      this.views.some((view) => view.cv) ? saveButtons("Cross-validation", this.curve) : null, this.curve, this.slider,
      el("p", { class: "muted hint" }, "Arrow keys on the slider step from ", term("joint"), " to joint, Page Up and Page Down by ten."));
    onWidth(this.lines, () => this.#drawFigures());
    return this.figures;
  }

  #key(event) {
    const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 };
    const { s } = this.view.path;
    if (event.key === "Home") this.set(0);
    else if (event.key === "End") this.set(this.end);
    else if (event.key in steps) {
      const [k, t] = placeIn(s, this.s);
      const step = steps[event.key];
      const here = step > 0 ? (t === 1 ? k + 1 : k) : (t > 0 ? k + 1 : k);
      this.set(s[Math.max(0, Math.min(s.length - 1, here + step))]);
    } else return;
    event.preventDefault();
  }

  #readout() {
    this.out = {};
    const value = (key, label) => {
      this.out[key] = el("dd", { id: "out-" + key });
      return [el("dt", {}, label), this.out[key]];
    };
    const some = (field, ...parts) => (this.views.some((view) => view[field]) ? value(...parts) : []);
    this.happened = el("p", {});
    this.happens = el("p", {});
    this.proof = el("p", { id: "proof" });
    return el("aside", { class: "card readout", "aria-label": "At this place" },
      el("dl", { class: "numbers" }, ...value("s", term("s")), ...value("C", term("C")), ...value("count", "features in use"),
        ...some("cv", "cv", "cross-validated " + data.measure + (this.whole ? ", all classes" : "")),
        ...(this.codes ? value("all", "wrong in these folds, all classes") : []),
        ...some("oof", "oof", "wrong in these folds" + (this.views.length > 1 ? ", this class or not" : "")), ...value("b", "intercept")),
      el("h4", {}, "Last change"), this.happened, el("h4", {}, "Next change"), this.happens,
      el("h4", {}, "Certificate here"), this.proof);
  }

  #rules() {
    if (!this.views.some((view) => view.picks.length)) return "";
    this.ruleBody = el("tbody", {});
    return section("What the rules pick", null, el("div", { class: "scroll" }, el("table", { class: "data rules" },
      el("caption", {}, "Rules and what each picks"),
      el("thead", {}, el("tr", {}, ...["Rule", "s", "C", "Features", "CV " + data.measure + (this.whole ? ", all classes" : ""), this.codes ? "Wrong in these folds, all classes" : "Wrong in these folds", ""].map((text, k) =>
        el("th", { scope: "col", class: k ? "number" : "text" }, text)))), this.ruleBody)));
  }

  #held() {
    if (!this.views.some((view) => view.target && (view.oof || view.training))) return "";
    const host = el("div", {});
    const hasOof = this.views.some((view) => view.oof);
    this.evaluation = new Evaluation(host, this.samples, this.views.some((view) => view.training), CHOSE);
    this.togetherHost = this.codes ? el("div", {}) : null;
    return section(hasOof ? "The folds that chose s, at this s" : "Training rows at this s",
      hasOof ? "Each sample is judged by the fold that did not see it. The rules picked their s by these very results, which makes them too good there" + (data.evaluation ? ": the held-out samples above are the honest ones." : ".")
        : "This file has no cross-validation: these are the rows the path was fitted to. With more features than rows they are perfect and mislead.",
      host, this.togetherHost ? card("All classes together", this.togetherHost) : null);
  }

  #features() {
    const host = el("div", {});
    const stretch = (j) => this.view.path.stretchAt(j, this.s);
    const again = (j) => (stretch(j).number > 1 ? ` (${ordinal(stretch(j).number)} time)` : "");
    const weight = (j) => this.place.weights.get(j) || 0;
    const columns = [
      { key: "feature", label: "Feature", value: featureName, head: true, text: true },
      { key: "weight", label: "Weight at s", value: weight, size: (j) => Math.abs(weight(j)), format: (x) => num(x, 6) },
      scales && {
        key: "weight_original_units", label: "Per original unit", value: (j) => weight(j) / scales[j],
        size: (j) => Math.abs(weight(j) / scales[j]), format: (x) => num(x, 6),
      },
      { key: "s_at_entry", label: "Enters at s", value: (j) => stretch(j).enter, format: (s, j) => num(s) + again(j) },
      { key: "s_at_exit", label: "Leaves at s", value: (j) => stretch(j).leave },
      frequency && { key: "selection_frequency", label: "Share of folds", value: (j) => frequency[j], format: percent },
    ].filter(Boolean);
    this.table = new DataTable(host, {
      fixed: () => [...(this.views.length > 1 ? [["class", this.view.name]] : []), ["s", this.s]],
      caption: "Features", csv: "features-at-s.csv", count: data.p, name: featureName, columns, sortBy: 1,
      shows: [["in use at this s", (j) => this.place.weights.has(j)], ["ever on the path", (j) => this.view.path.columns.has(j)], ["all " + data.p, () => true]],
      empty: "No feature is in use at this s.",
      pin: (pinned) => { this.pinned = pinned; this.#highlight(); },
      hover: (j) => { this.hovered = j; this.#highlight(); },
    });
    this.pinned = new Set();
    const lead = frequency ? "The share of the folds that use a feature is that at the chosen place." : null;
    return section("Features", lead, host);
  }

  // On paper, where there are no tabs: the features of the other classes.
  #printOthers() {
    const others = this.views.map((view, k) => [view, this.places[k]]).filter(([view]) => view !== this.view);
    this.printed.replaceChildren(...others.map(([view, s]) => {
      const weights = [...view.path.at(s).weights].sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, MOST_PRINTED);
      const rows = weights.map(([j, value]) => el("tr", {}, el("th", { scope: "row", class: "text" }, featureName(j)), el("td", { class: "number" }, num(value, 6))));
      return section(`Features of ${view.name} at s = ${num(s)}`, null,
        el("table", { class: "data narrow" }, el("caption", {}, "Features of " + view.name),
          el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Feature"), el("th", { scope: "col", class: "number" }, "Weight at s"))),
          el("tbody", {}, ...rows)));
    }));
  }

  choose(k) {
    this.index = k;
    this.problem.textContent = "";
    if (this.s > this.limit) this.#show(this.end);
    this.place = this.view.path.at(this.s);
    this.#drawFigures();
    this.#fillRules();
    this.show();
  }

  set(s, price) {
    this.#follow(s, price);
    this.#shown();
  }

  #shown() {
    if (this.s > this.limit) this.#show(this.end);
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.show(); });
  }

  // The horizontal axis, in [0, 1].
  toAxis(s) {
    if (!(this.end > 0)) return 0;
    if (!this.even) return s / this.limit;
    const [k, t] = placeIn(this.ends, s);
    return (k + t) / (this.ends.length - 1);
  }

  fromAxis(x) {
    if (!this.even) return x * this.limit;
    const last = this.ends.length - 1;
    const k = Math.min(Math.floor(x * last), last - 1);
    return this.ends[k] + (x * last - k) * (this.ends[k + 1] - this.ends[k]);
  }

  #axisTicks(width) {
    const count = Math.max(2, Math.floor(width / 110));
    if (!this.even) return niceTicks(0, this.limit, count).map((s) => [this.toAxis(s), num(s)]);
    return Array.from({ length: count + 1 }, (_, k) => [k / count, num(this.fromAxis(k / count), 3)]);
  }

  #drawFigures() {
    if (!this.table || !this.lines.clientWidth) return;
    const inside = Array.from(this.view.path.s).filter((s) => s < this.limit);
    this.ends = inside.length ? [...inside, this.limit] : [0, 1];
    const width = this.lines.clientWidth;
    this.wide = width > 560;
    const margin = { left: 52, right: this.wide ? 132 : 14, top: 24, bottom: 26 };
    this.#drawLines(width, margin);
    this.#drawCurve(width, margin);
    this.slider.style.width = width - margin.left - margin.right + THUMB + "px";
    this.slider.style.marginLeft = margin.left - THUMB / 2 + "px";
    this.#move();
  }

  // The features that get a colour: the largest weights where the page opened.
  #largest() {
    const { path } = this.view;
    const start = path.at(Math.min(this.view.start(), path.end)).weights;
    const last = path.at(this.limit).weights;
    const size = (j) => Math.abs(start.get(j) || 0) + 1e-6 * Math.abs(last.get(j) || 0);
    return [...path.columns.keys()].sort((a, b) => size(b) - size(a) || a - b).slice(0, COLOURS);
  }

  // The line of a feature, in pixels: it leaves zero at the knot before it is in use.
  #lineOf(j, frame) {
    const { path } = this.view;
    const { knots, values } = path.columns.get(j);
    const last = path.s.length - 1;
    const parts = [];
    let points = [];
    knots.forEach((k, i) => {
      if (!points.length && k > 0) points.push([path.s[k - 1], 0]);
      points.push([path.s[k], values[i]]);
      if (i === knots.length - 1 || knots[i + 1] > k + 1) {
        if (k < last) points.push([path.s[k + 1], 0]);
        else if (path.end < this.limit) points.push([this.limit, values[i]]);
        parts.push(lineThrough(this.#inside(points).map(([s, value]) => [frame.x(this.toAxis(s)), frame.y(value)])));
        points = [];
      }
    });
    return parts.join("");
  }

  // The part of a line (s, value) that is shown, to its very end.
  #inside(points) {
    const beyond = points.findIndex(([s]) => s > this.limit);
    if (beyond < 0) return points;
    if (beyond === 0) return [];
    const [[s0, v0], [s1, v1]] = [points[beyond - 1], points[beyond]];
    return [...points.slice(0, beyond), [this.limit, v0 + (v1 - v0) * (this.limit - s0) / (s1 - s0)]];
  }

  #drawLines(width, margin) {
    const { path } = this.view;
    const frame = new Frame(this.lines, width, this.wide ? 360 : 300, margin, "Weights of the features along the path");
    let [low, high] = [0, 0];
    const shown = placeIn(path.s, this.limit)[0] + 1;
    for (const value of path.values.subarray(0, path.indptr[shown])) [low, high] = [Math.min(low, value), Math.max(high, value)];
    for (const value of path.at(this.limit).weights.values()) [low, high] = [Math.min(low, value), Math.max(high, value)];
    if (!(high > low)) [low, high] = [-1, 1];
    frame.domain(0, 1, low - 0.05 * (high - low), high + 0.05 * (high - low));
    frame.yAxis(numberTicks(low, high, 6), "weight" + (scales ? " (scaled units)" : ""));
    frame.xAxis(this.#axisTicks(frame.right - frame.left), null);
    frame.add("line", { class: "base", x1: frame.left, x2: frame.right, y1: frame.y(0), y2: frame.y(0) });
    const largest = this.#largest();
    const others = [...path.columns.keys()].filter((j) => !largest.includes(j));
    frame.add("path", { class: "others", d: others.map((j) => this.#lineOf(j, frame)).join("") });
    largest.forEach((j, rank) => frame.add("path", { class: "line c" + rank, d: this.#lineOf(j, frame) }));
    const joints = Array.from(path.s).filter((s) => s <= this.limit).map((s) => frame.x(this.toAxis(s)).toFixed(1));
    frame.add("path", { class: "joints", d: [...new Set(joints)].map((x) => `M${x} ${frame.bottom}v-5`).join("") });
    this.linesFrame = frame;
    this.largest = largest;
    if (this.wide) this.#lineNames(frame, largest);
    this.legend.hidden = this.wide;
    this.legend.replaceChildren(...largest.map((j, rank) => el("li", { class: "c" + rank }, shortened(featureName(j), 40))));
    this.bright = frame.add("path", { class: "bright" });
    this.cursor = frame.add("line", { class: "cursor", y1: frame.top, y2: frame.bottom });
    this.dots = frame.add("g", {});
    this.#draggable(frame, true);
  }

  #lineNames(frame, largest) {
    const last = this.view.path.at(this.limit).weights;
    const ends = largest.map((j) => frame.y(last.get(j) || 0));
    spread(ends, 15, frame.top, frame.bottom).forEach((y, rank) => {
      const x = frame.right;
      frame.add("path", { class: "leader c" + rank, d: `M${x} ${ends[rank]}L${x + 12} ${y}` });
      frame.add("text", { class: "name c" + rank, x: x + 15, y: y + 4 },
        shortened(featureName(largest[rank]), 17), svg("title", {}, featureName(largest[rank])));
    });
  }

  #drawCurve(width, margin) {
    const { cv, picks, chosen } = this.view;
    this.curve.hidden = !cv && !picks.length;
    if (this.curve.hidden) {
      this.curveFrame = null;
      return;
    }
    const frame = new Frame(this.curve, width, cv ? 190 : 60, { ...margin, top: 34, bottom: 24 }, "Cross-validated " + data.measure + " along the path");
    const x = (s) => frame.x(this.toAxis(Math.min(s, this.limit)));
    if (cv) {
      const spreadOf = (k) => (cv.se ? cv.se[k] : 0);
      const high = cv.error.reduce((most, error, k) => Math.max(most, error + spreadOf(k)), 0.01);
      const low = Math.min(0, cv.error.reduce((least, error, k) => Math.min(least, error - spreadOf(k)), 0));
      frame.domain(0, 1, Math.max(low, -0.02 * high), high);
      frame.yAxis(niceTicks(0, high, 4).map((v) => [v, percent(v).replace(".0%", "%")]), "CV " + data.measure);
      const clip = (v) => Math.max(frame.yDomain[0], v);
      const drawn = (value) => this.#inside(Array.from(cv.s, (s, k) => [s, value(k)])).map(([s, v]) => [x(s), frame.y(clip(v))]);
      if (cv.se) {
        const edges = [drawn((k) => cv.error[k] + cv.se[k]), drawn((k) => cv.error[k] - cv.se[k]).reverse()];
        frame.add("path", { class: "band", d: lineThrough(edges.flat()) + "Z" });
      }
      frame.add("path", { class: "curve", d: lineThrough(drawn((k) => cv.error[k])) });
    } else frame.domain(0, 1, 0, 1);
    frame.xAxis(this.#axisTicks(frame.right - frame.left), null);
    frame.add("text", { class: "axis", x: frame.right + (this.wide ? 24 : 6), y: frame.bottom + 16 }, "s");
    const at = picks.map(([, s]) => x(s));
    spread(at.map((place, k) => place + k * 1e-6), 62, frame.left + 20, frame.right - 20).forEach((label, k) => {
      const kind = picks[k][0] === chosen ? " chosen" : "";
      frame.add("path", { class: "pick" + kind, d: `M${at[k]} ${frame.bottom}V${frame.top - 2}L${label} ${frame.top - 8}` });
      frame.add("text", { class: "pickname" + kind, x: label, y: frame.top - 12, "text-anchor": "middle", onclick: () => { this.#goTo(picks[k][0]); this.#shown(); } }, picks[k][0]);
    });
    this.curveFrame = frame;
    this.curveCursor = frame.add("line", { class: "cursor", y1: frame.top, y2: frame.bottom });
    this.curveDot = cv ? frame.add("circle", { class: "marker", r: 5 }) : null;
    this.#draggable(frame, false);
  }

  #draggable(frame, hasLines) {
    const area = frame.add("rect", {
      class: "area", x: frame.left, y: frame.top, width: Math.max(0, frame.right - frame.left), height: frame.bottom - frame.top,
    });
    const go = (event) => this.set(this.fromAxis(frame.xAt(event)));
    area.addEventListener("pointerdown", (event) => {
      area.setPointerCapture(event.pointerId);
      this.dragging = true;
      hideTip();
      go(event);
    });
    area.addEventListener("pointermove", (event) => {
      if (this.dragging) go(event);
      else if (hasLines) this.#nearest(event, frame);
    });
    const stop = () => { this.dragging = false; };
    area.addEventListener("pointerup", stop);
    area.addEventListener("pointercancel", stop);
    area.addEventListener("pointerleave", () => { hideTip(); this.hovered = null; this.#highlight(); });
  }

  // The line under the pointer.
  #nearest(event, frame) {
    const s = this.fromAxis(frame.xAt(event));
    const y = frame.yPixel(event);
    let [best, near] = [null, 12];
    for (const [j, value] of this.view.path.at(s).weights) {
      const distance = Math.abs(frame.y(value) - y);
      if (distance < near) [best, near] = [{ j, value }, distance];
    }
    if (best) {
      showTip(event, [featureName(best.j), `weight ${num(best.value)} at s = ${num(s)}`,
        "enters at s = " + num(this.view.path.stretchAt(best.j, s).enter)]);
    } else hideTip();
    const found = best ? best.j : null;
    if (found !== this.hovered) {
      this.hovered = found;
      this.#highlight();
    }
  }

  #highlight() {
    const wanted = new Set(this.pinned);
    if (this.hovered !== null) wanted.add(this.hovered);
    const drawn = [...wanted].filter((j) => this.view.path.columns.has(j));
    this.bright.setAttribute("d", drawn.map((j) => this.#lineOf(j, this.linesFrame)).join(""));
  }

  #move() {
    if (!this.linesFrame || !this.place) return;
    const x = this.linesFrame.x(this.toAxis(this.s));
    for (const attribute of ["x1", "x2"]) this.cursor.setAttribute(attribute, x);
    const shown = [...this.place.weights].sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, 150);
    this.dots.replaceChildren(...shown.map(([j, value]) => {
      const rank = this.largest.indexOf(j);
      return svg("circle", { class: rank < 0 ? "dot small" : "dot c" + rank, cx: x, cy: this.linesFrame.y(value), r: rank < 0 ? 2 : 3.6 });
    }));
    if (this.curveFrame) {
      for (const attribute of ["x1", "x2"]) this.curveCursor.setAttribute(attribute, x);
      if (this.curveDot) {
        this.curveDot.setAttribute("cx", x);
        this.curveDot.setAttribute("cy", this.curveFrame.y(Math.max(this.view.cv.at(this.s).error, this.curveFrame.yDomain[0])));
      }
    }
    this.#highlight();
  }

  // Everything that depends on s.
  show() {
    const { view, s } = this;
    const place = view.path.at(s);
    this.place = place;
    const oof = view.oof ? view.oof.at(s) : null;
    if (this.evaluation && view.target) {
      this.evaluation.update({
        target: view.target, name: view.name, other: view.other, oof,
        training: view.training ? view.training.at(s) : null,
      });
    }
    const together = this.codes ? this.#judgedTogether(this.places) : null;
    if (together) showTogether(this.togetherHost, this.views.map((each) => each.name), together, this.samples, CHOSE);
    this.#write(place, together);
    this.#move();
    this.table.update();
    this.slider.value = String(this.toAxis(s));
    this.panel.dataset.s = String(s);
    this.panel.dataset.intercept = String(place.intercept);
  }

  #write(place, together) {
    const { view, s, out } = this;
    const count = place.weights.size;
    const cv = view.cv ? view.cv.at(s) : null;
    const judged = this.evaluation && view.oof ? this.evaluation.judged : null;
    out.s.textContent = num(s, 6);
    out.C.textContent = pricesText(place.prices);
    out.count.textContent = count + " of " + data.p;
    out.b.textContent = num(place.intercept, 6);
    if (out.cv) out.cv.textContent = cv ? percent(cv.error) + (cv.se !== null ? " ± " + percent(cv.se) : "") : "–";
    if (out.all) out.all.textContent = `${together.wrong.length} of ${together.n}`;
    if (out.oof) out.oof.textContent = judged ? `${judged.errors} of ${judged.n}` : "–";
    this.inputs.s.value = num(s, 6).replace("−", "-");
    const free = place.prices[0] === 0 && place.prices[1] === Infinity;
    this.inputs.C.placeholder = free ? "any" : "";
    this.inputs.C.value = free ? "" : num(this.price ?? onePrice(place.prices), 6).replace("−", "-");
    this.inputs.count.value = String(count);
    for (const input of Object.values(this.inputs)) input.removeAttribute("aria-invalid");
    this.problem.textContent = "";
    const [before, after] = view.path.changes(s);
    this.happened.textContent = this.#event(before, "Nothing yet: no feature is in use.");
    this.happens.textContent = this.#event(after, view.path.stopped === "end"
      ? "None: the path ends here." : `None: the path was stopped (${view.path.stopped}).`);
    this.proof.replaceChildren(term("relative gap", "Relative gap"), ` ${num(place.gap, 2)}, hinge loss ${num(place.loss)}. Verified when the path was followed, at each of its ${plural(view.path.joints, "joint")}.`);
    const told = `s ${num(s)}, ${plural(count, "feature")}` + (judged ? `, ${judged.errors} of ${judged.n} wrong in the folds that chose s` : "");
    this.slider.setAttribute("aria-valuetext", told);
    announce(told + ". Last change: " + this.happened.textContent);
  }

  #event(k, none) {
    if (k === null) return none;
    const { events, s } = this.view.path;
    const part = (rows, verb) => (rows.length
      ? listed(rows.map(featureName), 4) + " " + (rows.length > 1 ? verb : verb + "s") : null);
    const parts = [part(events[k].enter, "enter"), part(events[k].leave, "leave")].filter(Boolean);
    return parts.join("; ") + ` at s = ${num(s[k])}`;
  }

  #fillRules() {
    if (!this.ruleBody) return;
    const { view } = this;
    this.ruleBody.replaceChildren(...view.picks.map(([rule, s]) => {
      const place = view.path.at(s);
      const cv = view.cv ? view.cv.at(s) : null;
      const places = this.views.map((each) => (data.inCommon === "s" ? s : each.start(rule)));
      const wrong = this.codes ? this.#judgedTogether(places) : view.oof ? judge(view.target, view.oof.at(s)) : null;
      const about = el("th", { scope: "row", class: "text" }, WORDS[rule] ? term(rule) : rule, rule === view.chosen ? " (chosen)" : "",
        RULES[rule] ? el("small", { class: "muted" }, " " + RULES[rule]) : null);
      return el("tr", { class: rule === view.chosen ? "chosen" : "" }, about,
        ...[num(s), pricesText(place.prices), String(place.weights.size), cv ? percent(cv.error) + (cv.se !== null ? " ± " + percent(cv.se) : "") : "–",
          wrong ? `${wrong.errors} of ${wrong.n}` : "–"].map((text) => el("td", { class: "number" }, text)),
        el("td", { class: "number" }, el("button", { type: "button", class: "button go", "aria-label": "Go to the pick of " + rule, onclick: () => { this.#goTo(rule); this.#shown(); } }, "Go")));
    }));
  }
}

pages.path = () => new Explorer(main);

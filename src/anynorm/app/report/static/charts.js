// Axes and lines in SVG.  Colours are classes of the style sheet, so that dark, light and print
// need no drawing anew.

function niceTicks(low, high, count) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const raw = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((size) => size >= raw * 0.999);
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * span; k++) {
    ticks.push(Number((k * step).toPrecision(12)));
  }
  return ticks;
}

// A drawing area with margins; x and y map data to pixels.
class Frame {
  constructor(host, width, height, margin, label) {
    this.width = width;
    this.height = height;
    this.margin = margin;
    this.svg = svg("svg", {
      viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label, class: "chart",
    });
    host.replaceChildren(this.svg);
    this.left = margin.left;
    this.right = width - margin.right;
    this.top = margin.top;
    this.bottom = height - margin.bottom;
  }

  domain(xLow, xHigh, yLow, yHigh) {
    const map = (low, high, from, to) => (v) => from + (high > low ? (v - low) / (high - low) : 0) * (to - from);
    this.xDomain = [xLow, xHigh];
    this.yDomain = [yLow, yHigh];
    this.x = map(xLow, xHigh, this.left, this.right);
    this.y = map(yLow, yHigh, this.bottom, this.top);
    return this;
  }

  add(tag, attributes, ...children) {
    const node = svg(tag, attributes, ...children);
    this.svg.append(node);
    return node;
  }

  // Ticks: [position in data, text]; lines across for y.
  yAxis(ticks, title) {
    for (const [value, text] of ticks) {
      const y = this.y(value);
      this.add("line", { class: "grid", x1: this.left, x2: this.right, y1: y, y2: y });
      this.add("text", { class: "tick", x: this.left - 7, y: y + 3.5, "text-anchor": "end" }, text);
    }
    if (title) this.add("text", { class: "axis", x: 4, y: this.top - 9 }, title);
  }

  xAxis(ticks, title) {
    this.add("line", { class: "base", x1: this.left, x2: this.right, y1: this.bottom, y2: this.bottom });
    ticks.forEach(([value, text], i) => {
      const x = this.x(value);
      this.add("line", { class: "base", x1: x, x2: x, y1: this.bottom, y2: this.bottom + 4 });
      const anchor = i === ticks.length - 1 && x > this.width - 16 ? "end" : "middle";
      this.add("text", { class: "tick", x, y: this.bottom + 16, "text-anchor": anchor }, text);
    });
    if (title) {
      this.add("text", {
        class: "axis", x: (this.left + this.right) / 2, y: this.height - 3, "text-anchor": "middle",
      }, title);
    }
  }

  // The data under the pointer.
  xAt(event) {
    const box = this.svg.getBoundingClientRect();
    const pixel = (event.clientX - box.left) * (this.width / box.width);
    const share = Math.max(0, Math.min(1, (pixel - this.left) / (this.right - this.left)));
    return this.xDomain[0] + share * (this.xDomain[1] - this.xDomain[0]);
  }

  yPixel(event) {
    const box = this.svg.getBoundingClientRect();
    return (event.clientY - box.top) * (this.height / box.height);
  }
}

// Figures as files of their own: what the style sheet gives becomes attributes.
const DRAWN = ["fill", "stroke", "stroke-width", "stroke-dasharray", "fill-opacity", "stroke-opacity", "opacity", "font-family", "font-size", "font-weight"];

const paperColour = () => getComputedStyle(document.querySelector(".card, .figures") || document.body).backgroundColor;

function standalone(chart) {
  const copy = chart.cloneNode(true);
  const [from, to] = [chart, copy].map((node) => [node, ...node.querySelectorAll("*")]);
  from.forEach((node, i) => {
    const style = getComputedStyle(node);
    for (const name of DRAWN) to[i].setAttribute(name, style.getPropertyValue(name));
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.prepend(svg("rect", { width: "100%", height: "100%", fill: paperColour() }));
  return new XMLSerializer().serializeToString(copy);
}

function saveButtons(title, host) {
  const name = title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "figure";
  const chart = () => host.querySelector("svg");
  const asSvg = () => download(name + ".svg", standalone(chart()), "image/svg+xml");
  const asCanvas = async () => {
    const scale = 3; // pixels of the file for one of the page
    const box = chart().viewBox.baseVal;
    const image = new Image();
    image.src = URL.createObjectURL(new Blob([standalone(chart())], { type: "image/svg+xml" }));
    await image.decode();
    const canvas = el("canvas", { width: box.width * scale, height: box.height * scale });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(image.src);
    return canvas;
  };
  const asPng = async () => (await asCanvas()).toBlob((content) => download(name + ".png", content), "image/png");
  const asPdf = async () => download(name + ".pdf", await chartPdf(chart(), paperColour(), asCanvas));
  const button = (text, onclick) => el("button", { type: "button", class: "save-as", "aria-label": `Save ${title} as ${text}`, onclick }, text);
  return el("span", { class: "saves" }, button("SVG", asSvg), button("PNG", asPng), button("PDF", asPdf));
}

function numberTicks(low, high, count) {
  return niceTicks(low, high, count).map((value) => [value, num(value)]);
}

// A polyline through points in pixels; points that cannot be told apart are left out.
function lineThrough(points) {
  let text = points.length ? "" : "M0 0";
  let [px, py] = [NaN, NaN];
  points.forEach(([x, y], i) => {
    if (i > 0 && i < points.length - 1 && Math.abs(x - px) < 0.4 && Math.abs(y - py) < 0.4) return;
    text += (i ? "L" : "M") + x.toFixed(1) + " " + y.toFixed(1);
    [px, py] = [x, y];
  });
  return text;
}

// Places moved apart, in their order, to leave room for labels (pixels).
function spread(places, room, low, high) {
  const order = places.map((_, i) => i).sort((a, b) => places[a] - places[b]);
  const groups = [];
  order.forEach((i, rank) => {
    groups.push([places[i] - rank * room, 1]);
    while (groups.length > 1) {
      const [last, before] = [groups[groups.length - 1], groups[groups.length - 2]];
      if (before[0] / before[1] < last[0] / last[1]) break;
      groups.pop();
      before[0] += last[0];
      before[1] += last[1];
    }
  });
  const moved = [];
  let rank = 0;
  for (const [total, count] of groups) {
    for (let i = 0; i < count; i++, rank++) moved[order[rank]] = total / count + rank * room;
  }
  const over = Math.max(0, Math.max(...moved) - high);
  const under = Math.max(0, low - (Math.min(...moved) - over));
  return moved.map((place) => place - over + under);
}

function shortened(name, most) {
  return name.length <= most ? name : name.slice(0, most - 1) + "…";
}

// A curve over a few positions (rounds, budgets) with a band, points, and a marker that moves.
class PointChart {
  constructor(host, options) {
    this.options = options;
    this.host = host;
    this.current = 0;
    onWidth(host, (width) => this.draw(width));
  }

  draw(width) {
    const { x, y, se, bound, marks, height, label, xTitle, yTitle, onPick, tipOf, format } = this.options;
    const frame = new Frame(this.host, width, height || 240, { left: 58, right: 18, top: 26, bottom: 38 }, label);
    this.frame = frame;
    const finite = (values) => values.filter(Number.isFinite);
    const spreadOf = (i) => (se && Number.isFinite(se[i]) ? se[i] : 0);
    const tops = finite([...y].map((v, i) => v + spreadOf(i)));
    const lows = finite([...y].map((v, i) => v - spreadOf(i)));
    const extra = finite([bound, ...(marks || []).map((mark) => mark.y)].map((v) => (v === null ? NaN : v)));
    let [low, high] = [Math.min(...lows, ...extra), Math.max(...tops, ...extra)];
    if (!(high > low)) [low, high] = [low - 0.5, high + 0.5];
    const pad = 0.06 * (high - low);
    const xs = [...x, ...(marks || []).map((mark) => mark.x)];
    let [xLow, xHigh] = [Math.min(...xs), Math.max(...xs)];
    if (!(xHigh > xLow)) [xLow, xHigh] = [xLow - 0.5, xHigh + 0.5];
    const xPad = 0.02 * (xHigh - xLow);
    frame.domain(xLow - xPad, xHigh + xPad, low - pad, high + pad);
    const write = format || num;
    frame.yAxis(niceTicks(low, high, 5).map((v) => [v, write(v)]), yTitle);
    frame.xAxis(this.xTicks(xLow, xHigh, width), xTitle);
    const point = (i) => [frame.x(x[i]), frame.y(y[i])];
    const order = [...x].map((_, i) => i).sort((a, b) => x[a] - x[b]);
    if (se) {
      const upper = order.map((i) => [frame.x(x[i]), frame.y(y[i] + spreadOf(i))]);
      const lower = order.map((i) => [frame.x(x[i]), frame.y(y[i] - spreadOf(i))]).reverse();
      frame.add("path", { class: "band", d: lineThrough([...upper, ...lower]) + "Z" });
    }
    if (bound !== null && bound !== undefined) {
      frame.add("line", { class: "bound", x1: frame.left, x2: frame.right, y1: frame.y(bound), y2: frame.y(bound) });
      frame.add("text", { class: "tick", x: frame.right, y: frame.y(bound) - 5, "text-anchor": "end" }, "no objective can be below " + num(bound));
    }
    frame.add("path", { class: "curve", d: lineThrough(order.map(point)) });
    for (const mark of marks || []) {
      frame.add("path", { class: "reference", d: `M${frame.x(mark.x) - 5} ${frame.y(mark.y)}h10m-5 -5v10` });
      const near = order.reduce((a, b) => (Math.abs(x[b] - mark.x) < Math.abs(x[a] - mark.x) ? b : a));
      const shift = mark.y < y[near] ? 20 : -14; // away from the curve and its points
      frame.add("text", { class: "tick", x: frame.x(mark.x) - 8, y: frame.y(mark.y) + shift, "text-anchor": "end" }, mark.text);
    }
    [...x].forEach((_, i) => {
      const [cx, cy] = point(i);
      if (!Number.isFinite(cy)) return;
      frame.add("circle", { class: "dot", cx, cy, r: 3.5 });
      frame.add("circle", {
        class: "target", cx, cy, r: 12, onpointermove: (event) => showTip(event, tipOf(i)),
        onpointerleave: hideTip, onclick: () => onPick && onPick(i),
      });
    });
    this.marker = frame.add("circle", { class: "marker", r: 6.5 });
    this.move(this.current);
  }

  xTicks(low, high, width) {
    const count = Math.max(2, Math.floor(width / 70));
    const ticks = this.options.whole && high - low <= count
      ? Array.from({ length: Math.floor(high) - Math.ceil(low) + 1 }, (_, k) => Math.ceil(low) + k)
      : niceTicks(low, high, count).filter((v) => !this.options.whole || Number.isInteger(v));
    return ticks.map((v) => [v, num(v)]);
  }

  move(i) {
    this.current = i;
    const { x, y } = this.options;
    this.marker.setAttribute("cx", this.frame.x(x[i]));
    this.marker.setAttribute("cy", this.frame.y(Number.isFinite(y[i]) ? y[i] : this.frame.yDomain[0]));
  }
}

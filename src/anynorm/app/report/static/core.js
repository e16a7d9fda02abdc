// Data, numbers and elements: what every part of the page uses.
// Names come from the user's files: they are only ever set as text, never as markup.

const data = JSON.parse(document.getElementById("data").textContent);
const main = document.getElementById("main");
const embedded = document.documentElement.dataset.mode === "embedded";
const pages = {}; // what each kind of report shows, by the name of the kind

function unpack(text, Type) {
  if (text === null || text === undefined) return null;
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return new Type(bytes.buffer);
}

const f8 = (text) => unpack(text, Float64Array);
const f4 = (text) => unpack(text, Float32Array);
const i4 = (text) => unpack(text, Int32Array);
const u1 = (text) => unpack(text, Uint8Array);

const scales = f8(data.scales);
const frequency = f8(data.frequency);

function featureName(j) {
  return data.features ? data.features[j] : "x" + j;
}

function nameOf(names, i) {
  return names ? names[i] : "row " + i;
}

// Numbers as people read them; the minus sign is a minus sign.
function num(x, digits = 4) {
  if (x === null || x === undefined || Number.isNaN(x)) return "–";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  const size = Math.abs(x);
  const plain = size === 0 || (size >= 1e-4 && size < 1e6);
  const text = plain ? String(Number(x.toPrecision(digits))) : x.toExponential(digits - 1);
  return text.replace(/-/g, "−");
}

function percent(x) {
  return Number.isFinite(x) ? (100 * x).toFixed(1) + "%" : "–";
}

function plural(n, one, many) {
  return n + " " + (n === 1 ? one : many || one + "s");
}

function listed(names, most) {
  if (names.length <= most) return names.join(", ");
  return names.slice(0, most).join(", ") + " and " + (names.length - most) + " more";
}

function parseNumber(text) {
  const clean = text.trim().replace("−", "-").replace(",", ".");
  return clean === "" ? NaN : Number(clean);
}

// An element with attributes, listeners ("onclick": function) and children (nodes or strings).
function el(tag, attributes, ...children) {
  return furnish(document.createElement(tag), attributes, children);
}

function svg(tag, attributes, ...children) {
  return furnish(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function furnish(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

let lastId = 0;
function newId(stem) {
  lastId += 1;
  return stem + "-" + lastId;
}

function card(title, ...children) {
  const id = newId("card");
  const figure = children.find((child) => child instanceof Element && child.classList.contains("figure"));
  return el("section", { class: "card", "aria-labelledby": id }, figure ? saveButtons(title, figure) : null,
    el("h3", { id }, title), ...children);
}

// Words that not everybody knows, explained where they stand and at the end of the page.
const WORDS = {
  s: "The bound on the sum of the absolute weights: at 0 no feature is in use, and the larger s, the more the model may use.",
  C: "The price of the loss beside the size of the weights. Each s is the solution for some C: the larger C, the larger s.",
  joint: "A place on the path at which the weights change their direction: a feature enters or leaves, or a row reaches the margin.",
  steady: "The model around which the cross-validated error is lowest on average, over a factor of 4 in s or 10 in C.",
  one_se: "The simplest model whose cross-validated error is within one standard error of the lowest.",
  fewest: "The model of fewest features (or support vectors) with nearly the lowest cross-validated error.",
  margin: "The decision value towards the true class: below 0 the row is wrong, and below 1 it costs something.",
  "relative gap": "How far the solution is from the optimum at most, as a share of the objective: the certificate.",
};
const wordsUsed = new Set();

// A word with its explanation under the pointer; `text` is what is shown of it.
function term(word, text) {
  wordsUsed.add(word);
  return el("abbr", { title: WORDS[word] }, text || word);
}

function section(title, lead, ...children) {
  const id = newId("section");
  return el(
    "section", { "aria-labelledby": id }, el("h2", { id }, title),
    lead ? el("p", { class: "lead" }, lead) : null, ...children
  );
}

// What a screen reader is told, once things have come to rest.
const live = document.getElementById("live");
let liveTimer = 0;
function announce(text) {
  if (!document.documentElement.dataset.ready) return; // what the page opens with is read anyway
  clearTimeout(liveTimer);
  liveTimer = setTimeout(() => { live.textContent = text; }, 500);
}

const tip = document.getElementById("tip");
function showTip(event, lines) {
  tip.replaceChildren(...lines.map((line, i) => el(i ? "div" : "strong", {}, line)));
  tip.hidden = false;
  const room = document.documentElement.clientWidth;
  const left = Math.min(event.clientX + 14, room - tip.offsetWidth - 8);
  const below = event.clientY + 16;
  const top = below + tip.offsetHeight > window.innerHeight ? event.clientY - tip.offsetHeight - 10 : below;
  tip.style.left = Math.max(4, left) + "px";
  tip.style.top = Math.max(4, top) + "px";
}
function hideTip() {
  tip.hidden = true;
}

// Dark or light: as the system has it, until the button was used.
const system = window.matchMedia("(prefers-color-scheme: dark)");
const root = document.documentElement;
function setTheme(theme, button) {
  root.dataset.theme = theme;
  const next = theme === "dark" ? "light" : "dark";
  button.textContent = next === "dark" ? "Dark" : "Light";
  button.setAttribute("aria-label", "Switch to " + next + " colours");
}
function themeButton() {
  let asked = false;
  const button = el("button", {
    class: "quiet", id: "theme", type: "button",
    onclick: () => { asked = true; setTheme(root.dataset.theme === "dark" ? "light" : "dark", button); },
  });
  setTheme(system.matches ? "dark" : "light", button);
  system.addEventListener("change", (event) => {
    if (!asked) setTheme(event.matches ? "dark" : "light", button);
  });
  return button;
}

// Draws now and whenever the width of an element changes.
function onWidth(host, draw) {
  let width = 0;
  const check = () => {
    const now = host.clientWidth;
    if (now > 0 && now !== width) {
      width = now;
      draw(now);
    }
  };
  new ResizeObserver(check).observe(host);
  check();
}

function download(name, content, type = "text/csv;charset=utf-8") {
  const link = el("a", { download: name });
  link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// The tabs pattern: arrow keys move between tabs, one is in the tab order.
function tabs(label, names, panelId, choose) {
  const list = el("div", { class: "tabs", role: "tablist", "aria-label": label });
  const buttons = names.map((name, k) => el("button", {
    role: "tab", type: "button", id: panelId + "-tab-" + k, "aria-controls": panelId,
    onclick: () => select(k),
    onkeydown: (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const ends = { Home: 0, End: names.length - 1 };
      if (step === undefined && !(event.key in ends)) return;
      event.preventDefault();
      select(step === undefined ? ends[event.key] : (k + step + names.length) % names.length, true);
    },
  }, name));
  function select(k, focus) {
    buttons.forEach((button, i) => {
      button.setAttribute("aria-selected", String(i === k));
      button.tabIndex = i === k ? 0 : -1;
    });
    if (focus) buttons[k].focus();
    document.getElementById(panelId).setAttribute("aria-labelledby", buttons[k].id);
    choose(k);
  }
  list.append(...buttons);
  return { list, select };
}

// Every page: its header, what the script of its kind shows, and what is known about the model.

function certificateBadge() {
  const found = data.certificate;
  if (!found) return null;
  const good = found.status === "optimal";
  const text = found.status ? `${good ? "Certified optimal" : "Not certified: " + found.status}` : "Certificate";
  const colour = good && !data.caution ? "good" : good ? "" : "bad"; // nothing green beside a caution
  return el("p", { class: "badge " + (found.status ? colour : "") },
    el("b", {}, text), found.status && found.gap !== null ? ` relative gap ${num(found.gap, 2)}` : null);
}

function cautionBadge() {
  return data.caution ? el("p", { class: "badge amber", role: "status", id: "caution" }, el("b", {}, data.caution)) : null;
}

function header() {
  const top = document.querySelector("header.top");
  const print = el("button", {
    class: "quiet", id: "print", type: "button", title: "Print this page, or save it as PDF", onclick: () => window.print(),
  }, "PDF");
  top.append(el("div", { class: "actions" }, cautionBadge(), certificateBadge(), print, themeButton()));
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
  if (wordsUsed.size) {
    parts.push(card("Words", el("dl", { class: "words" }, ...[...wordsUsed].flatMap((word) => [el("dt", {}, word), el("dd", {}, WORDS[word])]))));
  }
  if (parts.length) main.append(section(data.models ? "About these models" : "About this model", null, el("div", { class: "cards two" }, ...parts)));
}

// Tables wider than the screen say so.
function markWide() {
  for (const node of document.querySelectorAll(".scroll")) node.classList.toggle("more", node.scrollWidth > node.clientWidth + 1);
}

main.replaceChildren();
header();
heldOut();
pages[data.kind]();
gridSection();
reliabilitySection();
closing();
if (data.versions) document.querySelector(".foot").append(" " + data.versions + ".");
new ResizeObserver(markWide).observe(main);
root.dataset.ready = "true";

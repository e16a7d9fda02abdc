// A table that sorts, searches, turns pages and downloads.
//
// options: caption, csv (file name), count (rows), name(i), columns: [{key, label, value(i), format,
// text}], fixed() (where given, [key, value] of further columns of the file), shows: [[label, test(i)]] (which rows; the first is the default), pin(i) where names can
// be pinned, hover(i or null).

const PAGE = 20;

class DataTable {
  constructor(host, options) {
    this.options = options;
    this.sort = { column: options.sortBy, down: true };
    this.page = 0;
    this.query = "";
    this.show = 0;
    this.everything = false;
    this.pinned = new Set();
    this.#build(host);
    window.addEventListener("beforeprint", () => { this.everything = true; this.update(); });
    window.addEventListener("afterprint", () => { this.everything = false; this.update(); });
  }

  #build(host) {
    const { caption, columns, shows } = this.options;
    const search = el("input", {
      type: "search", id: newId("search"), placeholder: "Search by name", autocomplete: "off",
      oninput: () => { this.query = search.value.trim().toLowerCase(); this.page = 0; this.update(); },
    });
    const tools = el("div", { class: "tools" },
      el("label", { class: "field grow" }, el("span", {}, "Search"), search));
    if (shows.length > 1) {
      const select = el("select", {
        onchange: () => { this.show = Number(select.value); this.page = 0; this.update(); },
      }, ...shows.map(([label], k) => el("option", { value: k }, label)));
      tools.append(el("label", { class: "field" }, el("span", {}, "Show"), select));
      this.showSelect = select;
    }
    tools.append(el("button", { type: "button", class: "button csv", onclick: () => this.download() }, "Download CSV"));
    this.heads = columns.map((column, k) => {
      const button = el("button", { type: "button", class: "sort", onclick: () => this.sortBy(k) }, column.label);
      return el("th", { scope: "col", class: column.text ? "text" : "number" }, button);
    });
    this.body = el("tbody", {});
    this.table = el("table", { class: columns.length < 4 ? "data narrow" : "data" }, el("caption", {}, caption),
      el("thead", {}, el("tr", {}, ...this.heads)), this.body);
    this.status = el("span", { class: "muted", role: "status" });
    this.back = el("button", { type: "button", class: "button", onclick: () => this.turn(-1) }, "Previous");
    this.on = el("button", { type: "button", class: "button", onclick: () => this.turn(1) }, "Next");
    host.replaceChildren(tools,
      el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, this.table),
      el("div", { class: "pager" }, this.status, this.back, this.on));
  }

  sortBy(k) {
    const column = this.options.columns[k];
    const down = this.sort.column === k ? !this.sort.down : !column.text;
    this.sort = { column: k, down };
    this.page = 0;
    this.update();
    announce("Sorted by " + column.label + ", " + (down ? "descending" : "ascending"));
  }

  turn(step) {
    this.page += step;
    this.update();
  }

  // The rows that are asked for, in order.
  rows() {
    const { count, name, columns, shows } = this.options;
    const test = shows[this.show][1];
    const rows = [];
    for (let i = 0; i < count; i++) {
      if (test(i) && (!this.query || name(i).toLowerCase().includes(this.query))) rows.push(i);
    }
    const { column, down } = this.sort;
    const keys = this.#keys(columns[column], rows);
    const sign = down ? -1 : 1;
    return rows.sort((a, b) => {
      const [x, y] = [keys[a], keys[b]];
      if (x !== x || y !== y) return (x !== x) - (y !== y) || a - b; // NaN: what is missing comes last
      return sign * (x - y) || a - b;
    });
  }

  // What to sort by, as numbers; for text its rank, which is found once.
  #keys(column, rows) {
    const { count } = this.options;
    if (column.text) {
      if (!column.ranks) {
        const collator = new Intl.Collator(undefined, { numeric: true });
        const texts = Array.from({ length: count }, (_, i) => column.value(i));
        const order = texts.map((_, i) => i).sort((a, b) => collator.compare(texts[a], texts[b]) || a - b);
        column.ranks = new Float64Array(count);
        order.forEach((i, rank) => { column.ranks[i] = rank; });
      }
      return column.ranks;
    }
    const keys = new Float64Array(count);
    const size = column.size || column.value;
    for (const i of rows) {
      const key = size(i);
      keys[i] = key === null ? NaN : key;
    }
    return keys;
  }

  update() {
    const rows = this.rows();
    const pages = Math.max(1, Math.ceil(rows.length / PAGE));
    this.page = Math.max(0, Math.min(this.page, pages - 1));
    const first = this.everything ? 0 : this.page * PAGE;
    const shown = rows.slice(first, first + (this.everything ? 10 * PAGE : PAGE));
    this.body.replaceChildren(...shown.map((i) => this.#row(i)));
    if (!shown.length) {
      const text = this.query ? "No name contains “" + this.query + "”." : this.options.empty;
      this.body.append(el("tr", {}, el("td", { colspan: this.heads.length, class: "muted" }, text)));
    }
    this.heads.forEach((head, k) => {
      const order = this.sort.down ? "descending" : "ascending";
      if (k === this.sort.column) head.setAttribute("aria-sort", order);
      else head.removeAttribute("aria-sort");
    });
    const range = shown.length ? `${first + 1}–${first + shown.length} of ${rows.length}` : "0 rows";
    if (this.status.textContent !== range) this.status.textContent = range;
    this.back.disabled = this.page === 0;
    this.on.disabled = this.page >= pages - 1;
  }

  #row(i) {
    const { columns, pin, hover, name } = this.options;
    const cells = columns.map((column) => {
      const value = column.value(i);
      if (column.head) {
        const content = pin
          ? el("button", {
            type: "button", class: "link", "aria-pressed": String(this.pinned.has(i)),
            title: "Highlight in the figure", onclick: () => this.#pin(i),
          }, name(i))
          : value;
        return el("th", { scope: "row", class: "text" }, content);
      }
      return el("td", { class: column.text ? "text" : "number", "data-value": value }, column.format ? column.format(value, i) : num(value));
    });
    const row = el("tr", {}, ...cells);
    if (hover) {
      row.addEventListener("pointerenter", () => hover(i));
      row.addEventListener("pointerleave", () => hover(null));
    }
    return row;
  }

  #pin(i) {
    if (this.pinned.has(i)) this.pinned.delete(i);
    else this.pinned.add(i);
    this.options.pin(this.pinned);
    this.update();
    const again = [...this.body.querySelectorAll("button")].find((b) => b.textContent === this.options.name(i));
    if (again) again.focus();
  }

  csv() {
    const quote = (text) => (/[",\r\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text);
    const write = (value) => (value === null || Number.isNaN(value) ? "" : quote(String(value)));
    const { columns, fixed } = this.options;
    const first = fixed ? fixed() : [];
    const lines = [[...first.map(([key]) => key), ...columns.map((column) => column.key)].map(quote).join(",")];
    for (const i of this.rows()) {
      lines.push([...first.map(([, value]) => value), ...columns.map((column) => column.value(i))].map(write).join(","));
    }
    return lines.join("\r\n") + "\r\n";
  }

  download() {
    download(this.options.csv, this.csv());
  }
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

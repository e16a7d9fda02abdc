// Any other model: its weights, where it has some.

function genericPage() {
  if (!data.coefs) return;
  const coefs = f8(data.coefs);
  const host = el("div", {});
  main.append(section("Features", null, host));
  weightTable(host, coefs.length / data.p, data.classes, (k, j) => coefs[k * data.p + j], "features.csv").update();
}

pages.generic = genericPage;

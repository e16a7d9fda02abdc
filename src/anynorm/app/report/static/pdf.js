// A chart as a PDF of its size, with lines and text: what the charts consist of (lines, paths of
// straight parts, circles, rectangles, text) and nothing else of SVG.  Text is in Helvetica, which
// every reader has; where it has no letter for a name, the file is a picture of the chart.

const PDF_LETTERS = { "−": "\x96", "–": "\x96", "—": "\x97", "…": "\x85", "‘": "\x91", "’": "\x92", "“": "\x93", "”": "\x94", "•": "\x95", "€": "\x80" };

// Text as the bytes of the font; null where it has no letter.
function pdfText(text) {
  const letters = [...text].map((c) => PDF_LETTERS[c] || (/[\x20-\x7e\xa0-\xff]/.test(c) ? c : null));
  return letters.includes(null) ? null : letters.join("").replace(/[\\()]/g, "\\$&");
}

const pdfNumber = (x) => String(Number(x.toFixed(3)));

// A colour as three numbers and its opacity; null for none.
function pdfColour(text) {
  const parts = (text.match(/-?[\d.]+(e-?\d+)?/g) || []).map(Number);
  if (text === "none" || parts.length < 3) return null;
  const share = text.startsWith("color(") ? 1 : 255;
  return { rgb: parts.slice(0, 3).map((v) => pdfNumber(v / share)).join(" "), opacity: parts.length > 3 ? parts[3] : 1 };
}

function pdfPath(d) {
  let x = 0, y = 0;
  const out = [];
  for (const [, command, rest] of d.matchAll(/([MLHVZmlhvz])([^MLHVZmlhvz]*)/g)) {
    const values = (rest.match(/-?[\d.]+(e-?\d+)?/gi) || []).map(Number);
    const kind = command.toUpperCase(), own = command !== kind;
    if (kind === "Z") out.push("h");
    for (let i = 0; i < values.length; i += kind === "H" || kind === "V" ? 1 : 2) {
      if (kind !== "V") x = (own ? x : 0) + values[i];
      if (kind !== "H") y = (own ? y : 0) + values[kind === "V" ? i : i + 1];
      out.push(`${pdfNumber(x)} ${pdfNumber(y)} ${kind === "M" && i === 0 ? "m" : "l"}`);
    }
  }
  return out.join("\n");
}

function pdfCircle(x, y, r) {
  const k = 0.5523 * r; // of four arcs
  const at = (...values) => values.map(pdfNumber).join(" ");
  return [
    at(x + r, y) + " m", at(x + r, y + k, x + k, y + r, x, y + r) + " c", at(x - k, y + r, x - r, y + k, x - r, y) + " c",
    at(x - r, y - k, x - k, y - r, x, y - r) + " c", at(x + k, y - r, x + r, y - k, x + r, y) + " c h",
  ].join("\n");
}

const pdfRuler = document.createElement("canvas").getContext("2d");

function pdfLabel(node, style, get) {
  const shown = node.firstChild && node.firstChild.nodeType === 3 ? node.firstChild.data : "";
  const text = pdfText(shown);
  if (text === null) return null;
  const size = parseFloat(style.fontSize), bold = Number(style.fontWeight) >= 600;
  pdfRuler.font = `${bold ? "bold " : ""}${size}px Helvetica, Arial, sans-serif`;
  const anchor = { end: 1, middle: 0.5 }[style.textAnchor] || 0;
  const x = get("x") - anchor * pdfRuler.measureText(shown).width;
  return `BT /${bold ? "B" : "R"} ${pdfNumber(size)} Tf 1 0 0 -1 ${pdfNumber(x)} ${pdfNumber(get("y"))} Tm (${text}) Tj ET`;
}

// The drawing of a chart in the language of PDF, and its opacities; null where a letter is missing.
function pdfDrawing(chart, paper) {
  const box = chart.viewBox.baseVal, opacities = new Map();
  const out = [`1 0 0 -1 0 ${pdfNumber(box.height)} cm`, `${pdfColour(paper).rgb} rg 0 0 ${pdfNumber(box.width)} ${pdfNumber(box.height)} re f`];
  for (const node of chart.querySelectorAll("line, path, circle, rect, text")) {
    const style = getComputedStyle(node), get = (name) => Number(node.getAttribute(name) || 0);
    if (style.display === "none" || style.visibility === "hidden") continue;
    const fill = node.tagName === "line" ? null : pdfColour(style.fill);
    const stroke = node.tagName === "text" ? null : pdfColour(style.stroke);
    const at = [fill && fill.opacity * style.fillOpacity * style.opacity, stroke && stroke.opacity * style.strokeOpacity * style.opacity].map((v) => pdfNumber(v || 0));
    if (!Number(at[0]) && !Number(at[1])) continue;
    const shape = {
      line: () => pdfPath(`M${get("x1")} ${get("y1")}L${get("x2")} ${get("y2")}`),
      path: () => pdfPath(node.getAttribute("d") || ""),
      circle: () => pdfCircle(get("cx"), get("cy"), parseFloat(style.r) || get("r")),
      rect: () => ["x", "y", "width", "height"].map((name) => pdfNumber(get(name))).join(" ") + " re",
      text: () => pdfLabel(node, style, get),
    }[node.tagName]();
    if (shape === null) return null;
    if (!shape) continue;
    const key = at.join(" ");
    if (!opacities.has(key)) opacities.set(key, "G" + opacities.size);
    const dashes = style.strokeDasharray === "none" ? "" : style.strokeDasharray.split(/[, ]+/).map(parseFloat).map(pdfNumber).join(" ");
    const turn = node.transform.baseVal.numberOfItems ? node.transform.baseVal.consolidate().matrix : null;
    const paint = node.tagName === "text" ? "" : Number(at[0]) ? (Number(at[1]) ? "B" : "f") : "S";
    out.push("q", `/${opacities.get(key)} gs`, turn ? `${["a", "b", "c", "d", "e", "f"].map((k) => pdfNumber(turn[k])).join(" ")} cm` : "",
      fill ? fill.rgb + " rg" : "", stroke ? `${stroke.rgb} RG ${pdfNumber(parseFloat(style.strokeWidth))} w 1 j [${dashes}] 0 d` : "", shape, paint, "Q");
  }
  const states = [...opacities].map(([key, name]) => `/${name} << /ca ${key.split(" ")[0]} /CA ${key.split(" ")[1]} >>`).join(" ");
  return { content: out.filter(Boolean).join("\n"), states };
}

// A file of one page: `content` draws it, with more objects that `resources` names from 7 on.
function pdfFile(width, height, content, resources, more = []) {
  const font = (name) => `<< /Type /Font /Subtype /Type1 /BaseFont /${name} /Encoding /WinAnsiEncoding >>`;
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 ${pdfNumber(width)} ${pdfNumber(height)}] /Contents 4 0 R /Resources << /Font << /R 5 0 R /B 6 0 R >> ${resources} >> >>`,
    `<< /Length ${content.length} >>\nstream\n${content}\nendstream`, font("Helvetica"), font("Helvetica-Bold"), ...more,
  ];
  let text = "%PDF-1.4\n";
  const places = objects.map((object, i) => {
    const place = text.length;
    text += `${i + 1} 0 obj\n${object}\nendobj\n`;
    return String(place).padStart(10, "0") + " 00000 n \n";
  });
  text += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${places.join("")}trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${text.length}\n%%EOF\n`;
  return new Blob([Uint8Array.from(text, (c) => c.charCodeAt(0))], { type: "application/pdf" });
}

// A chart as a PDF; `canvasOf` draws it as a picture where it cannot be drawn otherwise.
async function chartPdf(chart, paper, canvasOf) {
  const box = chart.viewBox.baseVal, drawing = pdfDrawing(chart, paper);
  if (drawing) return pdfFile(box.width, box.height, drawing.content, `/ExtGState << ${drawing.states} >>`);
  const canvas = await canvasOf();
  const picture = atob(canvas.toDataURL("image/jpeg", 0.95).split(",")[1]);
  const image = `<< /Type /XObject /Subtype /Image /Width ${canvas.width} /Height ${canvas.height} /ColorSpace /DeviceRGB /BitsPerComponent 8 /Filter /DCTDecode /Length ${picture.length} >>\nstream\n${picture}\nendstream`;
  return pdfFile(box.width, box.height, `${pdfNumber(box.width)} 0 0 ${pdfNumber(box.height)} 0 0 cm /I Do`, "/XObject << /I 7 0 R >>", [image]);
}

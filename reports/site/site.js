// Tables of the site: sorted by a click on a heading, filtered by a word, and saved as
// CSV or Markdown. Without this script everything is there to be read.
"use strict";

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const UNITS = { "µs": 1e-6, "ms": 1e-3, "s": 1, "%": 0.01 };

// The number that a cell begins with, as the report writes numbers; NaN if there is none.
function valueOf(cell) {
  if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
  let text = firstLine(cell).replace(/[ε δμ≥=<>±\s]+/u, "").replace(/−/g, "-");
  if (text.startsWith("∞")) return Infinity;
  text = text.replace(/10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)/u, (_, power) =>
    "1e" + [...power].map((c) => (c === "⁻" ? "-" : SUPERSCRIPTS.indexOf(c))).join(""));
  text = text.replace(/\s*×\s*1e/u, "e").replace(/(\d),(?=\d{3})/g, "$1");
  const found = /^-?\d+(\.\d+)?(e-?\d+)?/u.exec(text);
  if (!found) return NaN;
  const unit = /^\s*(µs|ms|s|%)(?![a-zµ])/u.exec(text.slice(found[0].length));
  return Number(found[0]) * (unit ? UNITS[unit[1]] : 1);
}

// What a cell says first: without the small print.
function firstLine(cell) {
  const copy = cell.cloneNode(true);
  copy.querySelectorAll("small").forEach((each) => each.remove());
  copy.querySelectorAll("br").forEach((each) => each.replaceWith(" "));
  return copy.textContent.trim();
}

function wholeText(cell) {
  const copy = cell.cloneNode(true);
  copy.querySelectorAll("br").forEach((each) => each.replaceWith(", "));
  copy.querySelectorAll("small").forEach((each) => each.prepend(" – "));
  return copy.textContent.replace(/\s+/gu, " ").trim();
}

function sort(table, column, heading) {
  const ascending = heading.getAttribute("aria-sort") !== "ascending";
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row, place) => {
    const cell = row.cells[column];
    return { row, place, value: cell ? valueOf(cell) : NaN, text: cell ? firstLine(cell) : "" };
  });
  const numbers = rows.filter((each) => !Number.isNaN(each.value)).length > rows.length / 2;
  rows.sort((a, b) => {
    let order;
    if (!numbers) order = a.text.localeCompare(b.text, "en", { numeric: true });
    else if (Number.isNaN(a.value) || Number.isNaN(b.value)) {
      // What is not known comes last, either way.
      return Number.isNaN(a.value) - Number.isNaN(b.value) || a.place - b.place;
    } else order = a.value < b.value ? -1 : a.value > b.value ? 1 : 0;
    return (ascending ? order : -order) || a.place - b.place;
  });
  for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  body.append(...rows.map((each) => each.row));
}

function filter(table, words, told) {
  const wanted = words.toLowerCase().split(/\s+/u).filter(Boolean);
  let shown = 0;
  for (const row of table.tBodies[0].rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !wanted.every((word) => text.includes(word));
    shown += !row.hidden;
  }
  told.textContent = wanted.length ? `${shown} of ${table.tBodies[0].rows.length} rows` : "";
}

function lines(table) {
  const rows = [table.tHead.rows[0], ...table.tBodies[0].rows].filter((row) => !row.hidden);
  return rows.map((row) => [...row.cells].map(wholeText));
}

function csv(table) {
  // A spreadsheet would take these for formulas.
  const safe = (text) => (/^[=+\-@]/u.test(text) && Number.isNaN(Number(text)) ? "'" : "") + text;
  const cell = (text) => `"${safe(text).replace(/"/g, '""')}"`;
  return lines(table).map((row) => row.map(cell).join(",")).join("\n") + "\n";
}

function markdown(table) {
  const cell = (text) => text.replace(/[\\`*_[\]<>|&~$]/g, "\\$&");
  const [head, ...rest] = lines(table).map((row) => `| ${row.map(cell).join(" | ")} |`);
  const rule = `|${"---|".repeat(table.tHead.rows[0].cells.length)}`;
  return [head, rule, ...rest].join("\n") + "\n";
}

function save(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function button(text, act) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.addEventListener("click", act);
  return made;
}

document.querySelectorAll("main table").forEach((table, number) => {
  if (!table.tHead || !table.tBodies.length) return;
  const page = location.pathname.split("/").pop().replace(/\.html$/u, "") || "table";
  const name = `${page}-table-${number + 1}`;
  table.id = table.id || `table-${number + 1}`;
  const bar = document.createElement("div");
  bar.className = "table-bar";
  if (table.tBodies[0].rows.length > 8) {
    const told = document.createElement("span");
    told.setAttribute("role", "status");
    const input = document.createElement("input");
    input.type = "search";
    input.className = "filter";
    input.placeholder = "Filter rows";
    input.setAttribute("aria-label", "Filter the rows of this table");
    input.setAttribute("aria-controls", table.id);
    input.addEventListener("input", () => filter(table, input.value, told));
    bar.append(input, told);
  }
  bar.append(
    button("CSV", () => save(`${name}.csv`, "text/csv", csv(table))),
    button("Markdown", () => save(`${name}.md`, "text/markdown", markdown(table))),
  );
  (table.closest(".wide-table") || table).before(bar);
  if (table.tBodies[0].rows.length < 2) return;
  table.classList.add("sortable");
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const made = button(heading.textContent, () => sort(table, column, heading));
    made.title = "Sort by this column";
    heading.replaceChildren(made);
  });
});

// Tables of the site: sorted by a click on a heading, filtered by words and by columns,
// and saved as CSV or Markdown; errors at the setting that is chosen on the first page;
// and what stands beside words and marks, for a finger and a keyboard, too. Without this
// script everything is there to be read.
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
  copy.querySelectorAll(".term").forEach((each) => each.remove());
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
  const kept = rows.some(({ row }) => row.cells[column]?.dataset.value !== undefined);
  const known = rows.filter((each) => !Number.isNaN(each.value)).length;
  const numbers = kept || known > rows.length / 2;
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

// Rows that have all of the words, and what is chosen of each column.
function filter(table, bar, told) {
  const wanted = bar.querySelector("input").value.toLowerCase().split(/\s+/u).filter(Boolean);
  const chosen = [...bar.querySelectorAll("select")].filter((each) => each.value);
  let shown = 0;
  for (const row of table.tBodies[0].rows) {
    const text = row.textContent.toLowerCase();
    const fits = (each) => firstLine(row.cells[Number(each.dataset.column)]) === each.value;
    row.hidden = !(wanted.every((word) => text.includes(word)) && chosen.every(fits));
    shown += !row.hidden;
  }
  const all = table.tBodies[0].rows.length;
  told.textContent = wanted.length || chosen.length ? `${shown} of ${all} rows` : "";
}

// A list of all that a column has, to choose one of.
function choice(table, heading, column) {
  const made = document.createElement("select");
  made.dataset.column = column;
  made.setAttribute("aria-label", heading.dataset.filter);
  const values = new Set([...table.tBodies[0].rows].map((row) => firstLine(row.cells[column])));
  made.append(new Option(heading.dataset.filter, ""));
  made.append(...[...values].filter(Boolean).map((each) => new Option(each)));
  return made;
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

document.querySelectorAll("main table:not(.plain)").forEach((table, number) => {
  if (!table.tHead || !table.tBodies.length) return;
  const page = location.pathname.split("/").pop().replace(/\.html$/u, "") || "table";
  const name = `${page}-table-${number + 1}`;
  const headings = [...table.tHead.rows[0].cells];
  table.id = table.id || `table-${number + 1}`;
  const bar = document.createElement("div");
  bar.className = "table-bar";
  if (table.tBodies[0].rows.length > 8) {
    const told = document.createElement("span");
    told.setAttribute("role", "status");
    const input = document.createElement("input");
    input.type = "search";
    input.className = "filter";
    input.placeholder = "Search";
    input.setAttribute("aria-label", "Search the rows of this table");
    input.setAttribute("aria-controls", table.id);
    bar.append(input);
    headings.forEach((heading, column) => {
      if (heading.dataset.filter) bar.append(choice(table, heading, column));
    });
    bar.append(told);
    bar.addEventListener("input", () => filter(table, bar, told));
  }
  bar.append(
    button("CSV", () => save(`${name}.csv`, "text/csv", csv(table))),
    button("Markdown", () => save(`${name}.md`, "text/markdown", markdown(table))),
  );
  (table.closest(".wide-table, .box") || table).before(bar);
  if (table.tBodies[0].rows.length < 2) return;
  table.classList.add("sortable");
  headings.forEach((heading, column) => {
    const term = heading.querySelector(".term");
    const made = button(wholeText(heading), () => sort(table, column, heading));
    made.title = "Sort by this column";
    heading.replaceChildren(made, ...(term ? [" ", term] : []));
  });
});

// The first page: errors at the setting that is chosen, of a grid that was measured.
const setting = document.getElementById("setting");

function measured({ axes, errors }, point) {
  const place = (at) => Object.keys(axes).reduce((whole, axis) =>
    whole * axes[axis].length + axes[axis].indexOf(axis === "delta" ? at : point[axis]), 0);
  const found = new Map();
  for (const [name, all] of Object.entries(errors)) {
    // A pure claim holds with any delta.
    const three = all[place(0)] || all[place(point.delta)];
    if (three) found.set(name, three.split(" "));
  }
  return found;
}

function decide(grid) {
  const point = {};
  for (const each of setting.querySelectorAll("select")) point[each.name] = Number(each.value);
  for (const each of setting.elements.signal.options) {
    const rows = Math.round(Number(each.value) * 10 * point.k / point.epsilon);
    each.textContent = rows.toLocaleString("en");
  }
  const found = measured(grid, point);
  for (const row of document.querySelectorAll("tr[data-name]")) {
    const cell = row.querySelector(".error");
    const three = found.get(row.dataset.name);
    delete cell.dataset.value;
    cell.firstElementChild.textContent = three ? three[1] : "not measured";
    if (!three) continue;
    cell.dataset.value = three[1];
    const between = document.createElement("small");
    between.textContent = `${three[0]} to ${three[2]}`;
    cell.firstElementChild.append(between);
  }
  for (const each of document.querySelectorAll("[data-take]")) {
    const delta = each.dataset.take === "pure" ? 0 : point.delta;
    const all = [...measured(grid, { ...point, delta })].filter(([name]) => !grid.fell.includes(name));
    const [name, three] = all.sort((a, b) => a[1][1] - b[1][1])[0] ?? ["nothing"];
    const link = document.createElement(grid.paths[name] ? "a" : "span");
    link.textContent = name;
    if (grid.paths[name]) link.href = grid.paths[name];
    each.replaceChildren(link, three ? `: error ${three[1]} (${three[0]} to ${three[2]})` : ": not measured");
  }
}

if (setting) {
  const grid = JSON.parse(document.getElementById("grid").textContent);
  for (const name of Object.keys(grid.errors)) grid.errors[name] = grid.errors[name].split(",");
  setting.addEventListener("input", () => decide(grid));
  setting.addEventListener("submit", (event) => event.preventDefault());
}

// What stands beside words and marks: shown for a pointer, a finger and the keyboard.
const beside = document.createElement("div");
beside.className = "beside";
beside.hidden = true;
beside.setAttribute("role", "status");
document.body.append(beside);

function hush() {
  beside.hidden = true;
  document.querySelector(".spoken")?.classList.remove("spoken");
}

function speak(element, text) {
  hush();
  beside.textContent = text;
  beside.hidden = false;
  if (element.closest(".told")) element.classList.add("spoken");
  const at = element.getBoundingClientRect();
  const [wide, high] = [beside.offsetWidth, beside.offsetHeight];
  const left = Math.min(Math.max(at.left + at.width / 2 - wide / 2, 8), innerWidth - wide - 8);
  const above = Math.max(at.top, 0) - high - 8;
  beside.style.left = `${Math.max(left, 8)}px`;
  beside.style.top = `${above > 8 ? above : Math.min(at.bottom + 8, innerHeight - high - 8)}px`;
}

document.addEventListener("keydown", (event) => { if (event.key === "Escape") hush(); });
addEventListener("scroll", hush, { passive: true });

document.querySelectorAll(".term").forEach((term) => {
  const text = term.title;
  term.removeAttribute("title");
  term.setAttribute("aria-description", text);
  for (const how of ["pointerenter", "focus"]) term.addEventListener(how, () => speak(term, text));
  for (const how of ["pointerleave", "blur"]) term.addEventListener(how, hush);
  // The first tap tells, a click on what is told already leads to the glossary.
  let told = true;
  term.addEventListener("pointerdown", (event) => { told = event.pointerType !== "touch" || !beside.hidden; });
  term.addEventListener("click", (event) => { if (!told) event.preventDefault(); });
});

// A closer look at a figure of many marks: buttons, a double click, drags, and keys.
const MANY = 40;
const STEP = 1.6;
const CLOSEST = 12;

function closer(svg) {
  const whole = svg.getAttribute("viewBox").split(" ").map(Number);
  let view = whole;
  let drag = null;
  const factor = () => whole[2] / view[2];
  const units = () => view[2] / svg.getBoundingClientRect().width;
  const middle = () => [view[0] + view[2] / 2, view[1] + view[3] / 2];
  const place = (event) => {
    const box = svg.getBoundingClientRect();
    return [view[0] + (event.clientX - box.left) * units(), view[1] + (event.clientY - box.top) * units()];
  };
  // What is at [x, y] stays where it is.
  const look = (wanted, [x, y]) => {
    const to = Math.min(Math.max(wanted, 1), CLOSEST);
    const [wide, high] = [whole[2] / to, whole[3] / to];
    const [left, top] = [x - (x - view[0]) * wide / view[2], y - (y - view[1]) * high / view[3]];
    move(left, top, wide, high);
  };
  const move = (left, top, wide, high) => {
    hush();
    view = [
      Math.min(Math.max(left, whole[0]), whole[0] + whole[2] - wide),
      Math.min(Math.max(top, whole[1]), whole[1] + whole[3] - high), wide, high,
    ];
    svg.setAttribute("viewBox", view.join(" "));
    svg.classList.toggle("closer", factor() > 1);
    for (const each of [out, all]) each.disabled = factor() <= 1;
    more.disabled = factor() >= CLOSEST;
  };
  const more = button("+", () => look(factor() * STEP, middle()));
  const out = button("−", () => look(factor() / STEP, middle()));
  const all = button("Whole figure", () => look(1, middle()));
  more.setAttribute("aria-label", "Zoom in");
  out.setAttribute("aria-label", "Zoom out");
  const bar = document.createElement("div");
  bar.className = "table-bar zoom";
  bar.append(all, out, more);  // which stays where it is
  svg.before(bar);
  out.disabled = all.disabled = true;
  svg.addEventListener("dblclick", (event) => look(factor() * STEP, place(event)));
  svg.addEventListener("pointerdown", (event) => {
    if (factor() <= 1) return;
    event.preventDefault();  // or words are marked, and dragged
    drag = place(event);
  });
  for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => { drag = null; });
  svg.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const [x, y] = place(event);
    move(view[0] + drag[0] - x, view[1] + drag[1] - y, view[2], view[3]);
  });
  const keys = { "+": more, "=": more, "-": out, "0": all };
  svg.addEventListener("keydown", (event) => keys[event.key]?.click());
  // Brings a mark into view.
  return (mark) => {
    const [box, frame] = [mark.getBoundingClientRect(), svg.getBoundingClientRect()];
    const inside = box.left >= frame.left && box.right <= frame.right && box.top >= frame.top && box.bottom <= frame.bottom;
    if (factor() <= 1 || inside) return;
    const [x, y] = place({ clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 });
    move(x - view[2] / 2, y - view[3] / 2, view[2], view[3]);
  };
}

// A figure: the mark that is nearest to a pointer speaks, and arrows lead through all.
const FAR = 40;
let spoken = [];  // of the figure for wide screens: that for phones refers to it
document.querySelectorAll("svg .told").forEach((group) => {
  const svg = group.ownerSVGElement;
  const marks = [...group.children];
  const texts = marks.map((each) => each.textContent || spoken[Number(each.dataset.as)]);
  marks.forEach((each) => each.replaceChildren());  // or the browser says it, too
  if (svg.parentElement.matches(".wide")) spoken = texts;
  let chosen = -1;
  const show = marks.length < MANY ? () => {} : closer(svg);
  const tell = (number) => {
    chosen = number;
    show(marks[number]);
    speak(marks[number], texts[number]);
  };
  const near = (event) => {
    if (event.buttons && svg.matches(".closer")) return;  // it is dragged
    const away = marks.map((each) => {
      const box = each.getBoundingClientRect();
      const x = Math.max(box.left - event.clientX, 0, event.clientX - box.right);
      const y = Math.max(box.top - event.clientY, 0, event.clientY - box.bottom);
      const middle = Math.hypot(box.left + box.width / 2 - event.clientX, box.top + box.height / 2 - event.clientY);
      // Of marks that overlap, the one whose middle is nearest; a panel after all.
      return [Math.hypot(x, y), each.localName === "rect" && box.width > 60 ? 1e4 + middle : middle];
    });
    const there = marks.map((_, i) => i).filter((i) => away[i][0] < (event.pointerType === "touch" ? 1.5 : 1) * FAR);
    there.sort((a, b) => away[a][1] - away[b][1]);
    if (there.length) tell(there[0]);
    else hush();
  };
  svg.addEventListener("pointermove", near);
  svg.addEventListener("pointerdown", near);
  svg.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") hush(); });
  svg.setAttribute("tabindex", "0");
  svg.addEventListener("focus", () => { if (svg.matches(":focus-visible")) tell(Math.max(chosen, 0)); });
  svg.addEventListener("blur", hush);
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    tell((chosen + step + marks.length) % marks.length);
  });
});

// A printed page shows what is folded.
addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll("details")) each.open = true;
});

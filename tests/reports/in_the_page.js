/* What a page says of itself in a browser: functions that return sentences, one for
 * everything that is wrong. The tests evaluate this object in each page that they visit. */
({
  /* Pictures and figures of which a screen reader has nothing to say. */
  unnamed() {
    const named = "[aria-label], [aria-labelledby], [title]";
    const silent = "[aria-hidden=true], [role=none], [role=presentation], [hidden], svg svg";
    const spoken = `label, [role]:is(${named}), :is(a, button, summary):is(${named})`;
    return [...document.querySelectorAll("svg, figure")]
      .filter((each) => !each.matches(named) && each.checkVisibility())
      .filter((each) => !each.querySelector(each.matches("svg") ? "title" : "figcaption"))
      .filter((each) => !each.closest(silent) && !each.parentElement.closest(spoken))
      .filter((each) => !each.closest("a, button, summary")?.textContent.trim())
      .map((each) => `a ${each.localName}, '${each.id}', has no name`);
  },

  /* Text whose colour is too near to what is behind it: WCAG 2, level AA. */
  contrast() {
    const canvas = document.createElement("canvas").getContext("2d", {
      willReadFrequently: true,
    });
    const known = new Map();
    // Red, green and blue from 0 to 255, alpha from 0 to 1, however CSS writes a colour.
    const parsed = (colour) => {
      if (!known.has(colour)) {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
        known.set(colour, [r, g, b, a / 255]);
      }
      return known.get(colour);
    };
    const over = ([r, g, b, a], below) =>
      [r, g, b].map((each, i) => each * a + below[i] * (1 - a));
    const luminance = (colour) => {
      const [r, g, b] = colour.map((each) => {
        const share = each / 255;
        return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const hex = (colour) =>
      "#" + colour.map((c) => Math.round(c).toString(16).padStart(2, "0")).join("");

    const opacity = (element, top) => {
      let product = 1;
      for (let at = element; at && at !== top; at = at.parentElement) {
        product *= Number(getComputedStyle(at).opacity);
      }
      return product;
    };
    const faded = ([r, g, b, a], by) => [r, g, b, a * by];

    // The shapes of a picture, in the order in which they are painted.
    const pictures = new Map();
    const shapes = (svg) => {
      if (!pictures.has(svg)) {
        const all = svg.querySelectorAll("path, rect, circle, ellipse, polygon");
        const painted = [];
        for (const shape of all) {
          if (shape.closest("defs, clipPath, marker, symbol")) continue;
          const style = getComputedStyle(shape);
          if (style.fill === "none") continue;
          const by = Number(style.fillOpacity) * opacity(shape, svg);
          const colour = faded(parsed(style.fill), by);
          if (colour[3] > 0) painted.push([shape, shape.getBoundingClientRect(), colour]);
        }
        pictures.set(svg, painted);
      }
      return pictures.get(svg);
    };
    const covers = (shape, box, x, y) => {
      if (x < box.left || x > box.right || y < box.top || y > box.bottom) return false;
      const point = new DOMPoint(x, y).matrixTransform(shape.getScreenCTM().inverse());
      return shape.isPointInFill(point);
    };

    const page = document.createElement("div");
    page.style.background = "Canvas";
    document.body.append(page);
    const paper = parsed(getComputedStyle(page).backgroundColor);
    page.remove();

    // What is behind the middle of a text, from the top down to what is opaque.
    const behind = (element, x, y) => {
      const layers = [];
      const svg = element.closest("svg");
      if (svg) {
        for (const [shape, box, colour] of shapes(svg)) {
          const after = shape.compareDocumentPosition(element);
          if (after & Node.DOCUMENT_POSITION_FOLLOWING && covers(shape, box, x, y)) {
            layers.unshift(colour);
          }
        }
      }
      for (let at = svg ?? element; at; at = at.parentElement) {
        layers.push(faded(parsed(getComputedStyle(at).backgroundColor), opacity(at)));
      }
      return layers.reverse().reduce((below, layer) => over(layer, below), paper);
    };
    const clipped = (element) => {
      for (let at = element; at && !at.closest("svg"); at = at.parentElement) {
        if (at.clientWidth <= 1 && getComputedStyle(at).overflow !== "visible") {
          return at.clientWidth > 0 || getComputedStyle(at).display !== "inline";
        }
      }
      return false;
    };

    const found = new Map();
    const range = document.createRange();
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const element = node.parentElement;
      if (!/\S/.test(node.data)) continue;
      if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) {
        continue;
      }
      range.selectNodeContents(node);
      const box = range.getBoundingClientRect();
      if (!box.width || !box.height || clipped(element)) continue;
      const style = getComputedStyle(element);
      const drawn = element.closest("svg") !== null;
      if (drawn && style.fill === "none") continue;
      const below = behind(element, box.x + box.width / 2, box.y + box.height / 2);
      const by = opacity(element) * (drawn ? Number(style.fillOpacity) : 1);
      const ink = over(faded(parsed(drawn ? style.fill : style.color), by), below);
      const [high, low] = [luminance(ink), luminance(below)].sort((a, b) => b - a);
      const ratio = (high + 0.05) / (low + 0.05);
      const scale = drawn ? Math.abs(element.getScreenCTM?.().a ?? 1) : 1;
      const size = Number.parseFloat(style.fontSize) * scale;
      const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
      const needed = large ? 3 : 4.5;
      if (ratio >= needed) continue;
      const pair = `${hex(ink)} on ${hex(below)}`;
      const text = node.data.trim().slice(0, 40);
      const more = (found.get(pair)?.more ?? -1) + 1;
      const first = found.get(pair)?.first ?? text;
      found.set(pair, { first, more, ratio, needed });
    }
    return [...found].map(
      ([pair, { first, more, ratio, needed }]) =>
        `'${first}' and ${more} more: contrast ${ratio.toFixed(2)} (${pair}), ` +
        `not ${needed}`,
    );
  },

  /* Text and pictures that stick out of the window, if one can scroll sideways. */
  sideways() {
    const [wide, there] = [document.documentElement.scrollWidth, window.innerWidth];
    if (wide <= there) return [];
    const culprits = [];
    const range = document.createRange();
    const shown = NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT;
    const walker = document.createTreeWalker(document.body, shown);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (node.firstElementChild || node.parentElement.closest("svg")) continue;
      range.selectNode(node);
      if (range.getBoundingClientRect().right > there + 0.5) {
        culprits.push(`'${(node.data ?? `<${node.localName}>`).trim().slice(0, 40)}'`);
      }
    }
    const some = [...new Set(culprits)].slice(0, 3).join(", ") || "something empty";
    return [`${wide} of ${there} pixels are filled by ${some}`];
  },

  /* Navigation that would be printed: in sight on a sheet of paper. */
  printed() {
    const all = document.querySelectorAll("nav, [role=navigation], [role=search], .filter");
    const onPaper = (box) => box.right > 0 && box.left < window.innerWidth;
    return [...all]
      .filter((each) => each.checkVisibility() && onPaper(each.getBoundingClientRect()))
      .map((each) => `${each.outerHTML.split(">")[0].slice(0, 60)}> is printed`);
  },

  /* Whether the beginning of an element can be seen, and nothing lies upon it. */
  inSight(id) {
    const target = document.getElementById(id);
    const box = target?.getBoundingClientRect();
    if (!box || box.top < -1 || box.top >= window.innerHeight) return false;
    const hit = document.elementFromPoint(box.left + 2, box.top + Math.min(8, box.height / 2));
    return hit !== null && (target.contains(hit) || hit.contains(target));
  },

  /* How many screens the page is high, if these are more than it may be. */
  height(most) {
    const screens = document.documentElement.scrollHeight / window.innerHeight;
    return screens > most ? [`${screens.toFixed(1)} screens, more than ${most}`] : [];
  },

  /* What is not in the first 900 pixels of the page: who fell, and what to take. */
  beginning(most = 900) {
    const wanted = ["#fell h2", "#fell :is(tbody tr:last-child, p)", "#take h2", "#taken"];
    return wanted.filter((each) => {
      const box = document.querySelector(each)?.getBoundingClientRect();
      return !(box?.height > 0 && box.bottom + window.scrollY <= most);
    });
  },

  /* Marks and terms that say nothing if they are touched, or reached by the keyboard. */
  silent() {
    const found = [];
    const told = () => {
      const beside = document.querySelector(".beside");
      return beside?.checkVisibility() ? beside.textContent.trim() : "";
    };
    for (const group of document.querySelectorAll("svg .told")) {
      const svg = group.ownerSVGElement;
      if (!svg.checkVisibility()) continue;
      const mark = group.lastElementChild.getBoundingClientRect();
      const place = { clientX: mark.x + mark.width / 2, clientY: mark.y + mark.height / 2 };
      svg.dispatchEvent(new PointerEvent("pointerdown", { ...place, pointerType: "touch" }));
      const touched = told();
      svg.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft" }));
      const reached = told();
      document.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
      if (!touched) found.push(`${svg.id}: a touch says nothing`);
      const several = group.children.length > 1;
      if (svg.tabIndex !== 0 || !reached || (several && reached === touched)) {
        found.push(`${svg.id}: the keyboard says '${reached}' after '${touched}'`);
      }
      if (told()) found.push(`${svg.id}: Escape does not end it`);
    }
    for (const term of document.querySelectorAll(".term")) {
      if (!term.checkVisibility()) continue;
      term.dispatchEvent(new FocusEvent("focus"));
      const said = told();
      term.dispatchEvent(new FocusEvent("blur"));
      if (!said || told()) found.push(`the term ${term.ariaLabel} says '${said}'`);
    }
    return found;
  },

  /* All that is folded is shown. */
  unfold() {
    for (const each of document.querySelectorAll("details")) each.open = true;
  },

  background() {
    const colours = [document.body, document.documentElement].map(
      (each) => getComputedStyle(each).backgroundColor,
    );
    return colours.find((each) => each !== "rgba(0, 0, 0, 0)") ?? "";
  },

  /* The words that one can read, but for those on buttons, which scripts may make. */
  words() {
    const main = document.querySelector("main, [role=main]") ?? document.body;
    const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
    const found = [];
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const element = node.parentElement;
      if (element.closest("button, [role=status]") || !element.checkVisibility()) continue;
      found.push(...node.data.split(/\s+/).filter(Boolean));
    }
    return found;
  },

  /* The links that one can click on: where they are among all, and where they lead. */
  links() {
    return [...document.querySelectorAll("a[href]")].flatMap((link, place) => {
      const box = link.getBoundingClientRect();
      const beside = box.right <= 0 || box.left >= window.innerWidth;
      const there = box.width > 1 && !beside && box.bottom + window.scrollY > 0;
      const seen = { opacityProperty: true, visibilityProperty: true };
      return there && link.checkVisibility(seen) ? [[place, link.href]] : [];
    });
  },

  /* Filters that do not filter: a word of the last row is typed, another, and none. */
  filters() {
    const found = [];
    for (const field of document.querySelectorAll("input.filter")) {
      const table = document.getElementById(field.getAttribute("aria-controls"));
      const rows = [...(table?.tBodies[0]?.rows ?? [])];
      const name = table?.id ?? "a table";
      if (!rows.length) {
        found.push(`${name}: there is nothing to filter`);
        continue;
      }
      const texts = rows.map((row) => row.textContent.toLowerCase());
      const last = texts.at(-1).trim().split(/\s+/)[0];
      for (const word of [last, "no such word", ""]) {
        field.value = word.toUpperCase();
        field.dispatchEvent(new Event("input", { bubbles: true }));
        const wrong = rows.filter(
          (row, i) => row.checkVisibility() !== texts[i].includes(word),
        );
        if (wrong.length) found.push(`${name}: ${wrong.length} rows are wrong for '${word}'`);
      }
    }
    return found;
  },

  /* Tables that do not sort: each column is clicked on twice. */
  sorting() {
    const found = [];
    // What a cell says, without its small print.
    const text = (cell) => {
      const copy = cell?.cloneNode(true) ?? document.createElement("td");
      copy.querySelectorAll("small").forEach((each) => each.remove());
      return copy.textContent.replace(/\s+/g, " ").trim();
    };
    const digits = "⁰¹²³⁴⁵⁶⁷⁸⁹";
    const units = { "%": 0.01, "µs": 1e-6, ms: 1e-3, s: 1, "": 1 };
    const written =
      /^(−|-)?(?:(∞)|(\d[\d,]*(?:\.\d+)?)?(?:(?: × |^)10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?) ?(%|µs|ms|s)?$/;
    const number = (cell) => {
      if (cell?.dataset.value) return Number(cell.dataset.value);
      const found = written.exec(text(cell).replace(/^[≥≤<>=] ?/, ""));
      if (!found || !found[0]) return Number.NaN;
      const [, minus, infinite, digitsBefore, power = "⁰", unit = ""] = found;
      const exponent = [...power].map((c) => (c === "⁻" ? "-" : digits.indexOf(c))).join("");
      const plain = infinite ? Infinity : Number((digitsBefore ?? "1").replaceAll(",", ""));
      return (minus ? -1 : 1) * plain * 10 ** Number(exponent) * units[unit];
    };
    // Two neighbours in the wrong order. A column of numbers and of words without any
    // digit is sorted by number; what the order of other mixtures is, is not for here.
    const outOfOrder = (cells, sign) => {
      const numbers = cells.map(number).filter((each) => !Number.isNaN(each));
      const words = cells.filter((each) => Number.isNaN(number(each))).map(text);
      const kept = cells.some((each) => each?.dataset.value);
      const numeric = kept || numbers.length > cells.length / 2;
      if (words.some((each) => /\d/.test(each)) || (numbers.length && !numeric)) return null;
      const [all, compare] = numeric
        ? [numbers, (a, b) => Math.sign(a - b || 0)]
        : [words, (a, b) => a.localeCompare(b, "en")];
      for (let i = 1; i < all.length; i++) {
        if (compare(all[i], all[i - 1]) * sign < 0) return `${all[i]} follows ${all[i - 1]}`;
      }
      return null;
    };
    for (const table of document.querySelectorAll("table.sortable")) {
      const name = table.id || table.caption?.textContent.trim() || "a table";
      const body = table.tBodies[0];
      const before = [...body.rows];
      for (const header of table.tHead.rows[0].cells) {
        const column = header.cellIndex;
        const what = `${name}, column '${header.textContent.trim()}'`;
        const seen = [];
        for (const click of ["first", "second"]) {
          (header.querySelector("button") ?? header).click();
          const told = header.getAttribute("aria-sort");
          seen.push(told);
          if (!["ascending", "descending"].includes(told)) {
            found.push(`${what}: aria-sort is ${told} after the ${click} click`);
            continue;
          }
          const others = [...table.tHead.rows[0].cells].filter(
            (each) => each !== header && /ending$/.test(each.getAttribute("aria-sort") ?? ""),
          );
          if (others.length) found.push(`${what}: another column says aria-sort, too`);
          const rows = [...body.rows];
          if (rows.length !== before.length || !rows.every((row) => before.includes(row))) {
            found.push(`${what}: rows got lost`);
          }
          const cells = rows.map((row) => row.cells[column]);
          const order = outOfOrder(cells, told === "ascending" ? 1 : -1);
          if (order) found.push(`${what}: ${order}, ${told}`);
        }
        if (seen[0] === seen[1]) found.push(`${what}: a second click changes nothing`);
      }
    }
    return found;
  },
})

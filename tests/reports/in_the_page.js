/* What a page says of itself in a browser: functions that return sentences, one for
 * everything that is wrong. The tests evaluate this object in each page that they visit. */
({
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

  /* What is wider than the window, if one can scroll sideways. */
  sideways() {
    const [wide, there] = [document.documentElement.scrollWidth, window.innerWidth];
    if (wide <= there) return [];
    const sticks = (element) =>
      element.getBoundingClientRect().right > there + 0.5 &&
      !element.parentElement.closest("svg");
    const scrolls = (element) => {
      for (let at = element.parentElement; at !== document.body; at = at.parentElement) {
        if (getComputedStyle(at).overflowX !== "visible") return true;
      }
      return false;
    };
    const culprits = [...document.body.querySelectorAll("*")]
      .filter((each) => sticks(each) && !scrolls(each))
      .map((each) => each.outerHTML.split(">")[0].slice(0, 60) + ">");
    return [`${wide} of ${there} pixels: ${culprits.slice(0, 3).join(", ")}`];
  },

  /* Navigation that would be printed. */
  printed() {
    const all = document.querySelectorAll("nav, [role=navigation], [role=search], .filter");
    return [...all]
      .filter((each) => each.checkVisibility())
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

  background() {
    const colours = [document.body, document.documentElement].map(
      (each) => getComputedStyle(each).backgroundColor,
    );
    return colours.find((each) => each !== "rgba(0, 0, 0, 0)") ?? "";
  },

  /* The words that one can read. */
  words() {
    const main = document.querySelector("main, [role=main]") ?? document.body;
    return main.innerText.split(/\s+/).filter(Boolean);
  },

  /* Tables that do not sort: each column is clicked on twice. */
  sorting() {
    const found = [];
    const value = (row, column) => {
      const cell = row.cells[column];
      return (cell?.dataset.sort ?? cell?.textContent ?? "").trim();
    };
    const number = (text) => {
      const plain = text.replace(/[,\s]|%$/g, "").replace("−", "-").replace("∞", "Infinity");
      return plain === "" ? Number.NaN : Number(plain);
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
          const texts = rows.map((row) => value(row, column)).filter(Boolean);
          const numbers = texts.map(number);
          const numeric = !numbers.some(Number.isNaN);
          const sign = told === "ascending" ? 1 : -1;
          for (let i = 1; i < texts.length; i++) {
            const order = numeric
              ? Math.sign(numbers[i] - numbers[i - 1] || 0)
              : texts[i].localeCompare(texts[i - 1], "en", { numeric: true });
            if (order * sign < 0) {
              found.push(`${what}: '${texts[i]}' follows '${texts[i - 1]}', ${told}`);
              break;
            }
          }
        }
        if (seen[0] === seen[1]) found.push(`${what}: a second click changes nothing`);
      }
    }
    return found;
  },
})

// The cards: search, legend, details of a node, selection.

let ids = []; // of the nodes, as text
let names = []; // of the nodes; empty if there are none
let lower = null; // both in lower case, made at the first search

const called = (node) => names[node] || ids[node];
const full = (node) => (names[node] ? `${names[node]} · ${ids[node]}` : ids[node]);

function make(tag, attributes = {}, ...children) {
  const made = Object.assign(document.createElement(tag), attributes);
  made.append(...children);
  return made;
}

// ---- search: ids and names that begin with the typed text, then those that contain it; important nodes first

const search = element("search");
const found = element("found");

function matches(typed) {
  lower ??= ids.map((_, node) => full(node).toLowerCase());
  const begin = [];
  const within = [];
  for (let at = 0; at < hubs.length && begin.length < 8; at++) {
    const place = lower[hubs[at]].indexOf(typed);
    if (place === 0 || lower[hubs[at]].includes(" · " + typed)) begin.push(hubs[at]);
    else if (place > 0 && within.length < 8) within.push(hubs[at]);
  }
  const exact = lower.findIndex(
    (text) => text === typed || text.startsWith(typed + " · ") || text.endsWith(" · " + typed),
  );
  return [...new Set([...(exact < 0 ? [] : [exact]), ...begin, ...within])].slice(0, 8);
}

function suggest() {
  const typed = search.value.trim().toLowerCase();
  const nodes = typed ? matches(typed) : [];
  found.replaceChildren(...nodes.map((node, at) => option(node, at, typed)));
  if (typed && !nodes.length) found.append(make("li", { className: "none", textContent: "no such node" }));
  found.hidden = !typed;
  search.setAttribute("aria-expanded", String(nodes.length > 0));
  mark(nodes.length ? 0 : -1);
}

function option(node, at, typed) {
  const title = full(node);
  const from = lower[node].indexOf(typed);
  const to = from + typed.length;
  const hit = make("b", { textContent: title.slice(from, to) });
  const made = make("li", { id: "option" + at, role: "option", title }, title.slice(0, from), hit, title.slice(to));
  made.dataset.node = node;
  made.addEventListener("pointerdown", (event) => event.preventDefault()); // keeps the focus in the field
  made.addEventListener("click", () => take(node));
  return made;
}

function mark(at) {
  [...found.children].forEach((made, place) => made.setAttribute("aria-selected", String(place === at)));
  search.setAttribute("aria-activedescendant", at < 0 ? "" : "option" + at);
}

function take(node) {
  search.value = called(node);
  found.hidden = true;
  search.setAttribute("aria-expanded", "false");
  search.blur();
  pick(node).then(() => goTo(node));
}

search.addEventListener("input", suggest);
search.addEventListener("focus", () => search.value && (search.select(), suggest()));
search.addEventListener("blur", () => (found.hidden = true));
search.addEventListener("keydown", (event) => {
  const options = [...found.querySelectorAll("[role=option]")];
  const at = options.findIndex((made) => made.getAttribute("aria-selected") === "true");
  if (event.key === "Enter" && at >= 0) take(Number(options[at].dataset.node));
  else if (event.key === "ArrowDown" && options.length) mark((at + 1) % options.length);
  else if (event.key === "ArrowUp" && options.length) mark((at + options.length - 1) % options.length);
  else if (event.key === "Escape") search.blur();
  else return;
  event.preventDefault();
  event.stopPropagation();
});

// ---- legend

const legend = element("legend");
const ROWS = 200; // the largest number of groups in the legend; more would make the page slow

function drawLegend(column) {
  const place = legend.scrollTop;
  const buttons = () => [...legend.querySelectorAll("button")];
  const at = buttons().indexOf(document.activeElement);
  legend.replaceChildren(...(column.groups ? groupRows(column.groups) : scale(column)));
  legend.scrollTop = place;
  buttons()[at]?.focus({ preventScroll: true }); // who presses a key on a row stays there
}

function scale({ low, high, log, whole }) {
  const ramp = make("div", { className: "ramp" });
  ramp.style.background = `linear-gradient(90deg, ${theme().ramp.join(", ")})`;
  const middle = log ? Math.expm1((Math.log1p(low) + Math.log1p(high)) / 2) : (low + high) / 2;
  const marks = [low, middle, high].map((value) => plain(whole ? Math.round(value) : value));
  const ends = make("div", { className: "ends" }, ...marks.map((textContent) => make("span", { textContent })));
  return [ramp, ends, ...(log ? [make("p", { textContent: "on a logarithmic scale" })] : [])];
}

function groupRows(groups) {
  const order = [...groups.keys()].slice(1).concat(groups[0].size ? [0] : []);
  const rows = order.slice(0, ROWS).map((group) => {
    const name = groups[group].name || "unknown";
    const toggle = (change) => () => (change(), recolour());
    const made = row(groupColour(group), name, count(groups[group].size), toggle(() => focus.delete(group) || focus.add(group)));
    made.setAttribute("aria-pressed", String(focus.has(group)));
    if (!group) return made;
    const own = owners().includes(group);
    const dot = make("button", { className: "dot", title: own ? "Take its colour away" : "Give it a colour" }, made.firstChild);
    dot.onclick = toggle(() => toggleColour(group));
    dot.setAttribute("aria-pressed", String(own));
    dot.setAttribute("aria-label", "Colour of " + name);
    return make("div", {}, dot, made);
  });
  const [colours, left] = [theme().groups.length, order.length - ROWS];
  const note = (textContent) => make("p", { textContent });
  if (groups.length - 1 > colours) rows.unshift(note(`${colours} colours for ${count(groups.length - 1)} groups: a click on a dot gives or takes one.`));
  return left > 0 ? [...rows, note(`and ${count(left)} smaller groups`)] : rows;
}

// A row to click: a dot, a name, a number.
function row(colour, name, number, onclick) {
  const dot = make("i");
  dot.style.background = colour;
  const label = make("span", { textContent: name });
  return make("button", { onclick, title: name }, dot, label, make("small", { textContent: number }));
}

// ---- one node

const close = (action) => {
  const made = make("button", { className: "close", textContent: "×", onclick: action });
  made.setAttribute("aria-label", "Close");
  return made;
};

// The values of a node in all columns that are unpacked, and the id of one that is called by its name.
const facts = (node) => {
  const values = meta.columns.map((column) => [column.name, column.codes ? valueText(column, node) : ""]);
  return [["id", names[node] ? ids[node] : ""], ...values].flatMap(([name, textContent]) =>
    textContent ? [make("dt", { textContent: name }), make("dd", { textContent })] : [],
  );
};

async function pick(node) {
  if (!hubs) return; // still unpacking
  picked = node;
  near = [];
  const details = element("details");
  details.hidden = node < 0;
  document.body.classList.toggle("picked", node >= 0);
  if (node < 0) return refresh();
  await Promise.all(meta.columns.map((_, at) => loadColumn(at)));
  const heading = make("h2", { textContent: called(node) });
  details.replaceChildren(close(() => pick(-1)), heading, make("dl", {}, ...facts(node)));
  refresh();
  if (!meta.neighbours) return;
  const [neighbours, cosines] = await Promise.all([readNeighbours(), readCosines()]);
  if (picked !== node) return;
  // A type with few nodes has fewer neighbours: the node itself fills their places, at the end.
  near = [...neighbours.subarray(node * meta.neighbours, (node + 1) * meta.neighbours)].filter((other) => other !== node);
  const rows = near.map((other, rank) => {
    const cosine = cosines[node * meta.neighbours + rank] / 32767;
    const less = meta.pairs.filter((pair) => pair < cosine).length / meta.pairs.length; // of random pairs
    const told = cosine.toFixed(3) + (meta.pairs.length ? `, ${(100 * less).toFixed(1)} %` : "");
    return make("li", {}, row(colourOf(other), called(other), told, () => pick(other).then(() => goTo(other))));
  });
  details.append(make("h3", { textContent: meta.pairs.length ? "Nearest: cosine, and closer than so many random pairs" : "Nearest: cosine" }), make("ol", {}, ...rows));
  refresh();
}

// ---- the node under the mouse

let hovered = -1;
function hover(node, x, y) {
  const hint = element("hint");
  if (node >= 0 && hubs) {
    const heading = make("strong", { textContent: called(node) });
    if (node !== hovered) hint.replaceChildren(heading, make("dl", {}, ...facts(node)));
    hint.hidden = false;
    const { width, height } = hint.getBoundingClientRect();
    hint.style.left = `${x + 16 + width > view.width ? x - 16 - width : x + 16}px`;
    hint.style.top = `${Math.max(8, y + 16 + height > view.height ? y - 16 - height : y + 16)}px`;
  } else hint.hidden = true;
  paper.style.cursor = lassoing ? "crosshair" : node >= 0 ? "pointer" : "";
  const moved = hovered !== node;
  hovered = node;
  if (moved) drawNames();
}

// ---- the nodes selected with the lasso

function hold(on) {
  lassoing = on;
  element("lasso").setAttribute("aria-pressed", String(on));
  paper.style.cursor = on ? "crosshair" : "";
}

function choose(inside) {
  hold(false);
  const many = inside ? inside.reduce((sum, one) => sum + one, 0) : 0;
  chosen = many ? inside : null;
  element("chosen").hidden = !many;
  element("many").textContent = many === 1 ? "1 node" : `${count(many)} nodes`;
  element("copy").textContent = "Copy";
  recolour();
}

const chosenIds = () => ids.filter((_, node) => chosen[node]).join("\n") + "\n";

element("save").addEventListener("click", () => {
  const address = URL.createObjectURL(new Blob([chosenIds()], { type: "text/plain" }));
  make("a", { href: address, download: "ids.txt" }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
});

element("copy").addEventListener("click", () => {
  // Through a text field, since pages opened from a file may not use the clipboard API.
  const field = make("textarea", { value: chosenIds() });
  document.body.append(field);
  field.select();
  element("copy").textContent = document.execCommand("copy") ? "Copied" : "Copying failed";
  field.remove();
});

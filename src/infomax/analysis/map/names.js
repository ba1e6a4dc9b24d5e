// Drawn over the points: names of groups and nodes, the selected node with its neighbours, and the lasso.

const paper = element("names");
const pen = paper.getContext("2d");
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
let picked = -1; // the node whose details are shown
let near = []; // its neighbours
let lasso = []; // the path being drawn, in page coordinates
let shown = []; // the names that have room: {text, at: place, kind, colour, side: -1 above its point, 1 below}
let hubs = null; // nodes by importance, the most important first

const NAMED = 61; // groups from this number on have no name on the map

// Where each group is densest: the middle (0 to 1) of the square with most of its nodes, and their share of the group.
function hearts({ groups, codes }) {
  const [cells, reach] = [40, 2];
  const tally = new Float64Array(Math.min(groups.length, NAMED) * cells * cells);
  const cell = (at) => Math.min(Math.floor((places[at] / SIDE) * cells), cells - 1);
  for (let node = 0; node < meta.nodes; node++)
    if (codes[node] < NAMED) tally[(codes[node] * cells + cell(2 * node)) * cells + cell(2 * node + 1)]++;
  return groups.slice(0, NAMED).map(({ size }, group) => {
    const square = (i, j) => {
      let [many, x, y] = [0, 0, 0];
      for (let a = Math.max(i - reach, 0); a <= Math.min(i + reach, cells - 1); a++)
        for (let b = Math.max(j - reach, 0); b <= Math.min(j + reach, cells - 1); b++) {
          const here = tally[(group * cells + a) * cells + b];
          many += here;
          x += here * (a + 0.5);
          y += here * (b + 0.5);
        }
      return [many, x, y];
    };
    let best = [0, 0, 0];
    for (let i = 0; i < cells; i++)
      for (let j = 0; j < cells; j++) {
        const sums = tally[(group * cells + i) * cells + j] ? square(i, j) : best;
        if (sums[0] > best[0]) best = sums;
      }
    return { x: best[1] / best[0] / cells, y: best[2] / best[0] / cells, share: best[0] / size };
  });
}

// Choose the names to show in a view at rest: first the selected node's, then groups', then nodes' by importance.
function chooseNames(column) {
  const taken = []; // left, top, right, bottom of the names placed so far
  shown = [];
  const place = (name) => {
    const [x, y] = spotOf(name);
    pen.font = fontOf(name.kind);
    const half = pen.measureText(name.text).width / 2 + 4;
    const clash = ([left, top, right, bottom]) =>
      x + half > left && x - half < right && y + 10 > top && y - 10 < bottom;
    if (x < 0 || x > view.width || y < 0 || y > view.height || taken.some(clash)) return false;
    taken.push([x - half, y - 10, x + half, y + 10]);
    shown.push(name);
    return true;
  };
  const placeNode = (node, kind, side = -1) => place({ text: brief(called(node)), at: placeOf(node), kind, side });
  if (picked >= 0) {
    const [x, y] = onPage(picked);
    placeNode(picked, "picked");
    taken.push([x - 9, y - 9, x + 9, y + 9]);
    near.forEach((node) => placeNode(node, "node") || placeNode(node, "node", 1));
  }
  const zoom = view.scale / view.whole;
  if (column.groups && zoom < 7) groupNames(column).forEach(place);
  if (zoom > 1.8 || !column.groups) {
    const room = Math.min((view.width * view.height) / 14000, 90) * (zoom > 1.8 ? 1 : 0.3);
    for (let rank = 0, many = 0; rank < hubs.length && many < room; rank++)
      if (visible(hubs[rank]) && placeNode(hubs[rank], "node")) many++;
  }
}

// The names of the coloured groups, and of grey groups that are dense somewhere.
function groupNames(column) {
  column.hearts ??= hearts(column);
  return column.groups.slice(0, NAMED).flatMap(({ name }, group) => {
    const { x, y, share } = column.hearts[group];
    const bright = owners().includes(group) || focus.has(group);
    if (group === 0 || (focus.size ? !focus.has(group) : !bright && share < 0.25)) return [];
    return [{ text: brief(name), at: [x, y], kind: bright ? "group" : "small", colour: groupColour(group) }];
  });
}

const brief = (text) => (text.length > 32 ? text.slice(0, 15) + "…" + text.slice(-16) : text);
const FONTS = { group: "650 15px", small: "600 12.5px", picked: "650 14px", node: "500 11.5px" };
const fontOf = (kind) => `${FONTS[kind]} ${FONT}`;

function spotOf({ at, side = 0 }) {
  const [x, y] = project(...at);
  return [x, y + side * (diameter() / 2 + 11)];
}

function visible(node) {
  if (chosen && !chosen[node]) return false;
  if (focus.size && !focus.has(shownColumn().codes[node])) return false;
  const [x, y] = onPage(node);
  return x > 0 && y > 0 && x < view.width && y < view.height;
}

function drawNames() {
  const { width, height, ratio } = view;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  if (picked >= 0) drawPicked();
  if (hovered >= 0) ring(onPage(hovered), diameter() / 2 + 2.5, 2, theme().ink);
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.lineJoin = "round";
  for (const name of shown) {
    const spot = spotOf(name);
    pen.font = fontOf(name.kind);
    pen.lineWidth = name.kind === "group" ? 4 : 3;
    pen.strokeStyle = theme().paper;
    pen.strokeText(name.text, ...spot);
    pen.fillStyle = name.colour ? mix(name.colour, theme().ink, name.kind === "group" ? 0.45 : 0.7) : theme().ink;
    pen.fillText(name.text, ...spot);
  }
  if (lasso.length > 1) {
    pen.beginPath();
    lasso.forEach(([x, y]) => pen.lineTo(x, y));
    pen.closePath();
    pen.fillStyle = theme().accent + "22";
    pen.fill();
    pen.lineWidth = 2;
    pen.strokeStyle = theme().accent;
    pen.stroke();
  }
}

function mix(one, other, share) {
  const [from, to] = [rgb(one), rgb(other)];
  return `rgb(${from.map((part, at) => Math.round(part + share * (to[at] - part)))})`;
}

function ring([x, y], radius, width, colour) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 7);
  pen.lineWidth = width;
  pen.strokeStyle = colour;
  pen.stroke();
}

function drawPicked() {
  const from = onPage(picked);
  const radius = diameter() / 2 + 2.5;
  pen.beginPath();
  for (const node of near) {
    pen.moveTo(...from);
    pen.lineTo(...onPage(node));
  }
  pen.lineWidth = 1.2;
  pen.strokeStyle = theme().accent + "88";
  pen.stroke();
  for (const node of near) ring(onPage(node), radius, 1.6, theme().accent);
  ring(from, radius + 2, 5, theme().paper);
  ring(from, radius + 2, 3, theme().accent);
}

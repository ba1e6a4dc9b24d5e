// The colour of every node, from the column that is shown.

let dark = matchMedia("(prefers-color-scheme: dark)").matches;
// The colours of groups and numbers come with the data, those of the page from its style sheet.
function theme() {
  const mode = dark ? "dark" : "light";
  const style = getComputedStyle(document.documentElement);
  const colours = meta.themes[mode];
  for (const name of ["paper", "ink", "accent", "other", "unknown"])
    colours[name] ??= style.getPropertyValue("--" + name).trim();
  return colours;
}
const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

const focus = new Set(); // groups selected in the legend; if there are any, all others are dimmed
let chosen = null; // Uint8Array, 1 for nodes inside the lasso; null if there is no selection

// The group that has each colour, 0 if none: at first the largest groups. A dot in the legend gives a group a colour.
function owners() {
  const column = shownColumn();
  return (column.owners ??= theme().groups.map((_, at) => at + 1));
}

function toggleColour(group) {
  const holders = owners();
  const column = shownColumn();
  const own = holders.indexOf(group);
  let free = holders.indexOf(0);
  if (own >= 0) return void (holders[own] = 0);
  if (free < 0) {
    free = column.next ?? holders.length - 1; // in turn, from the colour of the smallest group
    column.next = (free + holders.length - 1) % holders.length;
  }
  holders[free] = group;
}

function groupColour(group) {
  const { groups, unknown, ink, other } = theme();
  if (group === 0) return unknown;
  const holders = owners();
  const own = holders.indexOf(group);
  if (own >= 0 || !focus.has(group)) return groups[own] ?? other;
  // A selected group without a colour of its own takes one of a group that is not selected.
  const free = groups.filter((_, at) => !focus.has(holders[at]));
  return free[[...focus].filter((each) => each && !holders.includes(each)).indexOf(group)] ?? ink;
}

// Maps the numbers of a column to 0 to 1; on a logarithmic scale if most of them are near the low end.
function scaled(column) {
  const to = column.log ? Math.log1p : Number;
  const low = to(column.low);
  const span = to(column.high) - low || 1;
  return (value) => (to(value) - low) / span;
}

// RGBA [4 n] of the nodes; the order [n] in which to draw them, grey and dimmed ones first; the number of those.
function paint(at) {
  const { nodes } = meta;
  const column = meta.columns[at];
  const colours = new Uint32Array(nodes);
  const grey = new Uint8Array(nodes);
  const alpha = nodes > 3e5 ? 150 : 220;
  const pack = (hex, opaque = alpha) => {
    const [r, g, b] = rgb(hex);
    return ((opaque << 24) | (b << 16) | (g << 8) | r) >>> 0;
  };
  const back = pack(theme().other, 65);
  const look = column.groups ? groupLook(column, pack) : numberLook(column, pack);
  for (let node = 0; node < nodes; node++) {
    const which = look.of(column.codes[node]);
    const away = look.away[which] || (chosen !== null && chosen[node] === 0);
    colours[node] = away ? back : look.palette[which];
    grey[node] = away || look.grey[which] ? 1 : 0;
  }
  return { colours: new Uint8Array(colours.buffer), ...mixed(nodes, grey) };
}

// For the values of a column: their entry in a palette, and which entries are grey or dimmed.
function groupLook({ groups }, pack) {
  const each = [...groups.keys()];
  const coloured = (group) => focus.has(group) || owners().includes(group);
  return {
    of: (group) => group,
    palette: each.map((group) => pack(groupColour(group))),
    away: each.map((group) => focus.size > 0 && !focus.has(group)),
    grey: each.map((group) => !coloured(group)),
  };
}

function numberLook(column, pack) {
  const stops = theme().ramp.map(rgb);
  const step = (level) => {
    const place = (level / 255) * (stops.length - 1);
    const from = Math.min(Math.floor(place), stops.length - 2);
    return stops[from].map((part, channel) => Math.round(part + (place - from) * (stops[from + 1][channel] - part)));
  };
  const hex = (parts) => "#" + parts.map((part) => part.toString(16).padStart(2, "0")).join("");
  const levels = Array.from({ length: 256 }, (_, level) => pack(hex(step(level))));
  const position = scaled(column);
  return {
    of: (value) => (Number.isNaN(value) ? 256 : Math.round(255 * position(value))),
    palette: [...levels, pack(theme().unknown)],
    away: [],
    grey: Array.from({ length: 257 }, (_, level) => level === 256),
  };
}

// The nodes with first[node] = 1, then the others, each part in mixed order: so no group covers another, and the first
// few nodes of a part are a fair sample of it.
function mixed(nodes, first) {
  const order = new Uint32Array(nodes);
  let stride = Math.max(1, Math.round(0.618 * nodes)); // coprime to the number of nodes: each comes once
  while (divisor(stride, nodes) > 1) stride++;
  let grey = 0;
  for (let node = 0; node < nodes; node++) grey += first[node];
  let [low, high] = [0, grey];
  for (let step = 0, node = 0; step < nodes; step++, node = (node + stride) % nodes)
    order[first[node] ? low++ : high++] = node;
  return { order, grey };
}

const divisor = (a, b) => (b === 0 ? a : divisor(b, a % b));

// Starts the page and connects its parts.

let at = meta.first; // the column that is shown
const shownColumn = () => meta.columns[at];

async function loadColumn(which) {
  meta.columns[which].codes ??= await readColumn(which);
}

// The colour of a node.
function colourOf(node) {
  const column = shownColumn();
  const value = column.codes[node];
  const { ramp, unknown } = theme();
  if (column.groups) return groupColour(value);
  return Number.isNaN(value) ? unknown : ramp[Math.round(scaled(column)(value) * (ramp.length - 1))];
}

let frame = 0; // the requested animation frame, if any
let rest = 0;
let last = 0; // the time of the last frame of a moving view; 0 at rest
let share = 1; // the share of the points drawn while the view moves: as many as this machine draws smoothly

// Draw at the next frame. When the view is at rest, draw all points and choose the names again.
function refresh() {
  if (!gl) return; // still unpacking
  frame ||= requestAnimationFrame((now) => {
    frame = 0;
    const took = last ? now - last : 33;
    share *= took > 45 ? Math.max(0.2, 33 / took) : took < 25 ? 1.2 : 1;
    share = Math.min(Math.max(share, 0.02), 1);
    last = now;
    drawPoints(share);
    drawNames();
  });
  clearTimeout(rest);
  rest = setTimeout(() => {
    if (share < 1 || frame) drawPoints();
    cancelAnimationFrame(frame); // on a slow machine it would come later, and draw fewer points
    frame = last = 0;
    if (hubs) chooseNames(shownColumn());
    drawNames();
  }, 120);
}

function recolour() {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  if (!gl) return; // still unpacking
  drawLegend(shownColumn());
  uploadColours(paint(at));
  const dots = document.querySelectorAll("#details i");
  near.forEach((node, rank) => (dots[rank].style.background = colourOf(node)));
  refresh();
}

async function show(which) {
  await loadColumn(which);
  at = which;
  focus.clear();
  recolour();
}

function resize() {
  const [oldWidth, oldHeight] = [view.width, view.height];
  const untouched = view.scale === view.whole;
  view.width = innerWidth;
  view.height = innerHeight;
  view.ratio = Math.min(devicePixelRatio, 2);
  for (const each of [canvas, paper]) [each.width, each.height] = [view.width * view.ratio, view.height * view.ratio];
  const whole = wholeView();
  view.whole = whole.scale;
  if (untouched) Object.assign(view, whole);
  else [view.x, view.y] = [view.x + (view.width - oldWidth) / 2, view.y + (view.height - oldHeight) / 2];
  refresh();
}

// The nodes by importance, a column of whole numbers; without it, in the order of the file. Number and node are packed
// into one key, so that the fast sort of numbers can be used.
async function rankNodes() {
  const { nodes, importance } = meta;
  if (importance === null) return Uint32Array.from({ length: nodes }, (_, node) => node);
  await loadColumn(importance);
  const { codes, high } = meta.columns[importance];
  const keys = Float64Array.from(codes, (value, node) => (high - value) * nodes + node).sort();
  return Uint32Array.from(keys, (key) => key % nodes);
}

async function start() {
  element("count").textContent = meta.drawn;
  element("column").replaceChildren(
    ...meta.columns.map(({ name }, value) => make("option", { value, textContent: name, selected: value === at })),
  );
  recolour();
  [places] = await Promise.all([readPlaces(), loadColumn(at)]);
  startScene();
  view.whole = view.scale;
  drawLegend(shownColumn());
  resize();
  recolour();
  element("wait").hidden = true;
  // The map can be moved already; search and details need the ids.
  [ids, names, hubs] = await Promise.all([readIds(), readNames(), rankNodes(), ...meta.columns.map((_, which) => loadColumn(which))]);
  for (const tool of document.querySelectorAll(":disabled")) tool.disabled = false;
  refresh();
  document.body.dataset.ready = "yes";
}

element("column").addEventListener("change", (event) => show(Number(event.target.value)));
element("in").addEventListener("click", () => zoomAt(view.width / 2, view.height / 2, 1.6));
element("out").addEventListener("click", () => zoomAt(view.width / 2, view.height / 2, 1 / 1.6));
element("fit").addEventListener("click", () => glideTo(wholeView()));
element("lasso").addEventListener("click", () => hold(!lassoing));
element("theme").addEventListener("click", () => ((dark = !dark), recolour()));
element("drop").addEventListener("click", () => choose(null));
element("fold").addEventListener("click", () => {
  const open = document.body.classList.toggle("unfolded");
  element("fold").setAttribute("aria-expanded", String(open));
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", ({ matches: now }) => ((dark = now), recolour()));
addEventListener("resize", resize);
addEventListener("keydown", (event) => {
  if (event.key === "/" && event.target !== search) return void (event.preventDefault(), search.focus());
  if (event.key !== "Escape") return;
  if (lassoing) hold(false);
  else if (chosen) choose(null);
  else pick(-1);
});
canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
canvas.addEventListener("webglcontextrestored", () => (startScene(), recolour()));

start().catch((error) => {
  element("wait").hidden = false;
  element("wait").textContent = `The map cannot be shown: ${error.message}. It needs a browser from 2023 or later.`;
  throw error;
});

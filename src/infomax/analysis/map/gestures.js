// Input: drag, pinch, wheel and keys move the view; a tap selects a node; a drag with the lasso selects many.

const fingers = new Map(); // pointer -> its position
let lassoing = false; // whether the lasso is active
let tapped = null; // where the first finger went down, until it moves or a second finger follows
let glide = 0;
const NEAREST = 800; // the largest zoom, relative to the whole map

function zoomAt(x, y, factor) {
  const scale = Math.min(Math.max(view.scale * factor, view.whole * 0.5), view.whole * NEAREST);
  view.x = x - ((x - view.x) * scale) / view.scale;
  view.y = y - ((y - view.y) * scale) / view.scale;
  view.scale = scale;
  refresh();
}

// The view that shows the whole map beside the cards.
function wholeView() {
  const [left, top, right, bottom] = margins();
  const [width, height] = [view.width - left - right, view.height - top - bottom];
  const scale = Math.min(width / meta.extent[0], height / meta.extent[1]);
  return { scale, x: left + (width - meta.extent[0] * scale) / 2, y: top + (height - meta.extent[1] * scale) / 2 };
}

// How much the cards cover at the left, top, right and bottom.
function margins() {
  const covered = element("panel").getBoundingClientRect();
  return narrow() ? [20, covered.bottom + 16, 20, 32] : [covered.right + 24, 28, 76, 28];
}
const narrow = () => view.width < 720;

// Move a node to the middle of the uncovered area, at a zoom that shows about half of its neighbours, well apart.
function goTo(node) {
  const [left, top, right, bottom] = margins();
  const card = element("details").getBoundingClientRect();
  const [end, low] = narrow() ? [view.width - right, card.top] : [card.left - 24, view.height - bottom];
  const [px, py] = placeOf(node);
  const gaps = near.map(placeOf).map(([x, y]) => Math.hypot(x - px, y - py));
  const middling = gaps.sort((a, b) => a - b)[Math.floor(0.5 * gaps.length)] || 1e-6;
  const scale = Math.min(Math.max((0.3 * (end - left)) / middling, 4 * view.whole), NEAREST * view.whole);
  glideTo({ scale, x: (left + end) / 2 - px * scale, y: (top + low) / 2 - py * scale });
}

function glideTo(target) {
  cancelAnimationFrame(glide);
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return void (Object.assign(view, target), refresh());
  const from = { ...view };
  const began = performance.now();
  // The scale changes by a constant factor per unit of time, and the middle of the page moves with it, so that the
  // target stays in sight.
  const middle = ({ x, y, scale }) => [(view.width / 2 - x) / scale, (view.height / 2 - y) / scale];
  const [start, end] = [middle(from), middle(target)];
  const step = (now) => {
    const part = Math.min((now - began) / 450, 1);
    const eased = part * part * (3 - 2 * part);
    const scale = from.scale * (target.scale / from.scale) ** eased;
    const same = Math.abs(target.scale / from.scale - 1) < 1e-6;
    const bend = same ? eased : (1 - from.scale / scale) / (1 - from.scale / target.scale);
    view.scale = scale;
    view.x = view.width / 2 - (start[0] + (end[0] - start[0]) * bend) * scale;
    view.y = view.height / 2 - (start[1] + (end[1] - start[1]) * bend) * scale;
    refresh();
    if (part < 1) glide = requestAnimationFrame(step);
  };
  glide = requestAnimationFrame(step);
}

const spot = (event) => [event.clientX, event.clientY];

paper.addEventListener("pointerdown", (event) => {
  cancelAnimationFrame(glide);
  paper.setPointerCapture(event.pointerId);
  fingers.set(event.pointerId, spot(event));
  tapped = fingers.size === 1 ? spot(event) : null;
  lasso = fingers.size === 1 && (lassoing || event.shiftKey) ? [spot(event)] : [];
  hover(-1);
});

paper.addEventListener("pointermove", (event) => {
  if (!fingers.has(event.pointerId)) return void (event.pointerType === "mouse" && point(event));
  const [x, y] = spot(event);
  const [oldX, oldY] = fingers.get(event.pointerId);
  if (tapped && Math.hypot(x - tapped[0], y - tapped[1]) < 5) return;
  tapped = null;
  if (lasso.length) {
    lasso.push([x, y]);
    return refresh();
  }
  if (fingers.size === 2) {
    const [other] = [...fingers].filter(([pointer]) => pointer !== event.pointerId).map(([, place]) => place);
    const grown = Math.hypot(x - other[0], y - other[1]) / (Math.hypot(oldX - other[0], oldY - other[1]) || 1);
    zoomAt((x + other[0]) / 2, (y + other[1]) / 2, grown);
  }
  view.x += (x - oldX) / fingers.size;
  view.y += (y - oldY) / fingers.size;
  fingers.set(event.pointerId, [x, y]);
  refresh();
});

function lift(event) {
  if (!fingers.delete(event.pointerId)) return;
  if (event.type === "pointerup" && lasso.length > 2) choose(nodesWithin(lasso));
  else if (event.type === "pointerup" && tapped) pick(nodeAt(...tapped, event.pointerType === "mouse" ? 10 : 22));
  tapped = null;
  lasso = [];
  refresh();
}
paper.addEventListener("pointerup", lift);
paper.addEventListener("pointercancel", lift);
paper.addEventListener("pointerleave", () => hover(-1));

paper.addEventListener(
  "wheel",
  (event) => {
    event.preventDefault();
    cancelAnimationFrame(glide);
    const pixels = event.deltaY * (event.deltaMode === 1 ? 18 : 1);
    zoomAt(...spot(event), Math.exp(-Math.max(-60, Math.min(60, pixels)) * (event.ctrlKey ? 0.012 : 0.005)));
  },
  { passive: false },
);

let pointing = 0; // at most one lookup per frame
function point(event) {
  cancelAnimationFrame(pointing);
  pointing = requestAnimationFrame(() => hover(nodeAt(...spot(event), 10), ...spot(event)));
}

paper.addEventListener("keydown", (event) => {
  const move = { ArrowLeft: [80, 0], ArrowRight: [-80, 0], ArrowUp: [0, 80], ArrowDown: [0, -80] }[event.key];
  const zoom = { "+": 1.5, "=": 1.5, "-": 1 / 1.5 }[event.key];
  if (move) [view.x, view.y] = [view.x + move[0], view.y + move[1]];
  else if (zoom) zoomAt(view.width / 2, view.height / 2, zoom);
  else if (event.key === "0") glideTo(wholeView());
  else return;
  event.preventDefault();
  refresh();
});

// The points, drawn by WebGL, and the view: a place p, from 0 to 1, is on the page at p * scale + (x, y).

const canvas = element("points");
const view = { scale: 1, x: 0, y: 0, width: 1, height: 1, ratio: 1, whole: 1 };
let places; // Uint16Array, x, y, x, y, ... from 0 to 65535
const SIDE = 65535;

const VERTEX = `#version 300 es
in vec2 place; in vec4 paint;
uniform vec2 scale, shift; uniform float size;
out vec4 colour;
void main() { gl_Position = vec4(place * scale + shift, 0, 1); gl_PointSize = size; colour = paint; }`;
const FRAGMENT = `#version 300 es
precision highp float;
in vec4 colour; uniform float size; out vec4 pixel;
void main() {
  float reach = length(gl_PointCoord - 0.5) * size;
  float inside = clamp(size * 0.5 - reach + 0.5, 0.0, 1.0) * colour.a;
  if (inside <= 0.0) discard;
  pixel = vec4(colour.rgb * inside, inside);
}`;

let gl, uniforms, buffers;
let behind = 0; // how many nodes, the first in drawing order, are behind the others

function startScene() {
  gl = canvas.getContext("webgl2", { antialias: false, alpha: true, premultipliedAlpha: true });
  if (!gl) throw new Error("this browser has no WebGL 2");
  const program = gl.createProgram();
  for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.bindAttribLocation(program, 0, "place");
  gl.bindAttribLocation(program, 1, "paint");
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
  gl.useProgram(program);
  uniforms = Object.fromEntries(["scale", "shift", "size"].map((name) => [name, gl.getUniformLocation(program, name)]));
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  buffers = { place: gl.createBuffer(), paint: gl.createBuffer(), order: gl.createBuffer() };
  gl.bindBuffer(gl.ARRAY_BUFFER, buffers.place);
  gl.bufferData(gl.ARRAY_BUFFER, places, gl.STATIC_DRAW);
  gl.vertexAttribPointer(0, 2, gl.UNSIGNED_SHORT, true, 0, 0);
  gl.enableVertexAttribArray(0);
}

function uploadColours({ colours, order, grey }) {
  behind = grey;
  gl.bindBuffer(gl.ARRAY_BUFFER, buffers.paint);
  gl.bufferData(gl.ARRAY_BUFFER, colours, gl.DYNAMIC_DRAW);
  gl.vertexAttribPointer(1, 4, gl.UNSIGNED_BYTE, true, 0, 0);
  gl.enableVertexAttribArray(1);
  gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, buffers.order);
  gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, order, gl.DYNAMIC_DRAW);
}

// The diameter of a point on the page: chosen by the number of points; it grows more slowly than the map when zooming.
function diameter() {
  const room = Math.sqrt((view.width * view.height) / meta.nodes);
  return Math.min(Math.max(0.47 * room, 1.3) * Math.max(view.scale / view.whole, 0.5) ** 0.42, 16);
}

// Draw a share of the points, the same share of those behind and of those in front.
function drawPoints(share = 1) {
  const { scale, x, y, width, height, ratio } = view;
  gl.viewport(0, 0, canvas.width, canvas.height);
  gl.clear(gl.COLOR_BUFFER_BIT);
  gl.uniform2f(uniforms.scale, (2 * scale) / width, (-2 * scale) / height);
  gl.uniform2f(uniforms.shift, (2 * x) / width - 1, 1 - (2 * y) / height);
  gl.uniform1f(uniforms.size, diameter() * ratio);
  gl.drawElements(gl.POINTS, Math.ceil(share * behind), gl.UNSIGNED_INT, 0);
  gl.drawElements(gl.POINTS, Math.ceil(share * (meta.nodes - behind)), gl.UNSIGNED_INT, 4 * behind);
}

const placeOf = (node) => [places[2 * node] / SIDE, places[2 * node + 1] / SIDE];
const onPage = (node) => project(...placeOf(node));
const project = (x, y) => [x * view.scale + view.x, y * view.scale + view.y];

// The node nearest to a position on the page, within reach; -1 if there is none. A million take milliseconds.
function nodeAt(x, y, reach) {
  const to = SIDE / view.scale;
  const px = (x - view.x) * to;
  const py = (y - view.y) * to;
  let best = (reach * to) ** 2;
  let found = -1;
  for (let at = 0; at < places.length; at += 2) {
    const dx = places[at] - px;
    const dy = places[at + 1] - py;
    const far = dx * dx + dy * dy;
    if (far <= best) {
      best = far;
      found = at >> 1;
    }
  }
  return found;
}

// Which nodes are inside a polygon on the page: 1 or 0 for each.
function nodesWithin(path) {
  const to = SIDE / view.scale;
  const xs = Float64Array.from(path, ([x]) => (x - view.x) * to);
  const ys = Float64Array.from(path, ([, y]) => (y - view.y) * to);
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const inside = new Uint8Array(meta.nodes);
  for (let node = 0; node < meta.nodes; node++) {
    const x = places[2 * node];
    const y = places[2 * node + 1];
    if (x < left || x > right || y < top || y > bottom) continue;
    let odd = 0; // parity of the number of sides to the right
    for (let a = 0, b = xs.length - 1; a < xs.length; b = a++)
      if (ys[a] > y !== ys[b] > y && x < ((xs[b] - xs[a]) * (y - ys[a])) / (ys[b] - ys[a]) + xs[a]) odd ^= 1;
    inside[node] = odd;
  }
  return inside;
}

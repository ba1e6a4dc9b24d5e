// The data inside the page: a JSON description, and blocks of bytes (gzip, then base64) that are unpacked when needed.

const element = (id) => document.getElementById(id);
const meta = JSON.parse(element("meta").textContent);

async function bytes(name) {
  const packed = element("block-" + name).textContent;
  const raw = Uint8Array.fromBase64 ? Uint8Array.fromBase64(packed) : fromBase64(packed);
  element("block-" + name).remove(); // the text is no longer needed, and may be large
  return new Response(new Blob([raw]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

// For browsers without Uint8Array.fromBase64.
function fromBase64(packed) {
  const text = atob(packed);
  const raw = new Uint8Array(text.length);
  for (let at = 0; at < raw.length; at++) raw[at] = text.charCodeAt(at);
  return raw;
}

const unpacked = {};
const once = (name, read) => (unpacked[name] ??= bytes(name).then(read));
const ARRAYS = { uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, float32: Float32Array };

const readPlaces = () => once("places", (buffer) => new Uint16Array(buffer)); // x, y, x, y, ... from 0 to 65535
const readIds = () => once("ids", (buffer) => JSON.parse(new TextDecoder().decode(buffer)));
const readNames = () => once("names", (buffer) => JSON.parse(new TextDecoder().decode(buffer))); // [] if there are none
const readColumn = (at) => once("column" + at, (buffer) => new ARRAYS[meta.columns[at].type](buffer));
const readNeighbours = () => once("neighbours", (buffer) => new Uint32Array(buffer)); // k per node, nearest first
const readCosines = () => once("cosines", (buffer) => new Int16Array(buffer)); // of the same k, times 32767

const count = (number) => number.toLocaleString("en");
const plain = (number) => (Number.isInteger(number) ? count(number) : String(Number(number.toPrecision(4))));

// The value of a node in a column, as text; "" if it is unknown.
function valueText(column, node) {
  const value = column.codes[node];
  if (column.groups) return column.groups[value].name;
  return Number.isNaN(value) ? "" : plain(value);
}

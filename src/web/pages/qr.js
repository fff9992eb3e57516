/** Versions that are made: enough for an address with a signed policy. */
const MAX_VERSION = 20;
/** Of level M (ISO/IEC 18004 table 9), by version from 1: error correction codewords of a block, and blocks. */
const CORRECTION = [10, 16, 26, 18, 24, 16, 18, 22, 22, 26, 30, 22, 22, 24, 24, 28, 28, 26, 26, 26];
const BLOCKS = [1, 1, 1, 2, 2, 4, 4, 4, 5, 5, 5, 8, 9, 9, 10, 10, 11, 13, 14, 16];
const BYTE_MODE = 0b0100;
const LEVEL_M = 0b00;
const PADS = [0xec, 0x11];

const EXPONENTS = new Uint8Array(512);
const LOGARITHMS = new Uint8Array(256);
for (let power = 0, value = 1; power < 255; power++) {
  EXPONENTS[power] = EXPONENTS[power + 255] = value;
  LOGARITHMS[value] = power;
  value = (value << 1) ^ (value > 127 ? 0x11d : 0);
}
const product = (a, b) => (a === 0 || b === 0 ? 0 : EXPONENTS[LOGARITHMS[a] + LOGARITHMS[b]]);

const MASKS = [
  (x, y) => (x + y) % 2 === 0,
  (_x, y) => y % 2 === 0,
  (x) => x % 3 === 0,
  (x, y) => (x + y) % 3 === 0,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2 === 0,
  (x, y) => ((x * y) % 2) + ((x * y) % 3) === 0,
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2 === 0,
  (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2 === 0,
];

/**
 * A QR code (ISO/IEC 18004) of a text as UTF-8, in byte mode with error correction level M.
 * @returns rows of modules, true for dark ones, without the quiet zone; undefined for a text that is too long
 */
export function qrCode(text) {
  const bytes = new TextEncoder().encode(text);
  for (let version = 1; version <= MAX_VERSION; version++) {
    const data = dataCodewords(bytes, version);
    if (data !== undefined) return smoothest(version, interleaved(data, version));
  }
  return undefined;
}

const sizeOf = (version) => 17 + 4 * version;

/** Modules that are not of patterns, in whole codewords. */
function codewords(version) {
  const alignments = version === 1 ? 0 : Math.floor(version / 7) + 2;
  const patterns = alignments === 0 ? 0 : 25 * alignments ** 2 - 10 * alignments - 55;
  const modules = (16 * version + 128) * version + 64 - patterns - (version > 6 ? 36 : 0);
  return Math.floor(modules / 8);
}

/** Mode, length, text and padding; undefined where the text does not fit. */
function dataCodewords(bytes, version) {
  const capacity = codewords(version) - CORRECTION[version - 1] * BLOCKS[version - 1];
  const lengthBits = version < 10 ? 8 : 16;
  const bits = [];
  const add = (value, count) => {
    for (let at = count - 1; at >= 0; at--) bits.push((value >> at) & 1);
  };
  add(BYTE_MODE, 4);
  add(bytes.length, lengthBits);
  for (const byte of bytes) add(byte, 8);
  if (bits.length > capacity * 8) return undefined;
  add(0, Math.min(4, capacity * 8 - bits.length));
  add(0, -bits.length & 7);
  const data = [];
  for (let at = 0; at < bits.length; at += 8) data.push(Number.parseInt(bits.slice(at, at + 8).join(''), 2));
  for (let at = 0; data.length < capacity; at++) data.push(PADS[at % 2]);
  return data;
}

/** The codewords of all blocks in turns, then those of their error corrections. */
function interleaved(data, version) {
  const [count, length] = [BLOCKS[version - 1], CORRECTION[version - 1]];
  const short = Math.floor(data.length / count);
  const shorts = count - (data.length % count);
  const divisor = generator(length);
  const blocks = [];
  for (let block = 0, from = 0; block < count; block++) {
    const to = from + short + (block < shorts ? 0 : 1);
    const part = data.slice(from, to);
    blocks.push({ part, correction: remainder(part, divisor) });
    from = to;
  }
  const all = [];
  for (let at = 0; at <= short; at++) for (const { part } of blocks) if (at < part.length) all.push(part[at]);
  for (let at = 0; at < length; at++) for (const { correction } of blocks) all.push(correction[at]);
  return all;
}

/** Coefficients of the Reed-Solomon generator polynomial, without the leading 1. */
function generator(degree) {
  const result = [...Array(degree - 1).fill(0), 1];
  let root = 1;
  for (let step = 0; step < degree; step++) {
    for (let at = 0; at < degree; at++) result[at] = product(result[at], root) ^ (result[at + 1] ?? 0);
    root = product(root, 2);
  }
  return result;
}

function remainder(data, divisor) {
  const rest = Array(divisor.length).fill(0);
  for (const byte of data) {
    const factor = byte ^ rest.shift();
    rest.push(0);
    divisor.forEach((coefficient, at) => (rest[at] ^= product(coefficient, factor)));
  }
  return rest;
}

/** The code with the mask that readers have least trouble with. */
function smoothest(version, codewords) {
  let best;
  for (const mask of MASKS.keys()) {
    const modules = drawn(version, codewords, mask);
    const cost = penalty(modules);
    if (best === undefined || cost < best.cost) best = { modules, cost };
  }
  return best.modules;
}

function drawn(version, codewords, mask) {
  const size = sizeOf(version);
  const modules = Array.from({ length: size }, () => Array(size).fill(undefined));
  const set = (x, y, dark) => {
    if (x >= 0 && y >= 0 && x < size && y < size) modules[y][x] = dark;
  };
  drawPatterns(version, set);
  drawFormat(size, mask, set);
  let bit = 0;
  for (let right = size - 1; right > 0; right -= 2) {
    if (right === 6) right = 5;
    const upwards = ((right + 1) & 2) === 0;
    for (let step = 0; step < size; step++) {
      const y = upwards ? size - 1 - step : step;
      for (const x of [right, right - 1]) {
        if (modules[y][x] !== undefined) continue;
        const dark = ((codewords[bit >> 3] ?? 0) >> (7 - (bit & 7))) & 1;
        modules[y][x] = (dark === 1) !== MASKS[mask](x, y);
        bit++;
      }
    }
  }
  return modules;
}

function drawPatterns(version, set) {
  const size = sizeOf(version);
  for (let at = 8; at < size - 8; at++) {
    set(6, at, at % 2 === 0);
    set(at, 6, at % 2 === 0);
  }
  const square = (x, y, radius, isDark) => {
    for (let dy = -radius; dy <= radius; dy++)
      for (let dx = -radius; dx <= radius; dx++) set(x + dx, y + dy, isDark(Math.max(Math.abs(dx), Math.abs(dy))));
  };
  const centres = alignmentCentres(version);
  const last = centres.length - 1;
  centres.forEach((x, column) =>
    centres.forEach((y, row) => {
      const inCorner = (column === 0 && (row === 0 || row === last)) || (column === last && row === 0);
      if (!inCorner) square(x, y, 2, (distance) => distance !== 1);
    }),
  );
  for (const [x, y] of [
    [3, 3],
    [size - 4, 3],
    [3, size - 4],
  ])
    square(x, y, 4, (distance) => distance !== 2 && distance !== 4);
  if (version > 6) drawVersion(version, size, set);
}

function alignmentCentres(version) {
  if (version === 1) return [];
  const count = Math.floor(version / 7) + 2;
  const step = Math.floor((version * 8 + count * 3 + 5) / (count * 4 - 4)) * 2;
  const centres = [6];
  for (let at = 1; at < count; at++) centres.push(sizeOf(version) - 7 - (count - 1 - at) * step);
  return centres;
}

function drawVersion(version, size, set) {
  const bits = (version << 12) | checked(version, 0x1f25, 12);
  for (let at = 0; at < 18; at++) {
    const dark = ((bits >> at) & 1) === 1;
    const [far, near] = [size - 11 + (at % 3), Math.floor(at / 3)];
    set(far, near, dark);
    set(near, far, dark);
  }
}

function drawFormat(size, mask, set) {
  const data = (LEVEL_M << 3) | mask;
  const bits = ((data << 10) | checked(data, 0x537, 10)) ^ 0x5412;
  for (let at = 0; at < 15; at++) {
    const dark = ((bits >> at) & 1) === 1;
    if (at < 6) set(8, at, dark);
    else if (at < 8) set(8, at + 1, dark);
    else set(at === 8 ? 7 : 14 - at, 8, dark);
    if (at < 8) set(size - 1 - at, 8, dark);
    else set(8, size - 15 + at, dark);
  }
  set(8, size - 8, true);
}

/** Check bits of a BCH code. */
function checked(data, polynomial, degree) {
  let rest = data;
  for (let step = 0; step < degree; step++) rest = (rest << 1) ^ ((rest >> (degree - 1)) * polynomial);
  return rest;
}

/** What makes a code hard to read (section 7.8.3): runs, blocks, what looks like a finder pattern, too dark or too bright. */
function penalty(modules) {
  const size = modules.length;
  const columns = modules.map((_, x) => modules.map((row) => row[x]));
  let cost = 0;
  for (const line of [...modules, ...columns]) {
    const text = line.map((dark) => (dark ? '1' : '0')).join('');
    for (const [run] of text.matchAll(/1{5,}|0{5,}/g)) cost += run.length - 2;
    cost += 40 * [...text.matchAll(/(?=10111010000|00001011101)/g)].length;
  }
  let dark = 0;
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size; x++) {
      if (modules[y][x]) dark++;
      const own = modules[y][x];
      if (x > 0 && y > 0 && modules[y - 1][x] === own && modules[y][x - 1] === own && modules[y - 1][x - 1] === own)
        cost += 3;
    }
  }
  return cost + 10 * Math.floor(Math.abs((dark * 20) / size ** 2 - 10));
}

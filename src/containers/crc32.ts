const POLYNOMIAL = 0x04c11db7;
const TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte << 24;
  for (let bit = 0; bit < 8; bit++) rest = (rest << 1) ^ (rest < 0 ? POLYNOMIAL : 0);
  return rest;
});

/**
 * CRC-32 of `data` from `start` to `end`, with the highest bit first and without inversion at the end.
 * @param from 0 in NUT, 0xffffffff in the sections of MPEG-TS (ISO/IEC 13818-1 annex A)
 */
export function crc32(data: Uint8Array, start = 0, end = data.length, from = 0): number {
  let rest = from;
  for (let at = start; at < end; at++) {
    rest = (rest << 8) ^ (TABLE[(rest >>> 24) ^ (data[at] as number)] as number);
  }
  return rest >>> 0;
}

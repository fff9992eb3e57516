const POLYNOMIAL = 0x04c11db7;
const TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte << 24;
  for (let bit = 0; bit < 8; bit++) rest = (rest << 1) ^ (rest < 0 ? POLYNOMIAL : 0);
  return rest;
});

/** NUT's checksum of `data` from `start` to `end`: CRC-32 with the highest bit first, from 0, without inversion. */
export function crc(data: Uint8Array, start = 0, end = data.length): number {
  let rest = 0;
  for (let at = start; at < end; at++) {
    rest = (rest << 8) ^ (TABLE[(rest >>> 24) ^ (data[at] as number)] as number);
  }
  return rest >>> 0;
}

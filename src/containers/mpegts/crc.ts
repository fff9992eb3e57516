import { crc32 } from '../crc32.ts';

const FROM = 0xffffffff;

/** Checksum at the end of a section, over all bytes before; over a whole section it is 0 (ISO/IEC 13818-1 annex A). */
export function sectionCrc(data: Uint8Array): number {
  return crc32(data, 0, data.length, FROM);
}

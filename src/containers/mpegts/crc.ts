import { crc32 } from '../crc32.ts';

const FROM = 0xffffffff;

/** What a section ends with, over all that is before it; over a whole section it is 0 (ISO/IEC 13818-1 annex A). */
export function sectionCrc(data: Uint8Array): number {
  return crc32(data, 0, data.length, FROM);
}

const HEADER = 8;
/** Optional fields of `trun` before its samples, and before the size of one, by flag (ISO/IEC 14496-12, 8.8.8). */
const DATA_OFFSET = 0x1;
const FIRST_SAMPLE_FLAGS = 0x4;
const SAMPLE_DURATION = 0x100;
const SAMPLE_SIZE = 0x200;
const FULL_BOX = 4;
const COUNT = 4;
const FIELD = 4;

/**
 * Bytes of a fragment from its begin to the end of its first sample: what a player needs to decode that alone.
 * @param fragment boxes up to `mdat`, with one run of samples
 * @returns undefined for bytes that are no such fragment
 */
export function firstSampleEnd(fragment: Buffer): number | undefined {
  const moof = find(fragment, 'moof', 0, fragment.length);
  const traf = moof && find(fragment, 'traf', moof.start, moof.end);
  const trun = traf && find(fragment, 'trun', traf.start, traf.end);
  const mdat = moof && find(fragment, 'mdat', moof.end, fragment.length);
  if (trun === undefined || mdat === undefined || trun.end - trun.start < FULL_BOX + COUNT) return undefined;
  const flags = fragment.readUIntBE(trun.start + 1, 3);
  if ((flags & SAMPLE_SIZE) === 0 || fragment.readUInt32BE(trun.start + FULL_BOX) === 0) return undefined;
  const before = [DATA_OFFSET, FIRST_SAMPLE_FLAGS, SAMPLE_DURATION].filter((flag) => (flags & flag) !== 0).length;
  const at = trun.start + FULL_BOX + COUNT + before * FIELD;
  if (at + FIELD > trun.end) return undefined;
  const end = mdat.start + fragment.readUInt32BE(at);
  return end <= mdat.end ? end : undefined;
}

/** Content of the first box of a type between two offsets. */
function find(bytes: Buffer, type: string, from: number, to: number): { start: number; end: number } | undefined {
  for (let at = from; at + HEADER <= to;) {
    const size = bytes.readUInt32BE(at);
    if (size < HEADER || at + size > to) return undefined;
    if (bytes.toString('latin1', at + 4, at + HEADER) === type) return { start: at + HEADER, end: at + size };
    at += size;
  }
  return undefined;
}

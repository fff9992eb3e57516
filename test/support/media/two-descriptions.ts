import { ascii, box, fullBox, u32 } from '../../../src/containers/fmp4/box.ts';
import { movieHeader, trackBox } from '../../../src/containers/fmp4/movie.ts';
import { sampleEntry } from '../../../src/containers/fmp4/sample-entry.ts';
import type { VideoTrack } from '../../../src/core/track.ts';
import type { ItemUnit } from '../../../src/channels/scheduled/item-source.ts';

/** Puts bytes at the end of a box in others, as the path to it says, the counted entries of a table. */
function append(bytes: Buffer, [type = '', ...path]: readonly string[], addition: Buffer): Buffer {
  for (let at = 0; at < bytes.length; at += bytes.readUInt32BE(at)) {
    const end = at + bytes.readUInt32BE(at);
    if (bytes.toString('latin1', at + 4, at + 8) !== type) continue;
    const content = bytes.subarray(at + 8, end);
    const grown = path.length > 0 ? append(content, path, addition) : Buffer.concat([content, addition]);
    if (path.length === 0) grown.writeUInt32BE(grown.readUInt32BE(4) + 1, 4);
    return Buffer.concat([bytes.subarray(0, at), box(type, grown), bytes.subarray(end)]);
  }
  throw new Error(`no ${type}`);
}

/** No more frames are reordered than this. */
const REORDERED = 4;

/** An MP4 file with one video track of two sample descriptions: the frames of one file, and then those of another. */
export function twoDescriptions(one: readonly ItemUnit[], other: readonly ItemUnit[], frameTicks: number): Buffer {
  const units = [...one, ...other];
  const [a, b] = [one[0]?.track as VideoTrack, other[0]?.track as VideoTrack];
  const ftyp = box('ftyp', ascii('isom'), u32(0x200), ascii('isomavc1mp41'));
  const sizes = (of: readonly ItemUnit[]): number => of.reduce((sum, { data }) => sum + data.length, 0);
  const dataAt = ftyp.length + 8;
  const shown = [...one.map(({ pts }) => pts), ...other.map(({ pts }) => one.length * frameTicks + pts)];
  const offsets = shown.map((pts, index) => pts - (index - REORDERED) * frameTicks);
  const keys = units.flatMap(({ key }, index) => (key ? [index + 1] : []));
  const tables = [
    fullBox('stts', 0, 0, u32(1, units.length, frameTicks)),
    fullBox('ctts', 0, 0, u32(units.length, ...offsets.flatMap((offset) => [1, offset]))),
    fullBox('stss', 0, 0, u32(keys.length, ...keys)),
    fullBox('stsz', 0, 0, u32(0, units.length, ...units.map(({ data }) => data.length))),
    fullBox('stsc', 0, 0, u32(2, 1, one.length, 1, 2, other.length, 2)),
    fullBox('stco', 0, 0, u32(2, dataAt, dataAt + sizes(one))),
  ];
  const duration = units.length * frameTicks;
  const place = { id: 1, duration: Math.round(duration / 90), mediaDuration: duration, tables };
  const trak = append(trackBox(a, place), ['trak', 'mdia', 'minf', 'stbl', 'stsd'], sampleEntry(b));
  const moov = box('moov', movieHeader(1000, place.duration, 2), trak);
  return Buffer.concat([ftyp, box('mdat', ...units.map(({ data }) => data)), moov]);
}

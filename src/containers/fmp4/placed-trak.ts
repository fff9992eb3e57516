import { box } from './box.ts';
import { timedBox, type TrackPlace } from './movie.ts';
import { BOX_HEAD_BYTES, child, children, type ReadBox } from './read-box.ts';

/**
 * Converts the `trak` of a file to one with other edits, durations and tables. Its sample descriptions stay.
 * @throws RangeError for a damaged one
 */
export function placedTrak(trak: Buffer, { duration, mediaDuration, edits, tables }: TrackPlace): Buffer {
  return rebuilt(trak, {
    tkhd: ({ content }) => Buffer.concat([timed('tkhd', content, 8, duration), ...(edits ? [edits] : [])]),
    edts: () => Buffer.alloc(0),
    mdia: (mdia) =>
      rebuilt(mdia.bytes, {
        mdhd: ({ content }) => timed('mdhd', content, 4, mediaDuration),
        minf: (minf) =>
          rebuilt(minf.bytes, { stbl: ({ content }) => box('stbl', child(content, 'stsd').bytes, ...tables) }),
      }),
  });
}

function rebuilt(bytes: Buffer, parts: Readonly<Record<string, (part: ReadBox) => Buffer>>): Buffer {
  const inside = children(bytes.subarray(BOX_HEAD_BYTES));
  return box(bytes.toString('latin1', 4, 8), ...inside.map((part) => parts[part.type]?.(part) ?? part.bytes));
}

/** Sets the duration of a box in which `before` bytes stand between times and duration. */
function timed(type: string, content: Buffer, before: number, duration: number): Buffer {
  const flags = content.readUInt32BE(0) & 0xffffff;
  const isLong = content[0] === 1;
  const at = isLong ? 20 : 12;
  const rest = content.subarray(at + before + (isLong ? 8 : 4));
  return timedBox(type, flags, content.subarray(at, at + before), duration, rest);
}

const HEADER_BYTES = 9;
const TAG_HEAD_BYTES = 11;
const HAS_AUDIO = 4;
const HAS_VIDEO = 1;

/** Header of an FLV file with the size of the tag before the first (FLV specification annex E.2, E.3). */
export function fileHeader({ hasVideo, hasAudio }: { hasVideo: boolean; hasAudio: boolean }): Buffer {
  const header = Buffer.alloc(HEADER_BYTES + 4);
  header.write('FLV', 'latin1');
  header[3] = 1;
  header[4] = (hasAudio ? HAS_AUDIO : 0) | (hasVideo ? HAS_VIDEO : 0);
  header.writeUInt32BE(HEADER_BYTES, 5);
  return header;
}

/**
 * A tag of an FLV file, in pieces, with its size behind it (annex E.3, E.4.1).
 * @param type 8 audio, 9 video, 18 data
 * @param time milliseconds, of which 32 bits count
 * @param body in pieces
 */
export function fileTag(type: number, time: number, body: readonly Buffer[]): Buffer[] {
  let length = 0;
  for (const piece of body) length += piece.length;
  const head = Buffer.alloc(TAG_HEAD_BYTES);
  head[0] = type;
  head.writeUIntBE(length, 1, 3);
  head.writeUIntBE(time & 0xffffff, 4, 3);
  head[7] = (time >>> 24) & 0xff;
  const size = Buffer.alloc(4);
  size.writeUInt32BE(TAG_HEAD_BYTES + length);
  return [head, ...body, size];
}

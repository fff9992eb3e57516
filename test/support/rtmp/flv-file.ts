import { spawnSync } from 'node:child_process';

const MEDIA_TYPES: Readonly<Record<number, 'audio' | 'video'>> = { 8: 'audio', 9: 'video' };
const MAX_OUTPUT = 256 * 1024 * 1024;
const FILE_HEADER_BYTES = 13;
const TAG_HEADER_BYTES = 11;
const TAG_TRAILER_BYTES = 4;

export interface FlvTag {
  readonly type: 'audio' | 'video';
  /** Milliseconds. */
  readonly time: number;
  /** That of the RTMP message. */
  readonly body: Buffer;
}

/** The media tags of what an ffmpeg writes as FLV. @throws Error when it fails */
export function encodeFlv(args: readonly string[], ffmpeg = 'ffmpeg'): FlvTag[] {
  const { stdout, stderr, status } = spawnSync(ffmpeg, ['-v', 'error', ...args, '-f', 'flv', '-'], {
    maxBuffer: MAX_OUTPUT,
  });
  if (status !== 0) throw new Error(`ffmpeg: ${stderr.toString()}`);
  return flvTags(stdout);
}

/** The media tags of a file. */
export function flvTags(flv: Buffer): FlvTag[] {
  const tags: FlvTag[] = [];
  for (let at = FILE_HEADER_BYTES; at + TAG_HEADER_BYTES + TAG_TRAILER_BYTES <= flv.length;) {
    const type = MEDIA_TYPES[flv.readUInt8(at)];
    const size = flv.readUIntBE(at + 1, 3);
    const time = flv.readUIntBE(at + 4, 3) + flv.readUInt8(at + 7) * 0x1000000;
    const start = at + TAG_HEADER_BYTES;
    if (type !== undefined) tags.push({ type, time, body: flv.subarray(start, start + size) });
    at = start + size + TAG_TRAILER_BYTES;
  }
  return tags;
}

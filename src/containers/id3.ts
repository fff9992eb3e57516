/** Frame of an ID3 tag. */
export type Id3Frame =
  /** Text with a description. */
  | { readonly id: 'TXXX'; readonly description: string; readonly value: string }
  /** Another text frame: `T` and three capital letters or digits. */
  | { readonly id: string; readonly text: string }
  /** Private data of an owner, whose name is Latin-1. */
  | { readonly id: 'PRIV'; readonly owner: string; readonly data: Buffer };

const UTF8 = Buffer.of(3);
const END = Buffer.of(0);

/**
 * Builds an ID3v2.4.0 tag (id3.org, "ID3 tag version 2.4.0 - Main Structure" 3 and 4, "Native Frames" 4.2 and 4.27).
 * Descriptions and owners have no NUL.
 */
export function id3Tag(frames: readonly Id3Frame[]): Buffer {
  const body = Buffer.concat(frames.flatMap(frame));
  return Buffer.concat([Buffer.from('ID3\x04\0\0', 'latin1'), syncsafe(body.length), body]);
}

function frame(of: Id3Frame): Buffer[] {
  const content = Buffer.concat(contentOf(of));
  // no flags
  return [Buffer.from(of.id, 'latin1'), syncsafe(content.length), Buffer.of(0, 0), content];
}

function contentOf(of: Id3Frame): Buffer[] {
  if ('owner' in of) return [Buffer.from(of.owner, 'latin1'), END, of.data];
  if ('description' in of) return [UTF8, Buffer.from(of.description), END, Buffer.from(of.value)];
  return [UTF8, Buffer.from(of.text)];
}

/** Writes 28 bits to four bytes whose highest bits are 0. */
function syncsafe(value: number): Buffer {
  return Buffer.of((value >> 21) & 0x7f, (value >> 14) & 0x7f, (value >> 7) & 0x7f, value & 0x7f);
}

const MAGIC = 'ID3';
const REST_BYTES = 5;
const FRAME_HEADER_BYTES = 10;

const HEADER_BYTES = 10;
const FLAG = { unsynchronised: 0x80, extended: 0x40, footer: 0x10 } as const;

/** Bytes of the tag at the start of `data`; 0 where none is, undefined when more bytes are needed to decide. */
export function id3Bytes(data: Buffer): number | undefined {
  if (!MAGIC.startsWith(data.toString('latin1', 0, MAGIC.length))) return 0;
  if (data.length < HEADER_BYTES) return undefined;
  const size = unsynced(data, 6);
  if (size === undefined) return 0;
  return HEADER_BYTES + size + (((data[5] as number) & FLAG.footer) === 0 ? 0 : HEADER_BYTES);
}

/**
 * Data of the first private frame of an owner, in a whole tag of version 3 or 4.
 * @returns undefined where there is none that can be read
 */
export function id3Private(tag: Buffer, owner: string): Buffer | undefined {
  const [version, flags = 0, size = 0] = [tag[3], tag[5], unsynced(tag, 6)];
  if (flags & FLAG.unsynchronised) return undefined;
  const sizeAt = (at: number): number | undefined =>
    version === 4 ? unsynced(tag, at) : at + 4 > tag.length ? undefined : tag.readUInt32BE(at);
  let at = HEADER_BYTES;
  // its size includes itself since version 4
  if (flags & FLAG.extended) at += (sizeAt(at) ?? tag.length) + (version === 4 ? 0 : 4);
  const end = Math.min(tag.length, HEADER_BYTES + size);
  while (at + FRAME_HEADER_BYTES <= end && tag[at] !== 0) {
    const from = at + FRAME_HEADER_BYTES;
    const to = from + (sizeAt(at + 4) ?? end);
    if (to > end) return undefined;
    const content = tag.subarray(from, to);
    const name = content.indexOf(0);
    const isIt = tag.toString('latin1', at, at + 4) === 'PRIV' && content.toString('latin1', 0, name) === owner;
    if (isIt && name >= 0) return content.subarray(name + 1);
    at = to;
  }
  return undefined;
}

/**
 * Restores the magic and the version that the first of some tags lacks. The version follows from its frames, whose sizes
 * have another form since version 4.
 * @returns whole tags; undefined for anything else
 */
export function id3WithoutVersion(rest: Buffer): Buffer | undefined {
  const size = rest.length < REST_BYTES ? undefined : unsynced(rest, 1);
  if (size === undefined || REST_BYTES + size > rest.length) return undefined;
  const isWhole = REST_BYTES + size === rest.length || rest.toString('latin1', REST_BYTES + size).startsWith(MAGIC);
  const frames = rest.subarray(REST_BYTES, REST_BYTES + size);
  const version = [4, 3].find((one) => areFrames(frames, one));
  if (!isWhole || version === undefined) return undefined;
  return Buffer.concat([Buffer.from(MAGIC), Buffer.of(version, 0), rest]);
}

/** Whether frames of a version fill some bytes, up to padding. */
function areFrames(bytes: Buffer, version: number): boolean {
  let at = 0;
  while (at < bytes.length && bytes[at] !== 0) {
    if (at + FRAME_HEADER_BYTES > bytes.length || !/^[A-Z][A-Z\d]{3}$/.test(bytes.toString('latin1', at, at + 4)))
      return false;
    const size = version === 4 ? unsynced(bytes, at + 4) : bytes.readUInt32BE(at + 4);
    if (size === undefined) return false;
    at += FRAME_HEADER_BYTES + size;
  }
  return at <= bytes.length;
}

/** Reads a number that `syncsafe` wrote; undefined for other bytes. */
function unsynced(bytes: Buffer, at: number): number | undefined {
  const four = bytes.subarray(at, at + 4);
  return four.length < 4 || four.some((byte) => byte > 0x7f)
    ? undefined
    : four.reduce((value, byte) => value * 128 + byte, 0);
}

/** A tag of an FLV file. */
export interface FlvTag {
  readonly type: number;
  /** Milliseconds. */
  readonly time: number;
  readonly body: Buffer;
}

/** Whole tags of the start of an FLV file, and the flags of its header. @throws Error when it is not one */
export function readFlv(bytes: Buffer): { readonly flags: number; readonly tags: FlvTag[] } {
  if (bytes.length < 13) return { flags: 0, tags: [] };
  if (bytes.toString('latin1', 0, 3) !== 'FLV' || bytes[3] !== 1 || bytes.readUInt32BE(5) !== 9)
    throw new Error(`no FLV: ${bytes.toString('hex', 0, 13)}`);
  const tags: FlvTag[] = [];
  let before = 0;
  for (let at = 9; at + 15 <= bytes.length;) {
    if (bytes.readUInt32BE(at) !== before) throw new Error(`the size before the tag at ${at + 4} is wrong`);
    const length = bytes.readUIntBE(at + 5, 3);
    const end = at + 15 + length;
    if (end + 4 > bytes.length) break;
    const time = bytes.readUIntBE(at + 8, 3) + (bytes[at + 11] ?? 0) * 2 ** 24;
    tags.push({ type: bytes[at + 4] ?? 0, time, body: bytes.subarray(at + 15, end) });
    before = 11 + length;
    at = end;
  }
  return { flags: bytes[4] ?? 0, tags };
}

export interface ParsedBox {
  readonly type: string;
  /** Without the header. */
  readonly content: Buffer;
}

const CONTAINERS = new Set(['moov', 'trak', 'mdia', 'minf', 'stbl', 'mvex', 'moof', 'traf', 'dinf']);

/** The boxes at the top of some bytes. @throws when sizes do not add up */
export function parseBoxes(bytes: Buffer): ParsedBox[] {
  const boxes: ParsedBox[] = [];
  for (let at = 0; at < bytes.length;) {
    const size = bytes.readUInt32BE(at);
    if (size < 8 || at + size > bytes.length) throw new Error(`box of ${size} bytes at ${at} of ${bytes.length}`);
    boxes.push({ type: bytes.toString('latin1', at + 4, at + 8), content: bytes.subarray(at + 8, at + size) });
    at += size;
  }
  return boxes;
}

/** Content of the first box with that name, wherever it is. */
export function findBox(bytes: Buffer, wanted: string): Buffer | undefined {
  for (const { type, content } of parseBoxes(bytes)) {
    if (type === wanted) return content;
    const inside = CONTAINERS.has(type) ? findBox(content, wanted) : undefined;
    if (inside !== undefined) return inside;
  }
  return undefined;
}

export interface ParsedFragment {
  readonly sequence: number;
  readonly baseTime: number;
  readonly samples: readonly {
    duration: number;
    size: number;
    flags: number | undefined;
    offset: number | undefined;
  }[];
  /** Sum of the durations. */
  readonly duration: number;
  readonly payload: Buffer;
}

/** Reads one `moof` and `mdat` as this server writes them. */
export function parseFragment(bytes: Buffer): ParsedFragment {
  const [moof, mdat, ...rest] = parseBoxes(bytes);
  if (moof?.type !== 'moof' || mdat?.type !== 'mdat' || rest.length > 0) throw new Error('not one moof and mdat');
  const trun = findBox(bytes, 'trun') as Buffer;
  const flags = trun.readUInt32BE(0);
  if ((flags & 1) === 0 || trun.readInt32BE(8) !== moof.content.length + 16) throw new Error('wrong data offset');
  const samples = [];
  let at = 12;
  const next = (present: number) => (flags & present ? trun.readInt32BE((at += 4) - 4) : undefined);
  for (let index = 0; index < trun.readUInt32BE(4); index++) {
    samples.push({ duration: next(0x100) ?? 0, size: next(0x200) ?? 0, flags: next(0x400), offset: next(0x800) });
  }
  if (at !== trun.length) throw new Error('bytes left in trun');
  return {
    sequence: (findBox(bytes, 'mfhd') as Buffer).readUInt32BE(4),
    baseTime: Number((findBox(bytes, 'tfdt') as Buffer).readBigUInt64BE(4)),
    samples,
    duration: samples.reduce((sum, { duration }) => sum + duration, 0),
    payload: mdat.content,
  };
}

/** Reads the content of an `emsg` of version 1. */
export function parseEmsg(content: Buffer) {
  if (content.readUInt32BE(0) !== 0x0100_0000) throw new Error('not version 1');
  const valueAt = content.indexOf(0, 24) + 1;
  const messageAt = content.indexOf(0, valueAt) + 1;
  return {
    timescale: content.readUInt32BE(4),
    time: Number(content.readBigUInt64BE(8)),
    duration: content.readUInt32BE(16),
    id: content.readUInt32BE(20),
    scheme: content.toString('latin1', 24, valueAt - 1),
    value: content.toString('latin1', valueAt, messageAt - 1),
    message: content.subarray(messageAt),
  };
}

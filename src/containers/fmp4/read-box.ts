/** A box that was read. */
export interface ReadBox {
  readonly type: string;
  /** Whole box, and its content. */
  readonly bytes: Buffer;
  readonly content: Buffer;
}

export const BOX_HEAD_BYTES = 8;

/** Reads boxes that stand one after another. @throws RangeError for sizes that do not add up */
export function children(content: Buffer): ReadBox[] {
  const found: ReadBox[] = [];
  for (let at = 0; at < content.length;) {
    const size = content.readUInt32BE(at);
    if (size < BOX_HEAD_BYTES || at + size > content.length) throw new RangeError(`a box of ${size} bytes`);
    const bytes = content.subarray(at, at + size);
    found.push({ type: bytes.toString('latin1', 4, 8), bytes, content: bytes.subarray(BOX_HEAD_BYTES) });
    at += size;
  }
  return found;
}

/** Finds the first box of a type. @throws RangeError when it is missing */
export function child(content: Buffer, type: string): ReadBox {
  const found = children(content).find((one) => one.type === type);
  if (found === undefined) throw new RangeError(`there is no ${type} box`);
  return found;
}

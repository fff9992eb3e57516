/** One ISO base media box (ISO/IEC 14496-12, 4.2). */
export function box(type: string, ...content: Uint8Array[]): Buffer {
  let size = 8;
  for (const part of content) size += part.length;
  const bytes = Buffer.alloc(size);
  bytes.writeUInt32BE(size, 0);
  bytes.write(type, 4, 'latin1');
  let at = 8;
  for (const part of content) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** A box that starts with a version and 24 bits of flags. */
export function fullBox(type: string, version: number, flags: number, ...content: Uint8Array[]): Buffer {
  return box(type, u32(version * 0x1000000 + flags), ...content);
}

export function u8(...values: number[]): Buffer {
  return Buffer.from(values);
}

export function u16(...values: number[]): Buffer {
  const bytes = Buffer.allocUnsafe(values.length * 2);
  values.forEach((value, index) => bytes.writeUInt16BE(value, index * 2));
  return bytes;
}

export function u32(...values: number[]): Buffer {
  const bytes = Buffer.allocUnsafe(values.length * 4);
  values.forEach((value, index) => bytes.writeUInt32BE(value, index * 4));
  return bytes;
}

/** Whole numbers up to 2^53. */
export function u64(...values: number[]): Buffer {
  return u32(...values.flatMap((value) => [Math.floor(value / 0x1_0000_0000), value % 0x1_0000_0000]));
}

/** Nearest number that fits into unsigned bits. */
export function fitting(value: number, bits: 16 | 32): number {
  return value > 0 ? Math.min(Math.round(value), 2 ** bits - 1) : 0;
}

export function zeros(count: number): Buffer {
  return Buffer.alloc(count);
}

export function ascii(text: string): Buffer {
  return Buffer.from(text, 'latin1');
}

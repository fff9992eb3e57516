/** A frame of an ID3 tag, and what it says. */
export type Id3Frame =
  /** `TXXX`: a text with a description. */
  | { readonly id: 'TXXX'; readonly description: string; readonly value: string }
  /** Another text frame: `T` and three capital letters or digits. */
  | { readonly id: string; readonly text: string }
  /** `PRIV`: data for who knows the owner, which is Latin-1. */
  | { readonly id: 'PRIV'; readonly owner: string; readonly data: Buffer };

const UTF8 = Buffer.of(3);
const END = Buffer.of(0);

/**
 * An ID3v2.4.0 tag (id3.org, "ID3 tag version 2.4.0 - Main Structure" 3 and 4, "Native Frames" 4.2 and 4.27). Descriptions
 * and owners have no NUL.
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

/** 28 bits in four bytes whose highest bits are 0. */
function syncsafe(value: number): Buffer {
  return Buffer.of((value >> 21) & 0x7f, (value >> 14) & 0x7f, (value >> 7) & 0x7f, value & 0x7f);
}

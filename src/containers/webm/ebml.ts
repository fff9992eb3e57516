/** Ids of EBML and Matroska elements (RFC 8794, RFC 9559), as they are written. */
export const ID = {
  EBML: 0x1a45dfa3,
  EBMLVersion: 0x4286,
  EBMLReadVersion: 0x42f7,
  EBMLMaxIDLength: 0x42f2,
  EBMLMaxSizeLength: 0x42f3,
  DocType: 0x4282,
  DocTypeVersion: 0x4287,
  DocTypeReadVersion: 0x4285,
  Void: 0xec,
  Segment: 0x18538067,
  SeekHead: 0x114d9b74,
  Seek: 0x4dbb,
  SeekID: 0x53ab,
  SeekPosition: 0x53ac,
  Info: 0x1549a966,
  TimestampScale: 0x2ad7b1,
  Duration: 0x4489,
  MuxingApp: 0x4d80,
  WritingApp: 0x5741,
  Tracks: 0x1654ae6b,
  TrackEntry: 0xae,
  TrackNumber: 0xd7,
  TrackUID: 0x73c5,
  TrackType: 0x83,
  FlagLacing: 0x9c,
  Language: 0x22b59c,
  CodecID: 0x86,
  CodecPrivate: 0x63a2,
  CodecDelay: 0x56aa,
  SeekPreRoll: 0x56bb,
  Video: 0xe0,
  PixelWidth: 0xb0,
  PixelHeight: 0xba,
  DisplayWidth: 0x54b0,
  DisplayHeight: 0x54ba,
  Colour: 0x55b0,
  MatrixCoefficients: 0x55b1,
  Range: 0x55b9,
  TransferCharacteristics: 0x55ba,
  Primaries: 0x55bb,
  Audio: 0xe1,
  SamplingFrequency: 0xb5,
  Channels: 0x9f,
  Cluster: 0x1f43b675,
  Timestamp: 0xe7,
  SimpleBlock: 0xa3,
  Cues: 0x1c53bb6b,
  CuePoint: 0xbb,
  CueTime: 0xb3,
  CueTrackPositions: 0xb7,
  CueTrack: 0xf7,
  CueClusterPosition: 0xf1,
} as const;

/** Size of an element that ends with its file, in eight bytes. */
export const UNKNOWN_SIZE = Buffer.from('01ffffffffffffff', 'hex');

export function element(id: number, ...content: readonly Buffer[]): Buffer {
  return Buffer.concat([elementHead(id, lengthOf(content)), ...content]);
}

export function elementHead(id: number, size: number): Buffer {
  return Buffer.concat([number(id), vint(size)]);
}

export function uint(id: number, value: number): Buffer {
  return element(id, number(value));
}

/** Builds an unsigned integer element of eight bytes, whatever the value. */
export function uint64(id: number, value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return element(id, bytes);
}

/** A floating-point element of eight bytes. */
export function float(id: number, value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleBE(value);
  return element(id, bytes);
}

export function text(id: number, value: string): Buffer {
  return element(id, Buffer.from(value));
}

/** Builds a `Void` element of 2 to 128 bytes. */
export function filler(bytes: number): Buffer {
  return element(ID.Void, Buffer.alloc(bytes - 2));
}

/** Size as eight bytes (RFC 8794, 4). */
export function size64(size: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(size));
  bytes[0] = 1;
  return bytes;
}

/** Variable-size integer of minimal size; all ones mean that a size is unknown. */
export function vint(value: number): Buffer {
  let length = 1;
  while (value >= 2 ** (7 * length) - 1) length++;
  const bytes = Buffer.alloc(length);
  let rest = value;
  for (let at = length - 1; at >= 0; at--) {
    bytes[at] = rest % 256;
    rest = Math.floor(rest / 256);
  }
  bytes[0] = (bytes[0] as number) | (1 << (8 - length));
  return bytes;
}

/** Big-endian, without leading zeros. */
function number(value: number): Buffer {
  const bytes: number[] = [];
  for (let rest = value; rest > 0 || bytes.length === 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return Buffer.from(bytes);
}

function lengthOf(parts: readonly Buffer[]): number {
  return parts.reduce((bytes, { length }) => bytes + length, 0);
}

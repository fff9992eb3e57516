import { BitstreamError } from './bits.ts';

export interface Vp8KeyFrame {
  /** Selects reconstruction and loop filter, 0 to 3. */
  readonly profile: number;
  readonly width: number;
  readonly height: number;
}

/** Whether a frame is a key frame (RFC 6386 section 9.1). */
export function isKey(frame: Buffer): boolean {
  return frame.length > 0 && ((frame[0] as number) & 1) === 0;
}

/** Reads the header of a key frame (RFC 6386 section 9.1). @throws BitstreamError */
export function parseKeyFrame(frame: Buffer): Vp8KeyFrame {
  if (frame.length < 10) throw new BitstreamError('a VP8 key frame is too short');
  if (!isKey(frame) || frame.readUIntBE(3, 3) !== 0x9d012a) throw new BitstreamError('not a VP8 key frame');
  return {
    profile: ((frame[0] as number) >> 1) & 7,
    width: frame.readUInt16LE(6) & 0x3fff,
    height: frame.readUInt16LE(8) & 0x3fff,
  };
}

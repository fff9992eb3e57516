import { ascii, box, fullBox, u16, u32, u8, zeros } from './box.ts';

/** Blocks of 16 bytes that are encrypted, and those after them that are not, in turn (ISO/IEC 23001-7, 9.6). */
export interface Pattern {
  readonly crypt: number;
  readonly skip: number;
}

/** How samples of a track are encrypted unless a fragment says otherwise (`tenc`, ISO/IEC 23001-7, 8.2). */
export interface TrackProtection {
  readonly scheme: 'cenc' | 'cbcs';
  /** 16 bytes. */
  readonly keyId: Buffer;
  /** undefined for all blocks. */
  readonly pattern: Pattern | undefined;
  /** IV of all samples, 16 bytes; undefined where each has its own of 8 bytes. */
  readonly iv: Buffer | undefined;
}

/** Consecutive bytes of a sample: first those in clear, then those that are encrypted. */
export interface Subsample {
  /** At most 65535. */
  readonly clear: number;
  readonly encrypted: number;
}

/** Encryption of a sample, as its fragment describes it. */
export interface SampleProtection {
  /** 8 bytes; undefined where the track has one for all. */
  readonly iv: Buffer | undefined;
  /** undefined for a sample that is encrypted as a whole. */
  readonly subsamples: readonly Subsample[] | undefined;
}

const SCHEME_VERSION = 0x10000;
const HAS_SUBSAMPLES = 2;
const SUBSAMPLE_BYTES = 6;
const IV_BYTES = 8;
/** `saiz` has a byte for the size of each sample's information: an IV, a number of subsamples, and those. */
export const MAX_SUBSAMPLES = Math.floor((0xff - IV_BYTES - 2) / SUBSAMPLE_BYTES);
/** Bytes of `senc` before the information of the first sample. */
export const SENC_HEAD = 16;

/** Turns a sample entry into that of an encrypted track (`encv` and `enca`, ISO/IEC 14496-12, 8.12). */
export function protectedEntry(entry: Buffer, type: 'video' | 'audio', protection: TrackProtection): Buffer {
  const { scheme, keyId, pattern, iv } = protection;
  const tenc = fullBox(
    'tenc',
    scheme === 'cbcs' ? 1 : 0,
    0,
    u8(0, ((pattern?.crypt ?? 0) << 4) | (pattern?.skip ?? 0), 1, iv === undefined ? IV_BYTES : 0),
    keyId,
    ...(iv === undefined ? [] : [u8(iv.length), iv]),
  );
  const sinf = box(
    'sinf',
    box('frma', entry.subarray(4, 8)),
    fullBox('schm', 0, 0, ascii(scheme), u32(SCHEME_VERSION)),
    box('schi', tenc),
  );
  return box(type === 'video' ? 'encv' : 'enca', entry.subarray(8), sinf);
}

/**
 * Builds `senc` and `saiz` (ISO/IEC 23001-7, 7.2; ISO/IEC 14496-12, 8.7.8) of samples that all have subsamples, or none.
 * @returns undefined where the track says it all
 */
export function auxiliaryBoxes(
  samples: readonly SampleProtection[],
): { readonly senc: Buffer; readonly saiz: Buffer } | undefined {
  const infos = samples.map(({ iv, subsamples }) => {
    const list = subsamples?.map(({ clear, encrypted }) => Buffer.concat([u16(clear), u32(encrypted)]));
    return Buffer.concat([iv ?? zeros(0), ...(list === undefined ? [] : [u16(list.length), ...list])]);
  });
  if (infos.every(({ length }) => length === 0)) return undefined;
  const hasSubsamples = samples.some(({ subsamples }) => subsamples !== undefined);
  const size = infos.every(({ length }) => length === infos[0]?.length) ? (infos[0]?.length ?? 0) : 0;
  return {
    senc: fullBox('senc', 0, hasSubsamples ? HAS_SUBSAMPLES : 0, u32(infos.length), ...infos),
    saiz: fullBox(
      'saiz',
      0,
      0,
      u8(size),
      u32(infos.length),
      size > 0 ? zeros(0) : u8(...infos.map((info) => info.length)),
    ),
  };
}

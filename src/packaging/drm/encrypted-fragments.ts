import type { DrmEntry } from '../../config/drm-info.ts';
import { fragment, type Sample } from '../../containers/fmp4/fragment.ts';
import { initSegment } from '../../containers/fmp4/init.ts';
import { protectedEntry, type Pattern, type TrackProtection } from '../../containers/fmp4/protection.ts';
import { sampleEntry, UnsupportedTrackError } from '../../containers/fmp4/sample-entry.ts';
import type { MediaTrack } from '../../core/track.ts';
import { emsgOf, FRAGMENTS, type PartForm } from '../part-form.ts';
import { keyAttributes } from './key-tags.ts';
import { CbcCipher, CtrCipher, type SampleCipher } from './sample-cipher.ts';
import { NAL_SYNTAX } from './slice-headers.ts';
import { SubsampleFinder } from './subsamples.ts';

/** Video of `cbcs`: one block of ten (ISO/IEC 23001-7, 10.4.2). Audio is encrypted as a whole. */
const VIDEO_PATTERN: Pattern = { crypt: 1, skip: 9 };
const WHOLE_SAMPLES = ['AAC', 'OPUS'];

/** State of one track. */
interface EncryptedTrack {
  readonly codec: string;
  readonly cipher: SampleCipher;
  readonly subsamples: SubsampleFinder | undefined;
}

/**
 * Fragments of fragmented MP4 whose samples are encrypted (Common Encryption, ISO/IEC 23001-7): H.264, H.265, AAC and Opus.
 * Another codec is not packaged: it would be in clear.
 */
export function encryptedFragments(drm: DrmEntry): PartForm<Buffer> {
  const keys = keyAttributes(drm);
  const tracks = new Map<number, EncryptedTrack>();
  return {
    ...FRAGMENTS,
    describe: (track, version) => {
      if (NAL_SYNTAX[track.codec] === undefined && !WHOLE_SAMPLES.includes(track.codec))
        throw new UnsupportedTrackError(`${track.codec} cannot be encrypted, and DRM is configured`);
      const init = FRAGMENTS.describe(track, version);
      const entry = protectedEntry(sampleEntry(track), track.type, protectionOf(track, drm));
      return { ...init, data: initSegment(track, { entry, boxes: drm.pssh }), keys };
    },
    part: (track, sequence, start, samples, events) => {
      const known = tracks.get(track.id);
      const encrypted = known?.codec === track.codec ? known : encryptedTrack(track, drm);
      tracks.set(track.id, encrypted);
      const data = encryptedFragment(track, encrypted, sequence, start, samples, events.map(emsgOf));
      return { data, bytes: data.length };
    },
  };
}

function patternOf({ type }: MediaTrack): Pattern | undefined {
  return type === 'video' ? VIDEO_PATTERN : undefined;
}

function protectionOf(track: MediaTrack, { scheme, keyId, iv }: DrmEntry): TrackProtection {
  return scheme === 'cenc'
    ? { scheme, keyId, pattern: undefined, iv: undefined }
    : { scheme, keyId, pattern: patternOf(track), iv };
}

function encryptedTrack(track: MediaTrack, { scheme, key, iv }: DrmEntry): EncryptedTrack {
  const syntax = NAL_SYNTAX[track.codec];
  return {
    codec: track.codec,
    cipher: scheme === 'cenc' ? new CtrCipher(key) : new CbcCipher(key, iv, patternOf(track)),
    subsamples: syntax && new SubsampleFinder(syntax, scheme === 'cenc'),
  };
}

function encryptedFragment(
  track: MediaTrack,
  { cipher, subsamples }: EncryptedTrack,
  sequence: number,
  start: number,
  samples: readonly Sample[],
  boxes: readonly Buffer[],
): Buffer {
  const protections = samples.map(({ data }) => cipher.next(subsamples?.find(track, data)));
  const bytes = fragment(track.type, sequence, start, samples, boxes, protections);
  let end = bytes.length;
  for (let index = samples.length - 1; index >= 0; index--) {
    const begin = end - (samples[index] as Sample).data.length;
    cipher.encrypt(bytes.subarray(begin, end), protections[index] as (typeof protections)[number]);
    end = begin;
  }
  return bytes;
}

import type { DrmKey } from '../../config/drm-info.ts';
import { fragment, type Sample } from '../../containers/fmp4/fragment.ts';
import { initSegment } from '../../containers/fmp4/init.ts';
import { protectedEntry, type Pattern, type TrackProtection } from '../../containers/fmp4/protection.ts';
import { sampleEntry, UnsupportedTrackError } from '../../containers/fmp4/sample-entry.ts';
import type { MediaTrack } from '../../core/track.ts';
import { emsgsOf, FRAGMENTS, type PartForm } from '../part-form.ts';
import type { Init } from '../segment.ts';
import type { KeySchedule } from './key-schedule.ts';
import { keyAttributes, sessionAttributes } from './key-tags.ts';
import { CbcCipher, CtrCipher, type SampleCipher } from './sample-cipher.ts';
import { NAL_SYNTAX } from './slice-headers.ts';
import { SliceFinder, type SubsampleFinder } from './subsamples.ts';
import { TileFinder } from './tile-finder.ts';

/** Video of `cbcs`: one block of ten (ISO/IEC 23001-7, 10.4.2). Audio is encrypted as a whole. */
const VIDEO_PATTERN: Pattern = { crypt: 1, skip: 9 };
const WHOLE_SAMPLES = ['AAC', 'OPUS', 'FLAC'];

/** State of one track. */
interface EncryptedTrack {
  readonly codec: string;
  readonly key: DrmKey;
  readonly cipher: SampleCipher;
  readonly subsamples: SubsampleFinder | undefined;
}

/**
 * Fragments of fragmented MP4 whose samples are encrypted (Common Encryption, ISO/IEC 23001-7): H.264, H.265, AV1, AAC, Opus and FLAC.
 * Another codec is not packaged: it would be in clear. A segment whose key is another one has its own initialization. Segments
 * without a key are in clear.
 */
export function encryptedFragments(schedule: KeySchedule): PartForm<Buffer> {
  const keys = new WeakMap<Init, DrmKey>();
  const inClear = new WeakSet<Init>();
  const tracks = new Map<number, EncryptedTrack>();
  return {
    ...FRAGMENTS,
    describe: (track, version, msn = Infinity) => {
      if (!isEncryptable(track))
        throw new UnsupportedTrackError(`${track.codec} cannot be encrypted, and DRM is configured`);
      const key = schedule.at(msn);
      if (key === undefined) {
        const init = FRAGMENTS.describe(track, version);
        inClear.add(init);
        return init;
      }
      const entry = protectedEntry(sampleEntry(track), track.type, protectionOf(track, key));
      const data = initSegment(track, { entry, boxes: key.pssh });
      const init = {
        ...FRAGMENTS.describe(track, version),
        ...{ data, keys: keyAttributes(key), sessionKeys: sessionAttributes(key) },
      };
      keys.set(init, key);
      return init;
    },
    isOver: (init, msn) => keys.get(init) !== schedule.at(msn),
    part: (track, init, sequence, start, samples, events) => {
      const key = keys.get(init) ?? schedule.newest;
      if (inClear.has(init) || key === undefined) return FRAGMENTS.part(track, init, sequence, start, samples, events);
      const encrypted = encryptedTrack(track, key, tracks.get(track.id));
      tracks.set(track.id, encrypted);
      const data = encryptedFragment(track, encrypted, sequence, start, samples, emsgsOf(events));
      return { data, bytes: data.length };
    },
  };
}

/** Whether a codec can be encrypted. */
function isEncryptable({ codec }: MediaTrack): boolean {
  return codec === 'AV1' || NAL_SYNTAX[codec] !== undefined || WHOLE_SAMPLES.includes(codec);
}

/** undefined for a codec whose frames are encrypted as a whole. @param aligned as of the finders */
function finderOf(codec: string, aligned: boolean): SubsampleFinder | undefined {
  if (codec === 'AV1') return new TileFinder(aligned);
  const syntax = NAL_SYNTAX[codec];
  return syntax && new SliceFinder(syntax, aligned);
}

function patternOf({ type }: MediaTrack): Pattern | undefined {
  return type === 'video' ? VIDEO_PATTERN : undefined;
}

function protectionOf(track: MediaTrack, { scheme, keyId, iv }: DrmKey): TrackProtection {
  return scheme === 'cenc'
    ? { scheme, keyId, pattern: undefined, iv: undefined }
    : { scheme, keyId, pattern: patternOf(track), iv };
}

/** @param before of the part before */
function encryptedTrack(track: MediaTrack, key: DrmKey, before: EncryptedTrack | undefined): EncryptedTrack {
  const known = before?.codec === track.codec ? before : undefined;
  if (known?.key === key) return known;
  const { scheme } = key;
  return {
    codec: track.codec,
    key,
    cipher: scheme === 'cenc' ? new CtrCipher(key.key) : new CbcCipher(key.key, key.iv, patternOf(track)),
    // parameter sets and references of the frames so far still count
    subsamples: known?.subsamples ?? finderOf(track.codec, scheme === 'cenc'),
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

import type { VideoTrack } from '../../core/track.ts';
import type { VideoEncoding } from '../encoding.ts';
import type { ExtraOptions } from './extra-options.ts';
import { constantRate, countedBySource, listed, LONG_GOP, spread } from './rate.ts';
import { encoderThreads } from './threads.ts';

const OPENH264_MAX_FRAMERATE = 60;
/** OpenH264 has complexity only as bounds of the quantizer (docs/compatibility.md#transcoding). */
const OPENH264_QP = { slower: [10, 39], slow: [16, 45], medium: [24, 51], fast: [32, 51], faster: [40, 51] } as const;

/**
 * Options of x264. The default preset is `veryfast`: faster ones lose far more quality than they save. Rate control uses the
 * declared rate: with timestamps it would hold back each frame until the next. Frames are split among threads.
 */
export function x264(encoding: VideoEncoding, { allowed }: ExtraOptions): string[] {
  const { preset = 'veryfast', profile, bFrames, lookahead, expectedFramerate } = encoding;
  const params: [string, string | number][] = [['fps', expectedFramerate]];
  if (lookahead > 0) params.push(['rc-lookahead', lookahead], ['mbtree', 1]);
  return [
    '-c:v',
    'libx264',
    '-preset',
    preset,
    '-tune',
    'zerolatency',
    ...profileOf(profile),
    '-bf',
    String(bFrames),
    ...constantRate(encoding),
    '-g',
    LONG_GOP,
    '-sc_threshold',
    '0',
    '-forced-idr',
    '1',
    '-threads',
    String(encoderThreads(encoding)),
    '-x264-params',
    listed([...params, ...allowed]),
  ];
}

const X265_BUFFER_SECONDS = 2;

/** Options of x265. The default preset is `ultrafast`. With a shorter buffer, it reaches its bitrate late. */
export function x265(encoding: VideoEncoding, { allowed }: ExtraOptions): string[] {
  const { preset = 'ultrafast', bFrames, lookahead, expectedFramerate } = encoding;
  const params: [string, string | number][] = [
    ['log-level', 'error'],
    ['fps', expectedFramerate],
    ['scenecut', 0],
    ['open-gop', 0],
    ['frame-threads', 1],
    ['pools', encoderThreads(encoding)],
  ];
  if (lookahead > 0) params.push(['rc-lookahead', lookahead]);
  return [
    '-c:v',
    'libx265',
    '-preset',
    preset,
    '-tune',
    'zerolatency',
    '-bf',
    String(bFrames),
    ...constantRate(encoding, X265_BUFFER_SECONDS),
    '-g',
    LONG_GOP,
    '-forced-idr',
    '1',
    '-x265-params',
    listed([...params, ...allowed]),
  ];
}

/** Options of OpenH264, which has no B-frames and no lookahead. */
export function openh264(encoding: VideoEncoding, { allowed }: ExtraOptions, from: VideoTrack): string[] {
  const { preset, profile } = encoding;
  const { bitrate } = countedBySource(encoding, from, OPENH264_MAX_FRAMERATE);
  const [qmin, qmax] = preset === undefined ? [] : OPENH264_QP[preset];
  const quantizer = qmin === undefined || qmax === undefined ? [] : ['-qmin', String(qmin), '-qmax', String(qmax)];
  return [
    '-c:v',
    'libopenh264',
    ...profileOf(OPENH264_PROFILES[profile ?? 'baseline']),
    '-rc_mode',
    'bitrate',
    '-b:v',
    String(bitrate),
    '-maxrate',
    String(bitrate),
    ...quantizer,
    '-g',
    LONG_GOP,
    '-threads',
    String(encoderThreads(encoding)),
    ...spread(allowed),
  ];
}

const OPENH264_PROFILES = { baseline: 'constrained_baseline', main: 'main', high: 'high' } as const;

function profileOf(profile: string | undefined): string[] {
  return profile === undefined ? [] : ['-profile:v', profile];
}

import type { VideoEncoding } from '../encoding.ts';
import type { ExtraOptions } from './extra-options.ts';
import { constantRate, listed, LONG_GOP, spread } from './rate.ts';
import { encoderThreads } from './threads.ts';

const LIBVPX_SPEED = {
  slower: ['best', 0],
  slow: ['best', 0],
  medium: ['good', 4],
  fast: ['realtime', 6],
  faster: ['realtime', 8],
} as const;
const LIBAOM_SPEED = { slower: 5, slow: 6, medium: 7, fast: 8, faster: 8 } as const;
const SVTAV1_PRESET = { slower: 6, slow: 7, medium: 8, fast: 9, faster: 10 } as const;
const LIBVPX_MAX_LAG = 25;

/** Options of libvpx, for VP8 and VP9. The default is the fastest preset. */
export function libvpx(encoding: VideoEncoding, { allowed }: ExtraOptions): string[] {
  const [deadline, speed] = LIBVPX_SPEED[encoding.preset ?? 'faster'];
  const lag = Math.min(LIBVPX_MAX_LAG, Math.max(0, encoding.lookahead));
  const vp9 = encoding.codec === 'VP9';
  return [
    '-c:v',
    vp9 ? 'libvpx-vp9' : 'libvpx',
    '-deadline',
    deadline,
    '-cpu-used',
    String(speed),
    '-lag-in-frames',
    String(lag),
    '-auto-alt-ref',
    '0',
    ...constantRate(encoding),
    '-minrate',
    String(encoding.bitrate),
    '-g',
    LONG_GOP,
    '-threads',
    String(encoderThreads(encoding)),
    ...(vp9 ? ['-row-mt', '1'] : []),
    ...spread(allowed),
  ];
}

/** Options of libaom for AV1, in realtime mode at every speed. */
export function libaom(encoding: VideoEncoding, { allowed }: ExtraOptions): string[] {
  return [
    '-c:v',
    'libaom-av1',
    '-usage',
    'realtime',
    '-cpu-used',
    String(LIBAOM_SPEED[encoding.preset ?? 'faster']),
    '-lag-in-frames',
    '0',
    ...constantRate(encoding),
    '-minrate',
    String(encoding.bitrate),
    '-g',
    LONG_GOP,
    '-threads',
    String(encoderThreads(encoding)),
    '-row-mt',
    '1',
    ...spread(allowed),
  ];
}

/**
 * Options of SVT-AV1: constant bitrate (rc=2) without reordering (pred-struct=1). Its older releases cannot force key
 * frames, so the GOP is set in frames as well.
 */
export function svtav1(encoding: VideoEncoding, { allowed }: ExtraOptions): string[] {
  const { preset = 'faster', bitrate, keyFrames, expectedFramerate } = encoding;
  const gop = Math.max(1, Math.round((keyFrames === 'source' ? 1 : keyFrames) * expectedFramerate));
  const params: [string, string | number][] = [
    ['rc', 2],
    ['pred-struct', 1],
    ['lp', encoderThreads(encoding)],
    ['fps-num', Math.round(expectedFramerate * 1000)],
    ['fps-denom', 1000],
  ];
  return [
    '-c:v',
    'libsvtav1',
    '-preset',
    String(SVTAV1_PRESET[preset]),
    '-b:v',
    String(bitrate),
    '-g',
    String(gop),
    '-svtav1-params',
    listed([...params, ...allowed]),
  ];
}

import type { VideoTrack } from '../../core/track.ts';
import type { Device } from '../hardware.ts';
import type { VideoEncoding } from '../encoding.ts';
import type { ExtraOptions } from './extra-options.ts';
import { constantRate, countedBySource, LONG_GOP, spread } from './rate.ts';

const NVENC_PRESET = { slower: 'p7', slow: 'p6', medium: 'p5', fast: 'p3', faster: 'p2' } as const;
const QSV_PRESET = { slower: 'slower', slow: 'slow', medium: 'medium', fast: 'fast', faster: 'faster' } as const;
/** Levels of VAAPI: 1 is the best and 7 the fastest. */
const VAAPI_LEVEL = { slower: 1, slow: 2, medium: 4, fast: 6, faster: 7 } as const;

/** Options of NVENC, Quick Sync or VAAPI. @param encoder ffmpeg's name */
export function hardwareVideo(
  encoding: VideoEncoding,
  { allowed }: ExtraOptions,
  from: VideoTrack,
  encoder: string,
  device: Device,
): string[] {
  const { preset, profile, bFrames, codec } = encoding;
  return [
    '-c:v',
    encoder,
    ...device.encoderOptions,
    ...SPEED[device.module](preset ?? 'faster'),
    ...(codec === 'H264' && profile !== undefined ? ['-profile:v', PROFILES[device.module][profile]] : []),
    '-bf',
    String(bFrames),
    ...constantRate(countedBySource(encoding, from)),
    '-g',
    LONG_GOP,
    ...DELAY[device.module](encoding),
    ...spread(allowed),
  ];
}

type Preset = NonNullable<VideoEncoding['preset']>;
type Profile = NonNullable<VideoEncoding['profile']>;

const SPEED: Record<Device['module'], (preset: Preset) => string[]> = {
  nv: (preset) => ['-preset', NVENC_PRESET[preset], '-tune', 'll', '-rc', 'cbr'],
  qsv: (preset) => ['-preset', QSV_PRESET[preset]],
  vaapi: (preset) => ['-compression_level', String(VAAPI_LEVEL[preset]), '-rc_mode', 'CBR'],
};

const PROFILES: Record<Device['module'], Record<Profile, string>> = {
  nv: { baseline: 'baseline', main: 'main', high: 'high' },
  qsv: { baseline: 'baseline', main: 'main', high: 'high' },
  vaapi: { baseline: 'constrained_baseline', main: 'main', high: 'high' },
};

/** Options that keep frames from queuing in the device, and make forced key frames decodable on their own. */
const DELAY: Record<Device['module'], (encoding: VideoEncoding) => string[]> = {
  nv: ({ lookahead }) => [
    '-delay',
    '0',
    '-forced-idr',
    '1',
    ...(lookahead > 0 ? ['-rc-lookahead', String(lookahead), '-no-scenecut', '1'] : []),
  ],
  qsv: ({ lookahead }) => [
    '-async_depth',
    '1',
    '-forced_idr',
    '1',
    ...(lookahead > 0 ? ['-look_ahead', '1', '-look_ahead_depth', String(lookahead)] : []),
  ],
  vaapi: () => ['-async_depth', '1'],
};

import type { AlertRulesConfig } from '../config/model.ts';
import type { AlertMessage } from '../core/registry.ts';

export type IngressRules = NonNullable<AlertRulesConfig['ingress']>;

export interface IngressSample {
  /** Bits per second of all its tracks, by the clock of this machine. */
  readonly bitrate: number;
  readonly videos: readonly {
    readonly width: number;
    readonly height: number;
    /** Frames per second, by the clock of this machine. */
    readonly framerate: number;
    /** Longest recent time between two key frames, in seconds. */
    readonly keyFrameInterval: number;
    readonly hasBframes: boolean;
  }[];
  readonly audios: readonly { readonly samplerate: number }[];
  /** By how much audio is late against video, in milliseconds; undefined while that is not known. */
  readonly avOffset: number | undefined;
}

/** Limit of the key frame interval in seconds (docs/compatibility.md#alerts). */
const LONG_KEY_FRAME_INTERVAL = 4;

/** Violations of the rules by an input stream, each rule once. */
export function brokenRules(
  rules: IngressRules,
  { bitrate, videos, audios, avOffset = 0 }: IngressSample,
): AlertMessage[] {
  const { longKeyFrameInterval, hasBFrames, maxAVOffset = Infinity } = rules;
  const longest = Math.max(0, ...videos.map(({ keyFrameInterval }) => keyFrameInterval));
  return [
    ...outside([bitrate], rules.minBitrate, rules.maxBitrate, {
      code: 'INGRESS_BITRATE',
      what: 'current bitrate',
      unit: ' bps',
    }),
    ...outside(
      videos.map(({ framerate }) => framerate),
      rules.minFramerate,
      rules.maxFramerate,
      { code: 'INGRESS_FRAMERATE', what: 'current framerate', unit: ' fps', isRough: true },
    ),
    ...outside(
      videos.map(({ width }) => width),
      rules.minWidth,
      rules.maxWidth,
      { code: 'INGRESS_WIDTH', what: 'width', isSize: true },
    ),
    ...outside(
      videos.map(({ height }) => height),
      rules.minHeight,
      rules.maxHeight,
      { code: 'INGRESS_HEIGHT', what: 'height', isSize: true },
    ),
    ...outside(
      audios.map(({ samplerate }) => samplerate),
      rules.minSamplerate,
      rules.maxSamplerate,
      { code: 'INGRESS_SAMPLERATE', what: 'samplerate', unit: ' Hz' },
    ),
    ...(Math.abs(avOffset) > maxAVOffset
      ? [
          {
            code: 'INGRESS_AV_OFFSET',
            description: `The ingress stream's audio is ${Math.abs(avOffset).toFixed(0)} ms ${avOffset > 0 ? 'late' : 'early'} against its video, more than the configured ${maxAVOffset} ms`,
          },
        ]
      : []),
    ...(longKeyFrameInterval && longest > LONG_KEY_FRAME_INTERVAL
      ? [
          {
            code: 'INGRESS_LONG_KEY_FRAME_INTERVAL',
            description: `The ingress stream's key frame interval (${longest.toFixed(1)} seconds) is too long. It should be ${LONG_KEY_FRAME_INTERVAL} seconds or less`,
          },
        ]
      : []),
    ...(hasBFrames && videos.some((video) => video.hasBframes)
      ? [{ code: 'INGRESS_HAS_BFRAME', description: 'There are B-Frames in the ingress stream' }]
      : []),
  ];
}

interface Wording {
  /** Code without the direction in which a value leaves its bounds. */
  readonly code: string;
  readonly what: string;
  readonly unit?: string;
  /** Whether messages say small and large instead of low and high. */
  readonly isSize?: true;
  /** Whether the value is measured: up to half a unit beyond the bound is allowed. */
  readonly isRough?: true;
}

/** One message at most for each bound: about the value that is furthest from it. */
function outside(
  values: readonly number[],
  min: number | undefined,
  max: number | undefined,
  { code, what, unit = '', isSize, isRough }: Wording,
): AlertMessage[] {
  if (values.length === 0) return [];
  const tolerance = isRough === true ? 0.5 : 0;
  const [lowest, highest] = [Math.min(...values), Math.max(...values)];
  const message = (value: number, bound: number, suffix: string, than: string): AlertMessage => ({
    code: `${code}_${suffix}`,
    description: `The ingress stream's ${what} (${Number(value.toFixed(2))}${unit}) is ${than} than the configured ${what.replace('current ', '')} (${bound}${unit})`,
  });
  return [
    ...(min !== undefined && lowest < min - tolerance
      ? [message(lowest, min, isSize ? 'SMALL' : 'LOW', isSize ? 'smaller' : 'lower')]
      : []),
    ...(max !== undefined && highest > max + tolerance
      ? [message(highest, max, isSize ? 'LARGE' : 'HIGH', isSize ? 'larger' : 'higher')]
      : []),
  ];
}

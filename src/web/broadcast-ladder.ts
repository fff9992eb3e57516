import Type, { type Static } from 'typebox';
import type { EnhancedBroadcastingConfig } from '../config/model.ts';

/*
 * The names and values are those of the "Amazon IVS Multitrack Video Integration API Reference" (GetClientConfiguration), whose calls
 * OBS Studio makes.
 */

const Numbers = Type.Object({ numerator: Type.Integer({ minimum: 1 }), denominator: Type.Integer({ minimum: 1 }) });
const size = () => Type.Optional(Type.Integer({ minimum: 1, maximum: 16_384 }));
const limit = () => Type.Optional(Type.Union([Type.Number({ minimum: 0 }), Type.Null()]));

/** Description of an encoder: the fields that decide. All may be absent. */
export const EncoderRequest = Type.Object({
  /** Stream key. */
  authentication: Type.Optional(Type.String({ maxLength: 2048 })),
  schema_version: Type.Optional(Type.String({ maxLength: 64 })),
  service: Type.Optional(Type.String({ maxLength: 64 })),
  client: Type.Optional(Type.Object({ supported_codecs: Type.Optional(Type.Array(Type.String(), { maxItems: 64 })) })),
  capabilities: Type.Optional(
    Type.Object({
      gpu: Type.Optional(
        Type.Union([
          Type.Null(),
          Type.Array(Type.Object({ vendor_id: Type.Optional(Type.Number()) }), { maxItems: 64 }),
        ]),
      ),
    }),
  ),
  preferences: Type.Optional(
    Type.Object({
      width: size(),
      height: size(),
      canvas_width: size(),
      canvas_height: size(),
      framerate: Type.Optional(Numbers),
      /** Kilobits per second, of all tracks together; 0 or null: any. */
      maximum_aggregate_bitrate: limit(),
      maximum_streaming_bandwidth: limit(),
      /** 0 or null: any number. */
      maximum_video_tracks: limit(),
      composition_gpu_index: limit(),
    }),
  ),
});
export type EncoderRequest = Static<typeof EncoderRequest>;

/** Settings of the encoder of one video. */
export interface VideoSettings {
  readonly type: string;
  readonly width: number;
  readonly height: number;
  readonly framerate: Static<typeof Numbers>;
  readonly gpu_scale_type: string;
  /** Kilobits per second by which the encoder may go down, the last one being its bitrate. */
  readonly bitrate_interpolation_points: readonly number[];
  readonly settings: Readonly<Record<string, string | number | boolean>>;
}

type Rendition = EnhancedBroadcastingConfig['video'][number];
type Codec = Rendition['codec'];

/** PCI id of NVIDIA. */
const NVIDIA = 0x10de;
/** The encoders that the reference names, by codec; those of other GPUs have to be configured. */
const NVENC: Partial<Record<Codec, string>> = { h264: 'jim_nvenc', h265: 'jim_hevc_nvenc' };
/** Every OBS Studio has it. */
const SOFTWARE = 'obs_x264';
const CANVAS = { width: 1920, height: 1080, framerate: { numerator: 30, denominator: 1 } };
const MIN_SIZE = 64;

/**
 * Chooses the renditions of a ladder that an encoder can make: no larger than its canvas, as many and as fast as it allows, in codecs
 * that it has. The first is track 0.
 * @param single at most one: the server takes no several tracks
 * @returns none where none fits
 */
export function videoSettings(
  config: EnhancedBroadcastingConfig,
  request: EncoderRequest,
  single: boolean,
): VideoSettings[] {
  const { preferences = {} } = request;
  const width = preferences.canvas_width ?? preferences.width ?? CANVAS.width;
  const height = preferences.canvas_height ?? preferences.height ?? CANVAS.height;
  const framerate = preferences.framerate ?? CANVAS.framerate;
  const tracks = single ? 1 : preferences.maximum_video_tracks || Infinity;
  let left = preferences.maximum_aggregate_bitrate || preferences.maximum_streaming_bandwidth || Infinity;
  left -= config.audioBitrate / 1000;
  const chosen: VideoSettings[] = [];
  for (const rendition of config.video) {
    const bitrate = Math.round(rendition.bitrate / 1000);
    if (chosen.length >= tracks || rendition.height > height || bitrate > left) continue;
    left -= bitrate;
    chosen.push({
      ...encoderOf(rendition, request),
      width: even((rendition.height * width) / height),
      height: even(rendition.height),
      framerate: dividedRate(framerate, rendition.framerate),
      gpu_scale_type: 'OBS_SCALE_BICUBIC',
      bitrate_interpolation_points: [Math.ceil(bitrate / 2), Math.ceil((bitrate * 3) / 4), bitrate],
      settings: settingsOf(bitrate, config.keyFrameInterval),
    });
  }
  return chosen;
}

/** H.264 wherever the configured codec is not among those of the encoder, or no encoder is known to make it. */
function encoderOf({ codec, encoder }: Rendition, { client, capabilities }: EncoderRequest): { readonly type: string } {
  const codecs = client?.supported_codecs?.map((name) => (name === 'hevc' ? 'h265' : name)) ?? ['h264'];
  const isNvidia = capabilities?.gpu?.some(({ vendor_id }) => vendor_id === NVIDIA) === true;
  if (codecs.includes(codec)) {
    if (encoder !== '') return { type: encoder };
    const named = isNvidia ? NVENC[codec] : undefined;
    if (named !== undefined) return { type: named };
  }
  return { type: (isNvidia ? NVENC.h264 : undefined) ?? SOFTWARE };
}

/** No B-frames: WebRTC shows them in the wrong order. */
function settingsOf(bitrate: number, keyFrameInterval: number): VideoSettings['settings'] {
  return { rate_control: 'CBR', bitrate, keyint_sec: keyFrameInterval, profile: 'main', preset2: 'p4', bf: 0 };
}

/** The canvas's frame rate by the smallest whole number that makes it at most `most` frames per second; 0: as it is. */
function dividedRate({ numerator, denominator }: Static<typeof Numbers>, most: number): Static<typeof Numbers> {
  const divisor = most === 0 ? 1 : Math.max(1, Math.ceil(numerator / denominator / most - 0.01));
  return { numerator, denominator: denominator * divisor };
}

function even(pixels: number): number {
  return Math.max(MIN_SIZE, Math.round(pixels / 2) * 2);
}

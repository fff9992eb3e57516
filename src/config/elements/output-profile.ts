import Type, { type Static } from 'typebox';
import {
  choice,
  decimal,
  flag,
  ignored,
  integer,
  optional,
  parsed,
  repeated,
  section,
  text,
  type Fail,
} from '../blocks.ts';
import { deepFreeze, explicit, resolve } from '../resolve.ts';
import { unique } from '../rules.ts';
import { Subtitles } from './subtitles.ts';
import { parseBitrate } from '../values.ts';
import { Playlist, TrackSet } from './playlist.ts';
import { objectName } from './shared.ts';

const bitrate = () =>
  Type.Optional(
    Type.Unsafe<number>({ type: 'integer', is: 'a bitrate (above 0, K or M may follow)', convert: parseBitrate }),
  );

const equal = () => Type.Optional(choice(['eq']));
const compared = () => Type.Optional(choice(['eq', 'lte', 'gte']));

interface Encode {
  name: string;
  bypass: boolean;
  codec?: string;
  bitrate?: number;
}

function needsCodec(encode: Encode, fail: Fail): void {
  if (encode.bypass) return;
  if (encode.codec === undefined) fail(['codec'], 'is missing (Bypass is not set)');
  if (encode.bitrate === undefined) fail(['bitrate'], 'is missing (Bypass is not set)');
}

interface VideoEncode extends Encode {
  keyFrameIntervalType: 'frame' | 'time';
  keyFrameInterval: number;
}

const MAX_KEY_FRAME_INTERVAL = { frame: 600, time: 10_000 };

function videoRule(video: VideoEncode, fail: Fail): void {
  needsCodec(video, fail);
  const { keyFrameInterval: interval, keyFrameIntervalType: unit } = video;
  const max = MAX_KEY_FRAME_INTERVAL[unit];
  if (interval > max) fail(['keyFrameInterval'], `${interval} is not an integer (0..${max})`);
}

const MAX_SIDE = 16_384;
const side = () => integer(0, { max: MAX_SIDE });

const Video = Type.Object(
  {
    name: text({ default: '' }),
    bypass: flag(false),
    codec: Type.Optional(text()),
    bitrate: bitrate(),
    /** 0: that of the source, or the one that keeps its aspect ratio. */
    width: side(),
    height: side(),
    /** 0: that of the source. */
    framerate: decimal(0, { max: 1000 }),
    /** Frames left out after each one that is kept; -1: `framerate` decides. */
    skipFrames: integer(-1, { min: -1, max: 120 }),
    preset: Type.Optional(choice(['slower', 'slow', 'medium', 'fast', 'faster'])),
    /** -1: automatic. */
    threadCount: integer(-1, { min: -1, max: 1024 }),
    keyFrameIntervalType: choice(['frame', 'time'], 'frame'),
    /** Frames or milliseconds; 0: one second's frames. */
    keyFrameInterval: integer(0),
    bFrames: Type.Optional(integer(undefined, { max: 16 })),
    profile: Type.Optional(choice(['baseline', 'main', 'high'])),
    lookahead: integer(-1, { min: -1, max: 250 }),
    modules: Type.Optional(text()),
    extraOptions: Type.Optional(text()),
    bypassIfMatch: optional({
      codec: equal(),
      width: compared(),
      height: compared(),
      framerate: compared(),
      sar: equal(),
      bitrate: Type.Optional(parsed('allowed: a bitrate cannot be matched', () => undefined as never)),
    }),
  },
  { rule: videoRule },
);

const Audio = Type.Object(
  {
    name: text({ default: '' }),
    bypass: flag(false),
    codec: Type.Optional(text()),
    bitrate: bitrate(),
    /** 0: that of the source. */
    samplerate: integer(0, { max: 384_000 }),
    channel: integer(0, { max: 8 }),
    modules: Type.Optional(text()),
    bypassIfMatch: optional({ codec: equal(), samplerate: compared(), channel: compared() }),
  },
  { rule: needsCodec },
);

const Image = Type.Object({
  name: text({ default: '' }),
  codec: choice(['jpeg', 'png', 'webp', 'avif']),
  width: side(),
  height: side(),
  framerate: decimal(0, { max: 1000 }),
  skipFrames: integer(-1, { min: -1, max: 120 }),
});

interface Encodes {
  videos: Encode[];
  audios: Encode[];
  images: Encode[];
}

/** Names encodes without a name after their kind and position. */
function nameEncodes({ videos, audios, images }: Encodes): void {
  for (const [kind, encodes] of Object.entries({ video: videos, audio: audios, image: images })) {
    encodes.forEach((encode, index) => (encode.name ||= `${kind}_${index}`));
  }
}

const Encodes = Type.Object(
  {
    videos: repeated(Video, 'Video', { shown: true }),
    audios: repeated(Audio, 'Audio', { shown: true }),
    images: repeated(Image, 'Image', { shown: true }),
    data: repeated(Type.Object({ name: text() }), 'Data', { shown: true }),
  },
  { complete: nameEncodes },
);

const MAX_STREAM_NAME = 255;

/** Rejects characters that cannot stand in a URL of the stream. */
function parseStreamName(given: string): string | undefined {
  return /^(?!\.{1,2}$)[^/\\:?#%\p{C}]+$/u.test(given) && given.length <= MAX_STREAM_NAME ? given : undefined;
}

export const OutputProfile = Type.Object(
  {
    name: objectName(),
    /** May hold `${OriginStreamName}`. */
    outputStreamName: parsed(
      `a name of a stream (without / \\ : ? # %, of at most ${MAX_STREAM_NAME} characters)`,
      parseStreamName,
    ),
    encodes: Encodes,
    playlists: repeated(Playlist, 'Playlist'),
    tracksets: repeated(TrackSet, 'TrackSet'),
  },
  {
    rule: (profile: { playlists: { fileName: string }[] }, fail: Fail) =>
      unique(profile.playlists, 'fileName', ['playlists'], fail),
  },
);

const Stt = optional({
  enable: flag(true),
  rendition: repeated(
    Type.Object({
      engine: text(),
      outputSubtitleLabel: text(),
      model: Type.Optional(text()),
      inputAudioIndex: integer(0),
      sourceLanguage: text({ default: 'auto' }),
      translation: flag(false),
      stepMs: integer(2000),
      lengthMs: integer(10_000),
      keepMs: integer(1500),
      modules: Type.Optional(text()),
    }),
  ),
});

const AUDIO_ENCODE = { bitrate: 128_000, samplerate: 48_000, channel: 2, bypassIfMatch: { codec: 'eq' } };
/**
 * Profile of an application that names none: video as it comes; audio as it comes and in the codec that the source lacks,
 * because WebRTC takes Opus and HLS players take AAC (docs/compatibility.md#rest-answers).
 */
export const DEFAULT_PROFILE = deepFreeze({
  name: 'default',
  outputStreamName: '${OriginStreamName}',
  encodes: {
    videos: [{ name: 'bypass_video', bypass: true }],
    audios: [
      { name: 'opus', codec: 'opus', ...AUDIO_ENCODE },
      { name: 'aac', codec: 'aac', ...AUDIO_ENCODE },
    ],
    images: [],
    data: [],
  },
});

export const OutputProfiles = section(
  {
    hwaccels: ignored(),
    /**
     * Encoders run at first until their configurations are known, so that every track is there. Later they run only while an
     * output stream of their input has viewers, and some seconds longer.
     */
    onDemand: flag(false),
    decodes: section({ threadCount: integer(2, { min: 1, max: 1024 }), onlyKeyframes: flag(false) }),
    mediaOptions: optional({
      overlays: optional({ enable: flag(false), path: text({ default: '' }) }),
      stt: Stt,
      /** Where OvenMediaEngine had it until 0.20. */
      subtitles: Subtitles,
    }),
    outputProfile: repeated(OutputProfile),
  },
  {
    rule: (profiles: Profiles, fail: Fail) => unique(profiles.outputProfile, 'name', ['outputProfile'], fail),
    complete: (profiles: Profiles) => {
      // a list that was given and is empty means no profiles
      if (Object.hasOwn(explicit(profiles) as object, 'outputProfile')) return;
      profiles.outputProfile.push(resolve(OutputProfile, DEFAULT_PROFILE));
    },
  },
);

interface Profiles {
  outputProfile: Static<typeof OutputProfile>[];
}

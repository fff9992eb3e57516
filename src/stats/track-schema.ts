import Type from 'typebox';

const text = () => Type.Optional(Type.String());
const integer = () => Type.Optional(Type.Integer());
const number = () => Type.Optional(Type.Number());

const Timebase = Type.Optional(Type.Object({ den: Type.Integer(), num: Type.Integer() }));

const Video = Type.Object({
  bitrate: Type.Integer(),
  bitrateAvg: integer(),
  bitrateConf: Type.Integer(),
  bitrateLatest: integer(),
  bypass: Type.Boolean(),
  characteristics: text(),
  codec: Type.String(),
  codecModule: text(),
  codecStatus: text(),
  configChangeCount: integer(),
  deltaFramesSinceLastKeyFrame: integer(),
  framerate: Type.Number(),
  framerateAvg: number(),
  framerateConf: Type.Number(),
  framerateLatest: number(),
  hasBframes: Type.Optional(Type.Boolean()),
  height: Type.Integer(),
  keyFrames: Type.Optional(
    Type.String({ description: '`open` where key frames are no IDR frames, `none` until one has come' }),
  ),
  keyFrameInterval: Type.Number({ description: 'frames from key frame to key frame' }),
  keyFrameIntervalAvg: number(),
  keyFrameIntervalConf: Type.Number(),
  keyFrameIntervalLatest: number(),
  language: text(),
  lastConfigChanged: text(),
  maxFramerate: Type.Number(),
  maxHeight: Type.Integer(),
  maxWidth: Type.Integer(),
  timebase: Timebase,
  width: Type.Integer(),
});

const Audio = Type.Object({
  bitrate: Type.Integer(),
  bitrateAvg: integer(),
  bitrateConf: Type.Integer(),
  bitrateLatest: integer(),
  bypass: Type.Boolean(),
  channel: Type.Integer(),
  characteristics: text(),
  codec: Type.String(),
  codecModule: text(),
  codecStatus: text(),
  configChangeCount: integer(),
  language: text(),
  lastConfigChanged: text(),
  samplerate: Type.Integer(),
  timebase: Timebase,
});

const Subtitle = Type.Object({
  autoSelect: Type.Boolean(),
  characteristics: text(),
  codec: Type.String(),
  codecStatus: text(),
  default: Type.Boolean(),
  forced: Type.Boolean(),
  language: text(),
  timebase: Timebase,
});

/** A track for the management API, webhooks and players: one of `audio`, `data`, `subtitle` and `video`, as `type` says. */
export const TrackInfo = Type.Object({
  audio: Type.Optional(Audio),
  data: Type.Optional(Type.Object({ codec: Type.String() })),
  id: Type.Integer(),
  name: Type.String(),
  subtitle: Type.Optional(Subtitle),
  type: Type.String(),
  video: Type.Optional(Video),
});

export type TrackInfo = Type.Static<typeof TrackInfo>;

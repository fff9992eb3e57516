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

/** One of `audio`, `data` and `video` is there, as `type` says. */
const Track = Type.Object({
  audio: Type.Optional(Audio),
  data: Type.Optional(Type.Object({ codec: Type.String() })),
  id: Type.Integer(),
  name: Type.String(),
  type: Type.String(),
  video: Type.Optional(Video),
});

const Connection = Type.Object({
  localAddress: text(),
  localPort: integer(),
  protocol: Type.String(),
  remoteAddress: text(),
  remotePort: integer(),
  transport: Type.String(),
});

const Playlist = Type.Object({
  fileName: text(),
  name: text(),
  options: Type.Object({
    enableTsPackaging: Type.Boolean(),
    hlsChunklistPathDepth: Type.Integer(),
    webrtcAudioOnlyFallback: Type.Boolean(),
    webrtcAutoAbr: Type.Boolean(),
  }),
  renditions: Type.Array(Type.Object({ audioVariantName: text(), name: text(), videoVariantName: text() })),
});

const Input = Type.Object({
  connection: Type.Optional(Connection),
  createdTime: Type.String(),
  sourceType: Type.String(),
  sourceUrl: text(),
  tracks: Type.Array(Track),
});

const Output = Type.Object({ name: Type.String(), playlists: Type.Array(Playlist), tracks: Type.Array(Track) });

/** Stream information of the management API (spec, "Stream information"). */
export const StreamInfo = Type.Object({ input: Input, name: Type.String(), outputs: Type.Array(Output) });

export type StreamInfo = Type.Static<typeof StreamInfo>;
export type OutputInfo = Type.Static<typeof Output>;
export type TrackInfo = Type.Static<typeof Track>;
export type ConnectionInfo = Type.Static<typeof Connection>;

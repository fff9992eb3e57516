import Type from 'typebox';
import { TrackInfo } from './track-schema.ts';

const text = () => Type.Optional(Type.String());
const integer = () => Type.Optional(Type.Integer());

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
  tracks: Type.Array(TrackInfo),
});

const Output = Type.Object({ name: Type.String(), playlists: Type.Array(Playlist), tracks: Type.Array(TrackInfo) });

/** Stream information of the management API (docs/compatibility.md#stream-objects). */
export const StreamInfo = Type.Object({ input: Input, name: Type.String(), outputs: Type.Array(Output) });

export type StreamInfo = Type.Static<typeof StreamInfo>;
export type InputInfo = Type.Static<typeof Input>;
export type OutputInfo = Type.Static<typeof Output>;
export type ConnectionInfo = Type.Static<typeof Connection>;

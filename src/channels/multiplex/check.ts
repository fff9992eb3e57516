import Type, { type Static } from 'typebox';
import { atLeastOne, contained, decimal, flag, integer, parsed, text, type Fail } from '../../config/blocks.ts';
import { MultiplexPlaylist } from '../../config/elements/playlist.ts';
import { readConfig } from '../../config/read.ts';
import { unique } from '../../config/rules.ts';
import { streamName, type Checked } from '../sources/definition-form.ts';
import { readStreamUrl } from '../sources/stream-url.ts';
import type { MultiplexSpec } from './spec.ts';

export interface NamedMultiplex {
  /** Name of the stream. */
  readonly name: string;
  readonly spec: MultiplexSpec;
}

const TrackForm = Type.Object({
  sourceTrackName: text(),
  newTrackName: text(),
  bitrateConf: integer(0),
  framerateConf: decimal(0),
  audioIndex: integer(-1, { min: -1 }),
  publicName: Type.Optional(text()),
  language: Type.Optional(text()),
  characteristics: Type.Optional(text()),
});

const SourceForm = Type.Object({
  name: text(),
  url: parsed('stream://vhost/app/stream', (given) => (readStreamUrl(given) === undefined ? undefined : given)),
  trackMap: atLeastOne(contained(TrackForm, 'Track')),
});

type TrackMap = readonly { readonly newTrackName: string; readonly audioIndex: number }[];

interface Form {
  readonly sourceStreams: readonly { readonly name: string; readonly trackMap: TrackMap }[];
  readonly playlists: readonly Static<typeof MultiplexPlaylist>[];
}

/** Form of a channel in its `.mux` file and in the management API. */
export const MultiplexForm = Type.Object(
  {
    outputStream: Type.Object({ name: streamName(), bypassTranscoder: flag(true) }),
    sourceStreams: atLeastOne(contained(SourceForm, 'SourceStream')),
    playlists: contained(MultiplexPlaylist, 'Playlist'),
  },
  {
    rule: ({ sourceStreams, playlists }: Form, fail: Fail) => {
      unique(sourceStreams, 'name', ['sourceStreams'], fail);
      for (const [index, { trackMap }] of sourceStreams.entries())
        checkTracks(trackMap, ['sourceStreams', index, 'trackMap'], fail);
      unique(playlists, 'fileName', ['playlists'], fail);
      const tracks = new Set(sourceStreams.flatMap(({ trackMap }) => trackMap.map((track) => track.newTrackName)));
      for (const [index, playlist] of playlists.entries())
        checkRenditions(playlist, ['playlists', index], tracks, fail);
    },
  },
);

/** Allows one name for several audio tracks of a source that differ in their index. */
function checkTracks(tracks: TrackMap, path: readonly (string | number)[], fail: Fail): void {
  const seen = new Set<string>();
  for (const [index, { newTrackName, audioIndex }] of tracks.entries()) {
    const key = `${audioIndex} ${newTrackName}`;
    if (seen.has(key)) fail([...path, index, 'newTrackName'], `"${newTrackName}" is given twice`);
    seen.add(key);
  }
}

function checkRenditions(
  { renditions, rendition_templates: templates }: Static<typeof MultiplexPlaylist>,
  path: readonly (string | number)[],
  tracks: ReadonlySet<string>,
  fail: Fail,
): void {
  if (templates.length > 0) fail([...path, 'rendition_templates'], 'is not possible in a multiplex channel');
  if (renditions.length === 0) fail([...path, 'renditions'], 'is missing');
  for (const [index, { video, audio }] of renditions.entries()) {
    const at = [...path, 'renditions', index];
    if (video === undefined && audio === undefined) fail(at, 'names neither video nor audio');
    for (const [key, name] of Object.entries({ video, audio }))
      if (name !== undefined && !tracks.has(name)) fail([...at, key], `"${name}" is no newTrackName of the channel`);
  }
}

/** Checks the definition of a channel and fills in defaults. @param json in the management API's form */
export function checkMultiplex(json: unknown): Checked<NamedMultiplex> {
  const reading = readConfig(MultiplexForm, json);
  if (!reading.ok) return reading;
  const { outputStream, sourceStreams, playlists } = reading.config;
  const { name, bypassTranscoder } = outputStream;
  const spec = { bypassTranscoder, sourceStreams, playlists: playlists.map(toPlaylist) };
  return { ok: true, value: { name, spec }, warnings: reading.warnings };
}

function toPlaylist({ name, fileName, options, renditions }: Static<typeof MultiplexPlaylist>) {
  const { webRtcAutoAbr: webrtcAutoAbr, webrtcAudioOnlyFallback, hlsChunklistPathDepth, enableTsPackaging } = options;
  return {
    name: name ?? fileName,
    fileName,
    options: { webrtcAutoAbr, webrtcAudioOnlyFallback, hlsChunklistPathDepth, enableTsPackaging },
    renditions,
  };
}

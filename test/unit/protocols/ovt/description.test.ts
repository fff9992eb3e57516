import test from 'ava';
import type { Track, VideoTrack } from '../../../../src/core/track.ts';
import { descriptionOf, toDescription, type WireTrack } from '../../../../src/protocols/ovt/description.ts';
import { channelsOf, layoutOf } from '../../../../src/protocols/ovt/enumerations.ts';
import { OvtError } from '../../../../src/protocols/ovt/error.ts';
import { readMessage, toResponse } from '../../../../src/protocols/ovt/message.ts';
import { playlistOf, trackOf, wirePlaylist, wireTrack } from '../../../../src/protocols/ovt/tracks.ts';
import { parseOvtUrl } from '../../../../src/protocols/ovt/url.ts';
import { audioTrack, videoTrack } from '../../../support/media/packets.ts';
import { DESCRIPTION } from './description.ts';

const VIDEO = videoTrack({ bitrate: 2_000_000 });
const AUDIO = audioTrack({ bitrate: 128_000, language: 'en', characteristics: 'public.accessibility' });
const PLAYLIST = {
  name: 'both',
  fileName: 'master',
  options: { webrtcAutoAbr: true, webrtcAudioOnlyFallback: false, hlsChunklistPathDepth: -1, enableTsPackaging: true },
  renditions: [{ name: 'r', videoVariantName: 'video', audioVariantName: 'audio', audioIndex: 0 }],
};

test('a stream becomes a description', (t) => {
  const { appName, streamName, originStreamUUID } = DESCRIPTION.stream;
  const made = descriptionOf({
    appName,
    streamName,
    originStreamUUID,
    playlists: [wirePlaylist(PLAYLIST)],
    tracks: [VIDEO, AUDIO].map(wireTrack),
  });
  t.deepEqual(JSON.parse(JSON.stringify(made)), DESCRIPTION);
});

test('a description becomes tracks and playlists', (t) => {
  const { stream } = toDescription(DESCRIPTION);
  t.deepEqual(stream.tracks.map(trackOf), [VIDEO, AUDIO]);
  t.deepEqual(stream.playlists?.map(playlistOf), [PLAYLIST]);
});

test('subtitles of a node are themselves again, and those of other servers are left out', (t) => {
  const track: Track = {
    ...{ id: 768, name: 'Subtitle', type: 'subtitle', codec: 'WebVTT', timebase: { num: 1, den: 1000 }, bypass: true },
    ...{ publicName: 'Korean', language: 'ko', autoSelect: true, isDefault: false, forced: true },
  };
  const wire = wireTrack(track);
  t.like(wire, {
    ...{ codecId: 13, mediaType: 3, publicName: 'Korean', language: 'ko' },
    subtitle: { autoSelect: true, isDefault: false, forced: true },
  });
  t.deepEqual(trackOf(wire), track);
  const { subtitle: _subtitle, ...foreign } = wire;
  t.is(trackOf(foreign), undefined);
  t.is(trackOf({ ...wire, mediaType: 1 }), undefined);
});

test('tracks of every codec are themselves again', (t) => {
  const picture = {
    width: 320,
    height: 180,
    bitrate: 0,
    framerate: 1,
    keyFrameInterval: 0,
    timebase: { num: 1, den: 90_000 },
    bypass: true,
  };
  const tracks: Track[] = [
    ...(['H264', 'H265', 'AV1', 'VP9'] as const).map((codec, id) => videoTrack({ codec, id, config: Buffer.of(id) })),
    { ...picture, type: 'video', id: 4, name: 'v', codec: 'VP8' },
    ...(['AAC', 'OPUS', 'MP3', 'MP2'] as const).map((codec, id) => audioTrack({ codec, id: 10 + id })),
    ...(['JPEG', 'PNG', 'WEBP', 'AVIF'] as const).map((codec, id) => ({
      ...picture,
      type: 'image' as const,
      id: 20 + id,
      name: 'i',
      codec,
    })),
    audioTrack({ id: 29, publicName: 'Commentary' }),
    { type: 'data', id: 30, name: 'd', codec: 'ID3v2', timebase: { num: 1, den: 1000 }, bypass: true },
  ];
  const { stream } = toDescription(JSON.parse(JSON.stringify(descriptionOf({ tracks: tracks.map(wireTrack) }))));
  t.deepEqual(stream.tracks.map(trackOf), tracks);
});

test('shape, colour and in-band sets of video are sent to relays, whatever the configuration says', (t) => {
  const colour = { primaries: 9, transfer: 16, matrix: 9, fullRange: false };
  const track: VideoTrack = {
    ...{ id: 1, name: 'v', type: 'video', codec: 'VP9', bypass: true, timebase: { num: 1, den: 90_000 } },
    ...{ width: 720, height: 576, bitrate: 1, framerate: 25, keyFrameInterval: 0 },
    ...{ sar: { num: 64, den: 45 }, colour, inBandSets: true },
  };
  const [wire] = toDescription(JSON.parse(JSON.stringify(descriptionOf({ tracks: [wireTrack(track)] })))).stream.tracks;
  t.deepEqual(wire && trackOf(wire), track);
  const wrong = { ...wireTrack(track), sar: { num: 0, den: 45 } };
  t.throws(() => toDescription(descriptionOf({ tracks: [wrong] })), { instanceOf: OvtError });
});

test('a track of a kind that is not carried is none', (t) => {
  const [track] = toDescription(DESCRIPTION).stream.tracks;
  if (track === undefined) return t.fail();
  for (const [mediaType, codecId] of [
    [3, 13],
    [4, 0],
    [0, 0],
    [0, 6],
    [0, 99],
    [1, 1],
    [0, 7],
    [2, 1],
  ]) {
    t.is(trackOf({ ...track, mediaType: mediaType as number, codecId: codecId as number }), undefined);
  }
});

test('members that are null are absent, as OvenMediaEngine writes what is empty', (t) => {
  const copy = structuredClone(DESCRIPTION) as unknown as {
    stream: Record<string, unknown> & { playlists: Record<string, unknown>[]; tracks: Record<string, unknown>[] };
  };
  const [playlist] = copy.stream.playlists;
  copy.stream.playlists = [{ ...playlist, name: null, options: null, renditions: null }];
  Object.assign(copy.stream.tracks[0] ?? {}, { decoderConfig: null, language: null, videoTrack: null });
  const answer = { id: 1, application: 'describe', code: 200, message: null, contents: copy };
  const { contents, message } = toResponse(readMessage(Buffer.from(JSON.stringify(answer))));
  t.is(message, undefined);
  const { stream } = toDescription(contents);
  t.like(stream.playlists?.map(playlistOf)[0], { fileName: 'master', renditions: [] });
  t.like(trackOf(stream.tracks[0] as WireTrack), { codec: 'H264', width: 0 });
  for (const text of ['null', '[null]', '{"id":null}', '{"id":1,"application":"describe","code":null}'])
    t.throws(() => toResponse(readMessage(Buffer.from(text))), { instanceOf: OvtError }, text);
});

test('a track without a clock is none, and the others are taken', (t) => {
  const { stream } = structuredClone(DESCRIPTION);
  for (const clock of [
    { timebaseNum: 0, timebaseDen: 0 },
    { timebaseNum: 1, timebaseDen: 0 },
    { timebaseNum: 0, timebaseDen: 1000 },
  ]) {
    const tracks = [{ ...(stream.tracks[0] as WireTrack), ...clock }, stream.tracks[1] as WireTrack];
    t.deepEqual(toDescription(descriptionOf({ tracks })).stream.tracks.map(trackOf), [undefined, AUDIO]);
  }
});

test('a description is refused for what is not in it, or not as it has to be', (t) => {
  const refused = (
    change: (copy: { version: unknown; stream: { tracks: Record<string, unknown>[] } }) => void,
  ): string => {
    const copy = structuredClone(DESCRIPTION) as never;
    change(copy);
    return t.throws(() => toDescription(copy), { instanceOf: OvtError }).message;
  };
  t.is(
    refused((copy) => (copy.version = 17)),
    'description version 17 is not 18',
  );
  t.is(t.throws(() => toDescription(undefined), { instanceOf: OvtError }).message, 'description must be object');
  for (const key of [
    'id',
    'codecId',
    'mediaType',
    'timebaseNum',
    'timebaseDen',
    'bitrate',
    'startFrameTime',
    'lastFrameTime',
  ]) {
    for (const value of [-1, 1.5, '1', null, undefined]) {
      refused((copy) => Object.assign(copy.stream.tracks[0] ?? {}, { [key]: value }));
    }
  }
  t.regex(
    refused((copy) => Object.assign(copy.stream.tracks[1] ?? {}, { bitrate: -5 })),
    /^description\/stream\/tracks\/1\/bitrate /,
  );
  t.is(
    refused((copy) => Object.assign(copy.stream.tracks[1] ?? {}, { id: 0 })),
    'two tracks of a description have one id',
  );
  refused((copy) => (copy.stream.tracks = Array.from({ length: 257 }, (_, id) => ({ ...copy.stream.tracks[0], id }))));
});

test('fields that an older OVT origin leaves out have their defaults', (t) => {
  const [track] = DESCRIPTION.stream.tracks;
  const { decoderConfig: _, videoTrack: __, audioTrack: ___, name: ____, ...rest } = track as Record<string, unknown>;
  const { stream } = toDescription({ version: 18, stream: { tracks: [rest] } });
  t.like(stream.tracks.map(trackOf)[0], { name: 'video', width: 0, height: 0, config: undefined });
  t.is(stream.playlists, undefined);
});

test('channel layouts of OVT are read', (t) => {
  t.deepEqual(
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map((channels) => channelsOf(layoutOf(channels))),
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 0],
  );
  t.deepEqual([0x60f, 0x63f, 0x6000_0000, 0x8000_0000].map(channelsOf), [6, 8, 2, 1]);
});

test('OVT URLs are read', (t) => {
  const shown = (href: string) => {
    const url = parseOvtUrl(href);
    return url && `${url.host} ${url.port} ${url.app} ${url.stream} ${url.trackset ?? '-'} ${url.query}`;
  };
  t.is(shown('ovt://origin.com/app/stream'), 'origin.com 9000 app stream - ');
  t.is(shown('ovt://Origin.com:9001/my%20app/str%C3%A9am/hd?token=1'), 'origin.com 9001 my app stréam hd token=1');
  t.is(shown('OVT://[::1]:1/a/b'), '::1 1 a b - ');
  for (const wrong of [
    '',
    'ovt:',
    'ovt://',
    'ovt://host',
    'ovt://host/a',
    'ovt://host/a/',
    'ovt://host//b',
    'ovt://host/a/b/',
    'ovt://host/a/b/c/d',
    'rtmp://host/a/b',
    'ovt://host:99999/a/b',
    'ovt://host/a/%ff',
    'host/a/b',
    `ovt://host/a/${'b'.repeat(5000)}`,
  ])
    t.is(shown(wrong), undefined, wrong);
});

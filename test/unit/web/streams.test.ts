import test from 'ava';
import { Registry } from '../../../src/core/registry.ts';
import { listStreams } from '../../../src/web/streams.ts';
import type { Track } from '../../../src/core/track.ts';
import { addVhost, AUDIO, goLive, VIDEO, type VhostShape } from '../../support/server/live.ts';
import { subtitleTrack } from '../../support/media/packets.ts';
import { audio, video } from '../core/support.ts';

const MAX_LISTED = 200;
const BOTH = ['llhls', 'webrtc'] as const;

test('a live stream shows its media, playlists and viewers', (t) => {
  const registry = new Registry();
  addVhost(registry);
  const output = goLive(registry, 'app', 'news');
  output.addSession({ id: '1', kind: 'webrtc', createdTime: 0, out: output.counters.out, kick() {} });
  const { streams, restricted, more } = listStreams(registry.vhost('default'), BOTH);
  t.false(restricted);
  t.false(more);
  t.deepEqual(streams, [
    {
      app: 'app',
      stream: 'news',
      since: output.createdTime.getTime(),
      viewers: 1,
      video: { codec: 'H264', width: 1280, height: 720, framerate: 30 },
      audio: { codecs: ['AAC'] },
      thumbnail: undefined,
      llhls: ['llhls.m3u8'],
      webrtc: ['webrtc_default'],
    },
  ]);
});

test('a thumbnail is listed where the application has them, an image is made, and access is open to all', (t) => {
  const PICTURE = { ...VIDEO, id: 2, type: 'image', codec: 'WEBP' } as Track;
  const thumbnailOf = (shape: VhostShape, tracks: readonly Track[] = [VIDEO, PICTURE]) => {
    const registry = new Registry();
    addVhost(registry, { publishers: { llhls: {}, thumbnail: {} } as never, ...shape });
    goLive(registry, 'app', 'news', tracks);
    return listStreams(registry.vhost('default'), BOTH).streams[0]?.thumbnail;
  };
  t.is(thumbnailOf({}), 'thumb.webp');
  t.is(thumbnailOf({}, [VIDEO]), undefined);
  t.is(thumbnailOf({ publishers: { llhls: {} as never } }), undefined);
  t.is(thumbnailOf({ signedPolicy: { enables: { publishers: 'thumbnail' } } as never }), undefined);
});

test('a stream says that viewers can go back in it where its application lets them, and LL-HLS is on that port', (t) => {
  const rewinds = (llhls: object, serves: readonly ('llhls' | 'webrtc')[] = BOTH) => {
    const registry = new Registry();
    addVhost(registry, { publishers: { llhls, webrtc: {} } as never });
    goLive(registry, 'app', 'news');
    return listStreams(registry.vhost('default'), serves).streams[0]?.rewinds;
  };
  t.is(rewinds({ dvr: { enable: true } }), true);
  t.is(rewinds({ dvr: { enable: true } }, ['webrtc']), undefined);
  t.is(rewinds({ dvr: { enable: false } }), undefined);
  t.is(rewinds({}), undefined);
});

test('the bitrate is that of the largest video and one audio', (t) => {
  const registry = new Registry();
  addVhost(registry);
  const output = goLive(registry, 'app', 'news');
  for (let frame = 0; frame <= 75; frame++)
    output.write({ ...video(frame / 25, frame % 25 === 0), track: output.tracks[0] as Track });
  t.true((listStreams(registry.vhost('default'), BOTH).streams[0]?.bitrate ?? 0) > 0);
});

test('audio that is encoded on request only has no bitrate: that of the other track counts', (t) => {
  const registry = new Registry();
  addVhost(registry);
  const resting = { ...AUDIO, id: 1, codec: 'OPUS' } as Track;
  const source = { ...AUDIO, id: 3 };
  const output = goLive(registry, 'app', 'radio', [resting, source]);
  for (let at = 0; at < 3; at += 0.02) output.write({ ...audio(at), track: source });
  t.true((listStreams(registry.vhost('default'), BOTH).streams[0]?.bitrate ?? 0) > 0);
});

test('a configured playlist is offered to both publishers, after the default of each', (t) => {
  const registry = new Registry();
  addVhost(registry);
  const output = goLive(registry, 'app', 'news');
  const [{ options } = { options: undefined }] = output.playlists;
  if (options === undefined) return t.fail();
  output.addPlaylist({ name: 'abr', fileName: 'master', options, renditions: [{}] });
  const [live] = listStreams(registry.vhost('default'), BOTH).streams;
  t.deepEqual(live?.llhls, ['llhls.m3u8', 'master.m3u8']);
  t.deepEqual(live?.webrtc, ['webrtc_default', 'master']);
});

test('subtitles are listed for WebRTC, unless its first playlist hides them', (t) => {
  const registry = new Registry();
  addVhost(registry);
  const vhost = registry.vhost('default');
  const [english, korean] = [
    subtitleTrack({ isDefault: true, forced: true }),
    { ...subtitleTrack({ id: 769, publicName: 'Korean' }), language: undefined },
  ];
  const output = goLive(registry, 'app', 'news', [VIDEO, english, korean]);
  const listed = (serves: readonly ('llhls' | 'webrtc')[] = BOTH) => listStreams(vhost, serves).streams[0]?.subtitles;
  t.deepEqual(listed(), [{ label: 'English', language: 'en', isDefault: true, forced: true }, { label: 'Korean' }]);
  t.is(listed(['llhls']), undefined, 'players of LL-HLS find them in its playlist');
  const playlist = output.playlist('webrtc_default');
  if (playlist === undefined) return t.fail();
  output.setPlaylists([{ ...playlist, hidesSubtitles: true }]);
  t.is(listed(), undefined);
});

test('a publisher that is off, or on another port, is not offered', (t) => {
  const registry = new Registry();
  addVhost(registry, { publishers: { webrtc: {} as never } });
  goLive(registry, 'app', 'news');
  const vhost = registry.vhost('default');
  const [off] = listStreams(vhost, BOTH).streams;
  t.deepEqual([off?.llhls, off?.webrtc], [[], ['webrtc_default']]);
  const [elsewhere] = listStreams(vhost, ['llhls']).streams;
  t.deepEqual([elsewhere?.llhls, elsewhere?.webrtc], [[], []]);
});

test('a stream name is listed alone; unknown names, and streams without tracks, are not listed', (t) => {
  const registry = new Registry();
  addVhost(registry);
  goLive(registry, 'app', 'one', [VIDEO]);
  goLive(registry, 'app', 'two', [AUDIO]);
  goLive(registry, 'app', 'empty', []);
  const vhost = registry.vhost('default');
  const names = (app: string, stream: string): string[] =>
    listStreams(vhost, BOTH, { app, stream }).streams.map((live) => live.stream);
  t.deepEqual(names('app', 'two'), ['two']);
  t.deepEqual(names('app', 'three'), []);
  t.deepEqual(names('other', 'two'), []);
  t.deepEqual(names('app', 'empty'), []);
  t.deepEqual(
    listStreams(vhost, BOTH).streams.map(({ stream }) => stream),
    ['one', 'two'],
  );
});

test('no stream is listed where access control guards viewers', (t) => {
  const registry = new Registry();
  const policy = (enables: object): never => ({ enables }) as never;
  addVhost(registry, { name: 'guarded', applications: ['guarded'], signedPolicy: policy({ publishers: 'webrtc' }) });
  addVhost(registry, { name: 'ingest', applications: ['ingest'], signedPolicy: policy({ providers: 'rtmp' }) });
  goLive(registry, 'guarded', 'secret');
  goLive(registry, 'ingest', 'open');
  const guarded = listStreams(registry.vhost('guarded'), BOTH);
  t.like(guarded, { restricted: true, streams: [] });
  const asked = listStreams(registry.vhost('guarded'), BOTH, { app: 'guarded', stream: 'secret' });
  t.like(asked, { restricted: true, streams: [] });
  t.is(listStreams(registry.vhost('ingest'), BOTH).streams.length, 1);
});

test('the list of streams is bounded', (t) => {
  const registry = new Registry();
  addVhost(registry);
  for (let i = 0; i < MAX_LISTED; i++) goLive(registry, 'app', `s${i}`);
  t.false(listStreams(registry.vhost('default'), BOTH).more);
  goLive(registry, 'app', 'one more');
  const { streams, more } = listStreams(registry.vhost('default'), BOTH);
  t.is(streams.length, MAX_LISTED);
  t.true(more);
});

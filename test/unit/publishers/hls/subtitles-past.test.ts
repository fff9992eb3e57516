import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import HLS from 'hls-parser';
import { audioTrack, cuePacket, videoTrack } from '../../../support/media/packets.ts';
import { openLlhls } from '../../../support/hls/llhls.ts';
import { feeder } from '../../../support/hls/llhls-nodes.ts';
import { urisOf } from '../../../support/hls/playlist-uris.ts';
import { until } from '../../../support/time/until.ts';

const TRACKS = [videoTrack(), audioTrack()];
const KINDS = [
  { kind: 'LL-HLS', master: 'llhls.m3u8', index: 0 },
  { kind: 'HLS with MPEG-TS', master: 'ts:playlist.m3u8', index: 1 },
];

/** A stream with subtitles in which players rewind, that has had a text at 1 s. */
async function open(t: ExecutionContext) {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-subtitles-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const window = { segmentDuration: 2, segmentCount: 3 };
  const dvr = (kind: string) => ({ enable: true, tempStoragePath: join(folder, kind), maxDuration: 20 });
  const publishers = { llhls: { ...window, chunkDuration: 0.5, dvr: dvr('ll') }, hls: { ...window, dvr: dvr('ts') } };
  const subtitles = { enable: true, rendition: [{ label: 'English', language: 'en' }] };
  const applications = [{ name: 'app', type: 'live', publishers, subtitles }];
  const server = await openLlhls(t, { hls: {}, vhost: { applications } });
  const { input, output } = server.goLive(TRACKS);
  output.setTracks(input.tracks);
  for (const publisher of server.publishers)
    await until('the stream is packaged', () => publisher.live(server.application, 'stream'));
  const track = input.tracks.find(({ type }) => type === 'subtitle');
  if (track?.type !== 'subtitle') throw new Error('no subtitles');
  const advance = feeder(output);
  advance(1);
  output.write(cuePacket(track, 1000, 'early'));
  const read = async (url: string) => {
    const { statusCode, body } = await server.get(url);
    t.is(statusCode, 200, url);
    return body;
  };
  /** Media playlists of the video, or what has it, and of the subtitles. */
  const lists = async (master: string) => {
    const text = await read(`/app/stream/${master}`);
    const path = (uri = '') => new URL(uri, `http://kiln/app/stream/${master}`).pathname;
    const [subtitles, video] = [/TYPE=SUBTITLES.*URI="([^"]+)"/, /#EXT-X-STREAM-INF.*\n(.+)/].map((one) =>
      path(one.exec(text)?.[1]),
    );
    return { subtitles: subtitles ?? '', video: video ?? '' };
  };
  /** Numbers and gaps of a media playlist. */
  const shape = async (list: string) => {
    const body = await read(list);
    const segments = [
      ...body.matchAll(/(#EXT-X-DISCONTINUITY\n)?(?:#EXT-X-(?!GAP|DISC).*\n)*(#EXT-X-GAP\n)?#EXTINF:([\d.]+),\n/g),
    ];
    return {
      body,
      shape: [
        /MEDIA-SEQUENCE:\d+/.exec(body)?.[0],
        ...segments.map(([, step, gap, seconds]) => `${step ?? ''}${gap ?? ''}${Number(seconds).toFixed(2)}`),
      ],
    };
  };
  return { ...server, input, advance, folder, read, lists, shape };
}

for (const { kind, master } of KINDS) {
  test(`subtitles of ${kind} stay listed as long as the video`, async (t) => {
    const { advance, lists, shape, read } = await open(t);
    advance(16.1);
    const { subtitles, video } = await lists(master);
    const { body, shape: before } = await shape(subtitles);
    t.deepEqual(before, (await shape(video)).shape);
    const files = urisOf(body.replace(/#EXT-X-PRELOAD-HINT.*/, ''), subtitles).filter((one) => one.includes('/seg_'));
    t.true(files.length > 4, `${files.length}`);
    const texts = await Promise.all(files.map(read));
    t.is(
      texts.findIndex((text) => text.includes('early')),
      0,
    );
    advance(60.1);
    const after = await shape(subtitles);
    t.deepEqual(after.shape, (await shape(video)).shape);
    t.true(after.shape.length < 15);
  });
}

for (const { kind, master, index } of KINDS)
  test(`a dump of ${kind} has the subtitles`, async (t) => {
    const { advance, publishers, application, folder, input, lines } = await open(t);
    advance(16.1);
    const dumps = publishers[index]?.live(application, 'stream')?.dumps;
    const outputPath = join(folder, 'vod');
    await dumps?.start({ id: 'd', outputPath, playlist: [] });
    advance(20.1);
    input.close('the publisher has gone');
    await until('the dump to be complete', () => lines.some(({ event }) => event === 'dump.finished'));
    const names = await readdir(outputPath);
    const text = await readFile(join(outputPath, master.replace('ts:', '')), 'utf8');
    const list = /TYPE=SUBTITLES.*URI="([^"]+)"/.exec(text)?.[1] ?? '';
    const body = await readFile(join(outputPath, list), 'utf8');
    HLS.setOptions({ strictMode: true });
    const parsed = HLS.parse(body) as HLS.types.MediaPlaylist;
    t.is(parsed.playlistType, 'VOD');
    t.true(parsed.endlist);
    const files = parsed.segments.map(({ uri }) => uri);
    t.true(files.length >= 10 && files.every((file) => names.includes(file)));
    const first = await readFile(join(outputPath, files[0] ?? ''), 'utf8');
    t.true(first.includes('early'));
  });

import test, { type ExecutionContext } from 'ava';
import HLS from 'hls-parser';
import { pino } from 'pino';
import type { Packet } from '../../../../../src/core/packet.ts';
import { writeCue } from '../../../../../src/core/subtitle-cue.ts';
import type { MediaTrack, SubtitleTrack } from '../../../../../src/core/track.ts';
import { FaultLog } from '../../../../../src/log/log.ts';
import { LLHLS as LLHLS_FORM } from '../../../../../src/publishers/hls/ll/index.ts';
import { HLS as HLS_FORM } from '../../../../../src/publishers/hls/ts/index.ts';
import { openLlhls } from '../../../../support/hls/llhls.ts';
import { audioPackets, audioTrack, interleaved, videoPackets, videoTrack } from '../../../../support/media/packets.ts';
import { virtualTime } from '../../../../support/time/virtual-time.ts';
import { urisOf } from '../../../../support/hls/playlist-uris.ts';

const LLHLS = { segmentDuration: 2, segmentCount: 5, chunkDuration: 0.5 };
const SUBTITLES = {
  enable: true,
  defaultLabel: 'English',
  rendition: [
    { label: 'English', language: 'en', forced: true },
    { label: 'Say "hi"', language: 'kor', autoSelect: true },
  ],
};
const VIDEO = videoTrack();
const AUDIO = audioTrack();
const HEADER = 'WEBVTT\nX-TIMESTAMP-MAP=LOCAL:00:00:00.000,MPEGTS:0\n';

/** A stream with subtitles. */
async function open(
  t: ExecutionContext,
  tracks: readonly MediaTrack[] = [VIDEO, AUDIO],
  subtitles: object = SUBTITLES,
) {
  const publishers = { llhls: LLHLS, hls: { segmentDuration: 2, segmentCount: 4 } };
  const application = { name: 'app', type: 'live', publishers, subtitles };
  const server = await openLlhls(t, { vhost: { applications: [application] } });
  const { input, output } = server.goLive(tracks);
  output.setTracks(input.tracks);
  const [track] = input.tracks.filter((one): one is SubtitleTrack => one.type === 'subtitle');
  if (track === undefined) throw new Error('no subtitles');
  const play = (from: number, to: number) => {
    const packets = tracks.map((one): Packet[] =>
      one.type === 'video' ? videoPackets(one, { from, to }) : audioPackets(one, { from, to }),
    );
    for (const packet of interleaved(...packets)) output.write(packet);
  };
  const say = (pts: number, duration: number, text: string) =>
    output.write({ track, dts: pts, pts, duration, key: true, data: writeCue({ settings: '', text }) });
  const read = async (url: string) => (await server.get(url)).body;
  const list = async () => {
    const master = '/app/stream/llhls.m3u8';
    const uri = urisOf(await read(master), master).find((one) => one.includes('_subtitle_'));
    if (uri === undefined) throw new Error('no subtitles in the master playlist');
    const body = await read(uri);
    // the hinted part is still to come
    const children = urisOf(body.replace(/#EXT-X-PRELOAD-HINT.*/, ''), uri).filter((one) => one.includes('.vtt'));
    return { uri, body, children };
  };
  return { ...server, input, output, track, play, say, read, list };
}

test('many labels follow one video without a warning', async (t) => {
  const rendition = Array.from({ length: 12 }, (_, index) => ({ label: `Label ${index}` }));
  const { play, read } = await open(t, [VIDEO], { ...SUBTITLES, rendition });
  play(0, 3);
  const master = await read('/app/stream/llhls.m3u8');
  t.is(master.split('TYPE=SUBTITLES').length, 13);
});

test('the master playlist lists the labels as subtitles of every variant', async (t) => {
  const { play, read } = await open(t);
  play(0, 3);
  const master = await read('/app/stream/llhls.m3u8');
  const media = master.split('\n').filter((line) => line.includes('TYPE=SUBTITLES'));
  const before = '#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="subtitles"';
  t.deepEqual(
    media.map((line) => line.replace(/,URI=.*/, '')),
    [
      `${before},NAME="English",DEFAULT=YES,AUTOSELECT=YES,FORCED=YES,LANGUAGE="en"`,
      `${before},NAME="Say hi",DEFAULT=NO,AUTOSELECT=YES,FORCED=NO,LANGUAGE="ko"`,
    ],
  );
  for (const line of master.split('\n').filter((one) => one.startsWith('#EXT-X-STREAM-INF')))
    t.true(line.includes(',SUBTITLES="subtitles"'));
  HLS.setOptions({ strictMode: true });
  const parsed = HLS.parse(master);
  t.true(parsed.isMasterPlaylist && parsed.variants[0]?.subtitles.length === 2);
});

test('subtitles have the parts and segments of the video, under the same numbers', async (t) => {
  const { play, read, list, children } = await open(t);
  play(0, 7);
  const { body } = await list();
  const video = await read((await children())[1] ?? '/');
  const shape = (text: string) =>
    text
      .split('\n')
      .filter((line) => /EXTINF|EXT-X-PART:|MEDIA-SEQUENCE|PART-INF|PROGRAM/.test(line))
      .map((line) => line.replace(/,URI=.*/, ''));
  t.deepEqual(shape(body), shape(video));
  t.false(body.includes('EXT-X-MAP'));
  t.regex(body, /#EXT-X-PRELOAD-HINT:TYPE=PART,URI="part_768_/);
  t.regex(body, /#EXT-X-RENDITION-REPORT:URI="chunklist_0_video/);
});

test('a cue is in each part and segment in which it is shown, and gaps are empty files', async (t) => {
  const { play, say, list, get } = await open(t);
  play(0, 4.1);
  say(4200, 1000, 'Hello');
  play(4.1, 8.1);
  const { children } = await list();
  const bodies = new Map<string, string>();
  for (const uri of children) {
    const { body, headers, statusCode } = await get(uri);
    t.is(statusCode, 200, uri);
    t.is(headers['content-type'], 'text/vtt');
    t.true(body.startsWith(HEADER));
    bodies.set(/(?:seg|part)_768_([\d_]+)_subtitle/.exec(uri)?.[1] ?? '', body.slice(HEADER.length));
  }
  const cue = '\n00:00:04.200 --> 00:00:05.200\nHello\n';
  const having = [...bodies].filter(([, body]) => body !== '');
  t.true(having.every(([, body]) => body === cue));
  const at = [...bodies.keys()].filter((one) => bodies.get(one) === cue);
  // the segment begins at 4 s, and its parts have half a second
  t.deepEqual(at.toSorted(), ['3', '3_0', '3_1', '3_2']);
});

test('a request for the next part of subtitles waits for it', async (t) => {
  const { play, say, list, get } = await open(t);
  play(0, 4.6);
  const { body, uri } = await list();
  const hinted = /PRELOAD-HINT:TYPE=PART,URI="([^"]+)"/.exec(body)?.[1] ?? '';
  const next = get(new URL(hinted, `http://kiln${uri}`).pathname);
  say(4700, 1000, 'Hello');
  play(4.6, 6);
  t.true((await next).body.includes('Hello'));
});

test('subtitles follow the audio where there is no video', async (t) => {
  const { play, say, list, read } = await open(t, [AUDIO]);
  play(0, 2);
  say(2100, 500, 'Hello');
  play(2, 5);
  const { children } = await list();
  const bodies = await Promise.all(children.map(read));
  t.true(bodies.some((body) => body.includes('Hello')));
});

test('subtitles go on behind another leader when the video leaves', async (t) => {
  const { play, say, list, read, output, track } = await open(t);
  play(0, 5);
  output.setTracks([AUDIO, track]);
  for (const packet of audioPackets(AUDIO, { from: 5, to: 8 })) output.write(packet);
  say(8000, 1000, 'Still here');
  for (const packet of audioPackets(AUDIO, { from: 8, to: 12 })) output.write(packet);
  const { children } = await list();
  const bodies = await Promise.all(children.map(read));
  t.true(bodies.some((body) => body.includes('Still here')));
});

test('a playlist can be without subtitles', async (t) => {
  const { play, read, output } = await open(t);
  const [playlist] = output.playlists.filter(({ fileName }) => fileName === 'llhls');
  if (playlist === undefined) throw new Error('no playlist');
  output.addPlaylist({ ...playlist, fileName: 'silent', hidesSubtitles: true });
  play(0, 3);
  t.false((await read('/app/stream/silent.m3u8')).includes('SUBTITLES'));
  t.true((await read('/app/stream/llhls.m3u8')).includes('SUBTITLES'));
});

for (const form of [LLHLS_FORM, HLS_FORM])
  test(`the leading URI of a master playlist of ${form.kind} is that of a variant: starts by the clock count in it`, async (t) => {
    const { application, output, track } = await open(t);
    const log = pino({ level: 'silent' });
    const [onProgress, onStarted] = [() => {}, () => {}];
    const options = { streamKey: 'key', next: undefined, onProgress, onStarted, log, faults: new FaultLog(log) };
    const packaged = form.package({ ...options, application });
    form.addDefaultPlaylist(output);
    packaged.update(output);
    const media = [videoPackets(VIDEO, { from: 0, to: 20 }), audioPackets(AUDIO, { from: 0, to: 20 })];
    for (const packet of interleaved(...media)) packaged.push(packet);
    const playlist = output.playlists.find(({ options: { enableTsPackaging } }) => enableTsPackaging === form.inTs);
    if (playlist === undefined) throw new Error('no playlist');
    const asked: string[] = [];
    const master = packaged.master(playlist, output, (uri) => {
      asked.push(uri);
      return uri;
    });
    packaged.close();
    t.true(master?.includes(`NAME="${track.publicName}"`));
    t.is(asked[0], /#EXT-X-STREAM-INF.*\n(.+)/.exec(master ?? '')?.[1]);
  });

test('while no media comes, the request for the video is refused seconds before those for the other renditions', async (t) => {
  virtualTime(t);
  const { play, get, read } = await open(t);
  play(0, 3.2);
  const master = '/app/stream/llhls.m3u8';
  const lists = urisOf(await read(master), master).filter((uri) => /_(video|audio|subtitle)_/.test(uri));
  t.is(lists.length, 4);
  const begun = Date.now();
  const ends = await Promise.all(
    lists.map(async (uri) => {
      const [, msn, part] = [...(await read(uri)).matchAll(/#EXT-X-PART:.*"part_\d+_(\d+)_(\d+)_/g)].at(-1) ?? [];
      const { statusCode } = await get(`${uri}?_HLS_msn=${msn}&_HLS_part=${Number(part) + 1}`);
      t.is(statusCode, 503, uri);
      return { isVideo: uri.includes('_video_'), ms: Date.now() - begun };
    }),
  );
  const [video] = ends.filter(({ isVideo }) => isVideo).map(({ ms }) => ms);
  for (const { isVideo, ms } of ends) if (!isVideo) t.true(ms - (video ?? ms) >= 2000, `${ms} and ${video} ms`);
});

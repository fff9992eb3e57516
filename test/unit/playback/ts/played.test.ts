import test from 'ava';
import { placedTracks } from '../../../support/media/mp4-samples.ts';
import {
  audioPackets,
  audioTrack,
  AVC_HIGH,
  interleaved,
  videoPackets,
  videoTrack,
} from '../../../support/media/packets.ts';
import { urisOf } from '../../../support/hls/playlist-uris.ts';
import { openPlayback } from '../../../support/playback/recorded.ts';
import { checkMasterPlaylist } from '../../../support/playlist-rules/master-rules.ts';
import { checkMediaPlaylist } from '../../../support/playlist-rules/media-rules.ts';
import { distinct } from '../../../support/recording/recorded-ts.ts';

const VIDEO = videoTrack();
const WIDE = videoTrack({ config: AVC_HIGH, width: 1280, height: 720 });
const AUDIO = audioTrack();
const ORIGIN = 'http://localhost:80';
const at = (second: number, duration: number, more = '') =>
  `start=2026-03-05T12:00:${String(second).padStart(2, '0')}Z&duration=${duration}${more}`;

/** Video of a format from `from` on, and of another one from `change` on. */
const packets = (from: number, to: number, change = to) =>
  distinct(
    interleaved(
      videoPackets(VIDEO, { from, to: change }),
      videoPackets(WIDE, { from: change, to }),
      audioPackets(AUDIO, { from, to }),
    ),
  );

test('clips of MPEG-TS files have the frames of their time', async (t) => {
  const { recordTs, get } = await openPlayback(t);
  await recordTs(0, [VIDEO, AUDIO], packets(0, 10), 10);
  await recordTs(10, [VIDEO, AUDIO], packets(10, 20), 10);
  for (const format of ['mp4', 'fmp4']) {
    const { statusCode, rawPayload } = await get(`/app/stream/get?${at(4, 10, `&format=${format}`)}`);
    t.is(statusCode, 200);
    const [video, audio] = placedTracks(rawPayload);
    t.is(video?.samples.length, 300);
    const sent = packets(0, 20)
      .filter(({ track }) => track === VIDEO)
      .slice(120, 420);
    t.deepEqual(
      video?.samples.slice(0, 180).map(({ data }) => data),
      sent.slice(0, 180).map(({ data }) => data),
    );
    t.true(Math.abs((audio?.samples.length ?? 0) - 10 * 46.9) < 10);
  }
  const url = `/app/stream/get?${at(4, 10, '&format=mp4')}`;
  const whole = await get(url);
  const part = await get(url, { range: 'bytes=20000-60000' });
  t.deepEqual([part.statusCode, part.rawPayload], [206, whole.rawPayload.subarray(20_000, 60_001)]);
  t.is((await get(url)).headers['etag'], whole.headers['etag']);
});

test('a clip of one file ends where the format changes within an MPEG-TS file, and a later one begins there', async (t) => {
  const { recordTs, get } = await openPlayback(t);
  await recordTs(0, [VIDEO, AUDIO], packets(0, 10, 5), 10);
  const framesOf = async (second: number) =>
    placedTracks((await get(`/app/stream/get?${at(second, 10, '&format=mp4')}`)).rawPayload)[0]?.samples.length;
  t.deepEqual([await framesOf(2), await framesOf(5), await framesOf(7)], [90, 150, 90]);
});

test('HLS goes on where the format changes within an MPEG-TS file', async (t) => {
  const { recordTs, recordMp4, get } = await openPlayback(t);
  await recordTs(0, [VIDEO, AUDIO], packets(0, 18, 6), 18);
  await recordMp4(18, 6);
  const path = `/app/stream/recorded.m3u8?${at(0, 24)}`;
  const master = await get(path);
  t.is(master.statusCode, 200, master.body);
  t.deepEqual(checkMasterPlaylist(master.body), []);
  const [list = ''] = urisOf(master.body, ORIGIN + path);
  const { body } = await get(new URL(list).pathname);
  t.deepEqual(checkMediaPlaylist(body), []);
  t.deepEqual(
    [...body.matchAll(/DATE-TIME:(.*)$/gm)].map(([, date]) => date),
    ['2026-03-05T12:00:00.000Z', '2026-03-05T12:00:06.000Z', '2026-03-05T12:00:18.000Z'],
  );
  let init: Buffer = Buffer.alloc(0);
  const shown: [size: string, frames: number][] = [];
  for (const uri of urisOf(body, list)) {
    const { statusCode, rawPayload } = await get(new URL(uri).pathname);
    t.is(statusCode, 200, uri);
    if (uri.endsWith('.mp4')) init = rawPayload;
    else {
      const [video] = placedTracks(Buffer.concat([init, rawPayload]));
      shown.push([init.includes(AVC_HIGH) ? 'wide' : 'small', video?.samples.length ?? 0]);
    }
  }
  t.deepEqual(shown, [
    ['small', 180],
    ['wide', 180],
    ['wide', 180],
    ['small', 180],
  ]);
});

test('an MPEG-TS file that is none is answered as an error', async (t) => {
  const { record, get } = await openPlayback(t);
  await record(0, { pathBelow: '0.ts' }, Buffer.alloc(20_000, 'x'));
  await record(10, { pathBelow: '10.ts' }, Buffer.alloc(0));
  for (const second of [0, 10])
    for (const path of ['get', 'recorded.m3u8']) {
      const { statusCode, body } = await get(`/app/stream/${path}?${at(second, 1)}`);
      t.is(statusCode, 500);
      t.regex(body, /The recording cannot be read: the MPEG-TS file is damaged: /);
    }
});

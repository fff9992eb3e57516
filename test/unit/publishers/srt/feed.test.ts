import test from 'ava';
import type { Packet } from '../../../../src/core/packet.ts';
import { Registry } from '../../../../src/core/registry.ts';
import type { Track } from '../../../../src/core/track.ts';
import { KilnError } from '../../../../src/errors.ts';
import { TsFeed } from '../../../../src/publishers/ts/feed.ts';
import { addDefaultPlaylist, playlistOf, tracksOf } from '../../../../src/publishers/srt/selection.ts';
import { ofDefaultTracks } from '../../../support/mpegts/default-tracks.ts';
import { addVhost, AUDIO as SOUND, goLive, VIDEO } from '../../../support/server/live.ts';
import { until } from '../../../support/time/until.ts';

/** AAC LC, 48 kHz, stereo. */
const AUDIO = { ...SOUND, config: Buffer.from('1190', 'hex') } as Track;
const OPUS = { ...SOUND, id: 2, name: 'opus', codec: 'OPUS' } as Track;
const EVENTS: Track = { id: 3, name: 'Data', type: 'data', codec: 'ID3v2', timebase: VIDEO.timebase, bypass: true };

function live(tracks: readonly Track[] = [VIDEO, OPUS, AUDIO, EVENTS]) {
  const registry = new Registry();
  addVhost(registry);
  const output = goLive(registry, 'app', 'talk', tracks);
  addDefaultPlaylist(output);
  return output;
}

const sound = (track: Packet['track'], pts: number): Packet => ({
  track,
  dts: pts,
  pts,
  duration: 1024,
  key: true,
  data: Buffer.alloc(200, 1),
});

test('the default playlist is the first picture with AAC where there is any, and every event', (t) => {
  const output = live();
  t.deepEqual(
    tracksOf(output.tracks, playlistOf(output)).map(({ name }) => name),
    ['video', 'audio', 'Data'],
  );
  output.setTracks([VIDEO, OPUS]);
  t.deepEqual(
    tracksOf(output.tracks, playlistOf(output)).map(({ name }) => name),
    ['video', 'opus'],
    'made again with the tracks',
  );
  const code = (fileName: string): string | undefined =>
    t.throws<KilnError>(() => playlistOf(output, fileName), { instanceOf: KilnError }).code;
  t.deepEqual([code('llhls'), code('none')], ['fileNotFound', 'fileNotFound'], 'not for MPEG-TS, or not there');
});

test('viewers of a playlist share one packaging, which ends with the last of them', (t) => {
  const output = live([AUDIO, OPUS]);
  let ended = 0;
  const feed = new TsFeed(output, ofDefaultTracks(output, { onEnd: () => void ended++ }));
  const got: Buffer[][] = [[], []];
  const viewers = got.map((list) => feed.attach({ packet: ({ data }) => void list.push(data) }));
  const write = (from: number): void => {
    for (let pts = from; pts < from + 20 * 1024; pts += 1024)
      for (const track of [AUDIO, OPUS]) output.write(sound(track, pts));
  };
  write(0);
  const { length } = got[0] as Buffer[];
  t.true(length > 0);
  t.deepEqual(
    got.map((list) => list.length),
    [length, length],
  );
  t.true(
    got[0]?.every((data, i) => data === got[1]?.[i]),
    'the same bytes',
  );
  t.true(got[0]?.every((data) => data.length % 188 === 0 && data[0] === 0x47));
  viewers[0]?.detach();
  write(20 * 1024);
  t.is(got[0]?.length, length);
  t.true((got[1] as Buffer[]).length > length);
  viewers[1]?.detach();
  t.is(ended, 1);
  t.is(output.readers, 0);
});

test('DelayBufferTimeMs: viewers get everything later, and new tracks in its order', async (t) => {
  const output = live([AUDIO]);
  const feed = new TsFeed(output, ofDefaultTracks(output, { delayMs: 200 }));
  const got: Buffer[] = [];
  const { detach } = feed.attach({ packet: ({ data }) => void got.push(data) });
  for (let pts = 0; pts < 20 * 1024; pts += 1024) output.write(sound(AUDIO, pts));
  const other = { ...AUDIO, id: 7 };
  output.setTracks([other]);
  t.deepEqual(feed.tracks, [AUDIO]);
  t.is(got.length, 0);
  await until('other tracks', () => feed.tracks[0] === other);
  t.true(got.length > 0);
  detach();
  output.input.close('the publisher left');
  t.is(output.readers, 0);
});

test('the end of a stream ends its viewers', (t) => {
  const output = live();
  const feed = new TsFeed(output, ofDefaultTracks(output));
  let told: string | undefined;
  feed.attach({ packet: () => {}, close: (reason) => void (told = reason) });
  output.input.close('the publisher left');
  t.is(told, 'the publisher left');
});

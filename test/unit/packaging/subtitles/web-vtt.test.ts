import test from 'ava';
import { writeCue } from '../../../../src/core/subtitle-cue.ts';
import { CueStore } from '../../../../src/core/cue-store.ts';
import { webVtt } from '../../../../src/packaging/subtitles/web-vtt.ts';
import { subtitleTrack } from '../../../support/media/packets.ts';

const TRACK = subtitleTrack();
const packet = (pts: number, duration: number, text: string | Buffer) => ({
  ...{ track: TRACK, dts: pts, pts, duration, key: true },
  data: typeof text === 'string' ? writeCue({ settings: '', text }) : text,
});
const HOUR = 3_600_000;

test('a segment of subtitles has a map of times and its cues', (t) => {
  const cues = [
    { start: 8690.4, end: 11_690, settings: 'line:80%', text: '안녕' },
    { start: HOUR + 11_690, end: HOUR + 13_000, settings: '', text: 'one\ntwo' },
  ];
  t.is(
    webVtt(9000, cues).toString(),
    'WEBVTT\nX-TIMESTAMP-MAP=LOCAL:00:00:00.000,MPEGTS:0\n' +
      '\n00:00:08.690 --> 00:00:11.690 line:80%\n안녕\n' +
      '\n01:00:11.690 --> 01:00:13.000\none\ntwo\n',
  );
});

test('a gap between cues is a valid file', (t) => {
  t.is(webVtt(0, []).toString(), 'WEBVTT\nX-TIMESTAMP-MAP=LOCAL:00:00:00.000,MPEGTS:0\n');
});

test('the map is that of the hour, and right when MPEG-2 timestamps of 33 bits have begun anew', (t) => {
  const mapAt = (begin: number) => webVtt(begin, []).toString().split('\n')[1];
  t.is(mapAt(HOUR - 1), mapAt(0));
  t.is(mapAt(26 * HOUR + 1), `X-TIMESTAMP-MAP=LOCAL:26:00:00.000,MPEGTS:${26 * HOUR * 90}`);
  t.is(mapAt(27 * HOUR), `X-TIMESTAMP-MAP=LOCAL:27:00:00.000,MPEGTS:${27 * HOUR * 90 - 2 ** 33}`);
  t.is(mapAt(500 * HOUR), `X-TIMESTAMP-MAP=LOCAL:500:00:00.000,MPEGTS:${(500 * HOUR * 90) % 2 ** 33}`);
});

test('a cue is in each span in which it is shown, until it is over', (t) => {
  const store = new CueStore();
  t.true(store.add(packet(1000, 500, 'a')));
  t.true(store.add(packet(1200, 2000, 'b')));
  const between = (from: number, to: number) => store.between(from, to).map(({ text }) => text);
  t.deepEqual(between(0, 1000), []);
  t.deepEqual(between(0, 1001), ['a']);
  t.deepEqual(between(1400, 1600), ['a', 'b']);
  t.deepEqual(between(1500, 3000), ['b']);
  store.over(1500);
  t.deepEqual(between(0, 9000), ['b']);
  t.like(store.between(0, 9000)[0], { start: 1200, end: 3200, settings: '', text: 'b' });
});

test('cues of a timeline that the source has left are dropped, and so is what is no cue', (t) => {
  const store = new CueStore();
  store.add(packet(500_000, 1000, 'old'));
  store.over(3000);
  t.deepEqual(store.between(0, Infinity), []);
  t.false(store.add(packet(0, 1000, Buffer.from('no line feed'))));
  t.deepEqual(store.between(0, Infinity), []);
});

test('the oldest cues are dropped for one that makes them too large', (t) => {
  const store = new CueStore();
  const large = 'x'.repeat(60_000);
  t.true(store.add(packet(0, 1000, `1${large}`)));
  t.true(store.add(packet(0, 1000, `2${large}`)));
  t.false(store.add(packet(0, 1000, `3${large}`)));
  t.true(store.add(packet(0, 1000, 'small')));
  t.deepEqual(
    store.between(0, 1).map(({ text }) => text.slice(0, 5)),
    ['2xxxx', '3xxxx', 'small'],
  );
});

test('the oldest of too many cues at a time is dropped', (t) => {
  const store = new CueStore();
  for (let count = 0; count < 200; count++) t.true(store.add(packet(0, 1000, `${count}`)));
  t.false(store.add(packet(0, 1000, 'last')));
  const texts = store.between(0, 1).map(({ text }) => text);
  t.deepEqual([texts.length, texts[0], texts.at(-1)], [200, '1', 'last']);
});

import test from 'ava';
import { Continuity } from '../../../src/core/continuity.ts';
import { Counters } from '../../../src/core/counters.ts';
import { InputStream, type TimedCue } from '../../../src/core/input-stream.ts';
import { readCue, writeCue } from '../../../src/core/subtitle-cue.ts';
import type { SubtitleTrack } from '../../../src/core/track.ts';
import { Random } from '../../soak/random.ts';
import { AUDIO, RTMP, Sink, VIDEO, video } from './support.ts';

const SUBTITLES = {
  enable: true,
  defaultLabel: 'Korean',
  rendition: [
    { label: 'Korean', language: 'ko', autoSelect: false, forced: false },
    { label: 'English', autoSelect: true, forced: true },
  ],
};

const openInput = (subtitles: typeof SUBTITLES | undefined = SUBTITLES, continuity = new Continuity()) =>
  new InputStream('live', RTMP, new Counters(), { subtitles, continuity });

/** A stream whose media has come to a time, and what its readers get. */
function live(seconds: number, continuity = new Continuity()) {
  const input = openInput(SUBTITLES, continuity);
  input.setTracks([VIDEO]);
  const sink = new Sink();
  input.read(sink);
  input.write(video(seconds, true));
  const track = input.subtitleTrack('Korean') as SubtitleTrack;
  const cue = (startMs: number, text: string): TimedCue => ({
    track,
    startMs,
    durationMs: 500,
    cue: { settings: '', text },
  });
  const shown = () =>
    sink.packets.flatMap(({ track: { type }, pts, data }) => (type === 'subtitle' ? [[pts, readCue(data)?.text]] : []));
  return { input, cue, shown };
}

test('a cue is its settings and its text', (t) => {
  const cue = { settings: 'line:80% align:start', text: 'one\ntwo' };
  const data = writeCue(cue);
  t.is(data.toString(), 'line:80% align:start\none\ntwo');
  t.deepEqual(readCue(data), cue);
  t.deepEqual(readCue(writeCue({ settings: '', text: 'é' })), { settings: '', text: 'é' });
});

test('what would end a cue in a file is none', (t) => {
  for (const data of ['', 'one line', '\n', 'a\n\nb', '\na\n \nb', '\na --> b', 'line:1 -->\na', 'a\rb\nc', '\na\0b'])
    t.is(readCue(Buffer.from(data)), undefined, JSON.stringify(data));
});

test('random bytes are a cue that reads the same again, or none', (t) => {
  const random = new Random(7);
  for (let round = 0; round < 2000; round++) {
    const data = random.bytes(random.below(20));
    const cue = readCue(data);
    if (cue !== undefined) t.deepEqual(readCue(writeCue(cue)), cue);
  }
});

test('a stream has a subtitle track for each label, behind its media', (t) => {
  const input = openInput();
  input.setTracks([VIDEO, AUDIO]);
  t.deepEqual(
    input.tracks.map(({ id, name, type }) => [id, name, type]),
    [
      [0, 'Video', 'video'],
      [1, 'Audio', 'audio'],
      [768, 'Subtitle', 'subtitle'],
      [769, 'Subtitle', 'subtitle'],
    ],
  );
  t.like(input.subtitleTrack('Korean'), { language: 'ko', isDefault: true, autoSelect: true, forced: false });
  t.like(input.subtitleTrack('English'), { isDefault: false, autoSelect: true, forced: true });
  t.is(input.subtitleTrack('German'), undefined);
  const before = input.tracks;
  input.setTracks([VIDEO, ...before.slice(2)]);
  t.deepEqual(input.tracks, [VIDEO, ...before.slice(2)]);
});

test('a subtitle track gives way to media with its id, and is not there without media or where it is off', (t) => {
  const input = openInput();
  input.setTracks([{ ...VIDEO, id: 768 }]);
  t.deepEqual(
    input.tracks.map(({ id }) => id),
    [768, 770, 769],
  );
  input.setTracks([]);
  t.deepEqual(input.tracks, []);
  const off = openInput({ ...SUBTITLES, enable: false });
  off.setTracks([VIDEO]);
  t.deepEqual(off.tracks, [VIDEO]);
});

test('cues are written when their time comes, before the media of that time', (t) => {
  const { input, cue, shown } = live(10);
  t.true(input.showCues([cue(0, 'now'), cue(1000, 'later'), cue(500, 'soon')]));
  t.deepEqual(shown(), [[10_000, 'now']]);
  input.write(video(10.4, false));
  t.is(shown().length, 1);
  input.write(video(10.6, false));
  t.deepEqual(shown().slice(1), [[10_500, 'soon']]);
  input.write(video(11, false));
  t.deepEqual(shown().slice(2), [[11_000, 'later']]);
});

test('cues that wait keep their distance when the clock of the source jumps', (t) => {
  const { input, cue, shown } = live(1000);
  input.showCues([cue(2000, 'later')]);
  input.write(video(3, true));
  t.deepEqual(shown(), []);
  input.write(video(4.9, false));
  t.deepEqual(shown(), []);
  input.write(video(5, false));
  t.deepEqual(shown(), [[5000, 'later']]);
});

test('cues are refused without media, when too many wait, and when the stream has ended: then none is shown', (t) => {
  const { input, cue, shown } = live(1);
  t.true(input.showCues(Array.from({ length: 1000 }, () => cue(60_000, 'later'))));
  t.false(input.showCues([cue(0, 'now')]));
  t.deepEqual(shown(), []);
  const other = live(1);
  const large = Array.from({ length: 16 }, () => other.cue(60_000, 'x'.repeat(64_000)));
  t.true(other.input.showCues(large));
  t.false(other.input.showCues([other.cue(0, 'x'.repeat(64_000))]));
  t.deepEqual(other.shown(), []);
  input.close('over');
  t.false(input.showCues([cue(0, 'now')]));
  const empty = openInput();
  empty.setTracks([VIDEO]);
  t.false(empty.showCues([cue(0, 'now')]));
});

/** What the stream that continues another one inherits, through the store. */
function next(before: Continuity): Continuity {
  return new Continuity(new Map(Object.entries(JSON.parse(JSON.stringify(Object.fromEntries(before.kept))))));
}

test('cues that wait, or are shown, go on in the stream that continues this one', (t) => {
  const before = new Continuity();
  const { input, cue } = live(10, before);
  const long = (startMs: number, text: string): TimedCue => ({ ...cue(startMs, text), durationMs: 3_600_000 });
  t.true(input.showCues([long(0, 'shown'), long(5000, 'waits'), { ...cue(0, 'over'), durationMs: 0 }]));
  input.close('the publisher has gone');
  const after = next(before);
  const other = live(500, after);
  t.deepEqual(other.shown(), [[500_000, 'shown']]);
  other.input.write(video(506, false));
  const [, [at, text] = []] = other.shown();
  t.is(text, 'waits');
  t.true(Number(at) > 500_000 && Number(at) <= 505_000, String(at));
  // and once more, with one that is new
  other.input.showCues([long(0, 'new')]);
  const third = live(0, next(after));
  third.input.write(video(6, false));
  t.deepEqual(
    third
      .shown()
      .map(([, one]) => one)
      .sort(),
    ['new', 'shown', 'waits'],
  );
});

test('cues of a stream that was ended for good are not shown in the next one, nor those of a label that is gone', (t) => {
  const before = new Continuity();
  const { input, cue } = live(10, before);
  input.showCues([{ ...cue(0, 'shown'), durationMs: 3_600_000 }]);
  const gone = openInput({ ...SUBTITLES, rendition: SUBTITLES.rendition.slice(1) }, next(before));
  gone.setTracks([VIDEO]);
  const sink = new Sink();
  gone.read(sink);
  gone.write(video(0, true));
  t.is(sink.packets.length, 1);
  input.end('deleted');
  t.deepEqual(live(0, next(before)).shown(), []);
});

test('cues that are kept have limits, and what is no cue is left out', (t) => {
  const before = new Continuity();
  const { input, cue } = live(10, before);
  const large = Array.from({ length: 40 }, (_, index) => cue(60_000 + index, 'x'.repeat(1000)));
  t.true(input.showCues(large));
  t.is((before.kept.get('subtitles') as object[]).length, 32);
  t.true(input.showCues(Array.from({ length: 500 }, (_, index) => cue(30_000 + index, 'y'))));
  t.is((before.kept.get('subtitles') as object[]).length, 200);
  const now = Date.now();
  const good = { label: 'Korean', from: now, until: now + 3_600_000, settings: '', text: 'good' };
  const others = [
    { text: 'a\n\nb' },
    { text: 1 },
    { settings: '-->' },
    { from: null },
    { until: now - 1 },
    { label: 2 },
  ];
  for (const value of [undefined, 'x', 1, [null, 1, 'x', [], ...others.map((one) => ({ ...good, ...one })), good]]) {
    const { shown } = live(1, new Continuity(new Map([['subtitles', value]])));
    t.deepEqual(
      shown().map(([, text]) => text),
      Array.isArray(value) ? ['good'] : [],
    );
  }
});

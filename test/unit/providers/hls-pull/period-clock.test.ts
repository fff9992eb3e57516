import test from 'ava';
import { PeriodClock } from '../../../../src/providers/hls-pull/period-clock.ts';

const SECOND = 90_000;
const RANGE = 2 ** 33;
const [VIDEO, AUDIO] = [0, 1];

test('the times of a period are kept, those that wrap included', (t) => {
  const clock = new PeriodClock(true);
  const [video, audio] = [clock.playlist(), clock.playlist()];
  const begin = RANGE - SECOND;
  const times = [0, 1, 2].map((n) => video.place(VIDEO, 'a', (begin + n * SECOND) % RANGE));
  t.deepEqual(times, [begin, RANGE, RANGE + SECOND]);
  // the audio begins behind the wrap
  t.is(audio.place(AUDIO, 'a', SECOND / 2), RANGE + SECOND / 2);
  clock.start(begin);
  t.is(clock.track({ num: 1, den: 90_000 }).next(begin + 7), 7);
});

test('the next period goes on where the last one has ended, for all playlists alike', (t) => {
  const clock = new PeriodClock(true);
  const [video, audio] = [clock.playlist(), clock.playlist()];
  for (const n of [0, 1, 2]) video.place(VIDEO, '0', 100 * SECOND + n * 3600);
  for (const n of [0, 1]) audio.place(AUDIO, '0', 100 * SECOND + n * 1920);
  const end = 100 * SECOND + 3 * 3600;
  // hours later, and hours earlier
  t.is(video.place(VIDEO, '1', 5000 * SECOND), end);
  t.is(audio.place(AUDIO, '1', 5000 * SECOND + 10), end + 10);
  t.is(audio.place(AUDIO, '1', 5000 * SECOND + 1930), end + 1930);
  t.is(audio.place(AUDIO, '2', 3 * SECOND), end + 1930 + 1920);
  t.is(video.place(VIDEO, '2', 3 * SECOND + 1), end + 1930 + 1920 + 1);
});

test('what overlaps the last period is left out', (t) => {
  const clock = new PeriodClock(true);
  const [video, audio] = [clock.playlist(), clock.playlist()];
  for (const n of [0, 1]) video.place(VIDEO, '0', n * SECOND);
  for (const n of [0, 1, 2, 3]) audio.place(AUDIO, '0', n * SECOND);
  t.is(video.place(VIDEO, '1', 0), 2 * SECOND);
  const times = [0, 1, 2, 3].map((n) => audio.place(AUDIO, '1', n * SECOND));
  t.deepEqual(times, [undefined, 3 * SECOND, 4 * SECOND, 5 * SECOND]);
});

test('a jump that no tag announces is followed by all tracks', (t) => {
  const clock = new PeriodClock(true);
  const lane = clock.playlist();
  const begin = 20 * SECOND;
  for (const n of [0, 1]) for (const track of [VIDEO, AUDIO]) lane.place(track, '0', begin + n * 3600);
  t.is(lane.place(VIDEO, '0', 1000 * SECOND), begin + 7200);
  // packets of both clocks come mixed
  t.is(lane.place(AUDIO, '0', begin + 7200), begin + 7200);
  t.is(lane.place(AUDIO, '0', 1000 * SECOND + 3600), begin + 10_800);
  t.is(lane.place(VIDEO, '0', 1000 * SECOND + 3600), begin + 10_800);
  t.is(lane.place(VIDEO, '0', 5), begin + 14_400);
  t.is(lane.place(AUDIO, '0', 5), begin + 14_400);
});

test('missing media is a pause', (t) => {
  const clock = new PeriodClock(true);
  const lane = clock.playlist();
  lane.place(VIDEO, '0', 0);
  lane.place(VIDEO, '0', 3600);
  t.is(lane.place(VIDEO, '0', 9 * SECOND), 9 * SECOND);
  lane.skip(30);
  t.is(lane.place(VIDEO, '0', 45 * SECOND), 45 * SECOND);
});

test('events are beside the media of their period, however few they are', (t) => {
  const clock = new PeriodClock(false);
  const lane = clock.playlist();
  lane.place(VIDEO, '0', 0);
  t.is(lane.placeEvent('0', 100 * SECOND), 100 * SECOND);
  lane.place(VIDEO, '1', 50 * SECOND);
  t.is(lane.placeEvent('1', 51 * SECOND), SECOND);
  clock.start(7);
  t.is(clock.track({ num: 1, den: 90_000 }).next(7), 7);
});

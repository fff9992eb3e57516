import test from 'ava';
import { endOf, follow, startOf } from '../../../../src/providers/hls-pull/follower.ts';
import type { MediaPlaylist, Segment } from '../../../../src/providers/hls-pull/playlist.ts';
import { PullError } from '../../../../src/providers/pull/error.ts';

/** Loads of a playlist with segments of 0.1 s. @param discontinuities sequence numbers before which there is one */
const playlist = (
  first: number,
  end: number,
  isEnded = false,
  discontinuities: readonly number[] = [],
): MediaPlaylist => ({
  kind: 'media',
  target: 0.1,
  isEnded,
  segments: Array.from(
    { length: end - first },
    (_, n) =>
      ({
        sequence: first + n,
        duration: 0.1,
        uri: new URL(`http://a/${first + n}.ts`),
        discontinuity: discontinuities.filter((number) => number <= first + n).length,
      }) as Segment,
  ),
});

async function followed(
  loads: readonly [MediaPlaylist, ...(MediaPlaylist | Error)[]],
  after?: Segment,
): Promise<(number | string)[]> {
  const [begin, ...rest] = loads;
  const seen: (number | string)[] = [];
  const load = async (): Promise<MediaPlaylist> => {
    const next = rest.shift();
    if (next === undefined || next instanceof Error) throw next ?? new PullError('gone');
    return next;
  };
  try {
    const from = startOf(begin, after);
    const before = { discontinuity: 0, restarts: 0 };
    for await (const segment of follow(begin, { load, signal: new AbortController().signal, from })) {
      const { sequence, missing, restarts, discontinuity } = segment;
      if (missing > 0) seen.push(`gap of ${missing}`);
      if (restarts > before.restarts) seen.push('anew');
      else if (discontinuity !== before.discontinuity) seen.push(`discontinuity ${discontinuity}`);
      Object.assign(before, { discontinuity, restarts });
      seen.push(sequence);
    }
  } catch (error) {
    seen.push((error as Error).message);
  }
  return seen;
}

test('a live playlist is followed from three target durations before its end', async (t) => {
  t.deepEqual(
    await followed([playlist(0, 10), playlist(1, 11), playlist(1, 11), playlist(3, 13, true)]),
    [7, 8, 9, 10, 11, 12],
  );
});

test('a playlist that has ended is read from its beginning', async (t) => {
  t.deepEqual(await followed([playlist(4, 7, true)]), [4, 5, 6]);
  t.deepEqual(await followed([playlist(4, 4, true)]), []);
});

test('segments that have left the playlist are a gap', async (t) => {
  t.deepEqual(await followed([playlist(0, 3), playlist(5, 7), playlist(7, 8, true)]), [0, 1, 2, 'gap of 2', 5, 6, 7]);
});

test('a packager that was started anew is followed from where it is', async (t) => {
  t.deepEqual(await followed([playlist(100, 103), playlist(0, 4), playlist(1, 5, true)]), [
    100,
    101,
    102,
    'anew',
    1,
    2,
    3,
    4,
  ]);
  // one that has counted further than its old playlist began is known after some loads
  const again = playlist(1, 6);
  t.deepEqual(await followed([playlist(4, 10), again, again, again, playlist(2, 7, true)]), [
    7,
    8,
    9,
    'anew',
    3,
    4,
    5,
    6,
  ]);
});

test('discontinuities are counted on where the playlist forgets those that have left it', async (t) => {
  const loads = [playlist(0, 3, false, [2]), playlist(2, 5, false, []), playlist(3, 7, true, [5])] as const;
  t.deepEqual(await followed(loads), [0, 1, 'discontinuity 1', 2, 3, 4, 'discontinuity 2', 5, 6]);
});

test('an older playlist of a cache changes nothing', async (t) => {
  t.deepEqual(await followed([playlist(4, 10), playlist(1, 7), playlist(4, 10), playlist(5, 11, true)]), [7, 8, 9, 10]);
});

test('a stream goes on behind the segment that it has got before', async (t) => {
  const after = { ...playlist(1, 2).segments[0], uri: new URL('http://a/1.ts?token=2') } as Segment;
  t.deepEqual(await followed([playlist(0, 10, true)], after), [2, 3, 4, 5, 6, 7, 8, 9]);
  t.deepEqual(await followed([playlist(5, 7, true)], after), [5, 6]);
  const other = { ...after, uri: new URL('http://a/other.ts') };
  t.is(startOf(playlist(0, 10), other), 7);
  t.is(startOf(playlist(0, 0)), 0);
  t.is(endOf(playlist(0, 0)), undefined);
});

test('a load that fails is made again, a few times', async (t) => {
  const broken = new PullError('the server answered with 503');
  t.deepEqual(await followed([playlist(0, 3), broken, broken, playlist(1, 4, true)]), [0, 1, 2, 3]);
  t.deepEqual(await followed([playlist(0, 3), broken, broken, broken, broken]), [0, 1, 2, broken.message]);
  t.deepEqual(await followed([playlist(0, 3), new TypeError('a fault')]), [0, 1, 2, 'a fault']);
});

test('nothing is followed after the signal', async (t) => {
  const stop = new AbortController();
  const seen: number[] = [];
  const load = async () => t.fail() as never;
  for await (const { sequence } of follow(playlist(0, 3), { load, signal: stop.signal, from: 0 })) {
    seen.push(sequence);
    if (sequence === 1) stop.abort();
  }
  t.deepEqual(seen, [0, 1]);
});

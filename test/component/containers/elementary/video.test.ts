import test from 'ava';
import { videoState } from '../../../../src/containers/elementary/video.ts';
import { demuxTs, encodeTs, PATTERN, X264 } from '../../../support/mpegts/ts-media.ts';

const REFRESH = 25;
const RATE = 25;

/** Pictures of an encoder that refreshes bit by bit; with each refresh parameter sets come. */
async function pictures(): Promise<Buffer[]> {
  const args = [...PATTERN, ...X264, '-x264-params', `intra-refresh=1:keyint=${REFRESH}:repeat-headers=1`];
  const { units } = demuxTs(await encodeTs(args, { seconds: 10 }));
  return [...units.values()].flat().map(({ data }) => data);
}

test('where no other key frames come, a gradual refresh is one after some seconds', async (t) => {
  const all = await pictures();
  const keys = (from: number): number[] => {
    const state = videoState('H264');
    return all.slice(from).flatMap((data, at) => (state.frame(data)?.key ? [at + from] : []));
  };
  const begun = keys(0);
  t.is(begun[0], 0);
  t.true((begun[1] ?? Infinity) > 4 * RATE);
  const joined = keys(10);
  t.true((joined[0] ?? Infinity) < 8 * RATE, `${joined[0]}`);
  t.true(joined.length >= 2);
  for (const [i, at] of joined.entries()) if (i > 0) t.is(at - (joined[i - 1] as number), REFRESH);
});

import test from 'ava';
import type { Variant } from '../../../../src/providers/hls-pull/playlist.ts';
import { ranked } from '../../../../src/providers/hls-pull/variants.ts';

const variant = (bandwidth: number, ...codecs: string[]): Variant => ({
  uri: new URL(`http://a/${bandwidth}`),
  bandwidth,
  codecs,
  audio: undefined,
});

test('variants are tried from the best on, and those without video last', (t) => {
  const variants = [
    variant(9, 'mp4a.40.2'),
    variant(1, 'avc1.4d401f', 'mp4a.40.2'),
    variant(3),
    variant(2, 'hvc1.1.6.L93.B0', 'ec-3', 'wvtt'),
    variant(8, 'dvh1.05.06', 'mp4a.40.2'),
  ];
  t.deepEqual(
    ranked(variants).map(({ bandwidth }) => bandwidth),
    [3, 2, 1, 9],
  );
});

test('a playlist without a variant that can be taken is rejected', (t) => {
  t.throws(() => ranked([variant(1, 'dvh1.05.06', 'mp4a.40.2'), variant(2, 'vvc1.1', 'dvh1.05.06')]), {
    name: 'PullError',
    message: 'the variants have codecs that are not supported: dvh1.05.06, vvc1.1',
  });
  t.throws(() => ranked([]), { message: 'the playlist has no variants' });
});

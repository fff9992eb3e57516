import test from 'ava';

const { offerTimeout } = (await import(new URL('../../../src/web/pages/whep.js', import.meta.url).href)) as {
  offerTimeout: (attempt: number) => number;
};

test('who comes back tries again soon, but waits long enough in the end for a server that is slow', (t) => {
  t.deepEqual([1, 2, 3, 4].map(offerTimeout), [2500, 2500, 2500, 2500]);
  t.deepEqual([5, 6, 100].map(offerTimeout), [10_000, 10_000, 10_000]);
  t.is(offerTimeout(0), 10_000, 'a stream that is starting is waited for');
});

import test from 'ava';

interface Terms {
  readonly timeoutMs: number;
  readonly pauses: readonly number[];
}
const { offerTerms } = (await import(new URL('../../../../src/web/pages/whep.js', import.meta.url).href)) as {
  offerTerms: (attempt: number) => Terms;
};

test('a returning viewer tries again soon, but waits long enough in the end for a slow server', (t) => {
  const timeouts = (...attempts: number[]) => attempts.map((attempt) => offerTerms(attempt).timeoutMs);
  t.deepEqual(timeouts(1, 2, 3, 4), [2500, 2500, 2500, 2500]);
  t.deepEqual(timeouts(5, 6, 100), [10_000, 10_000, 10_000]);
  t.deepEqual(timeouts(0), [10_000], 'a stream that is starting is waited for');
});

test('a returning viewer asks other nodes as well, and one that waits for a start does not', (t) => {
  t.deepEqual(offerTerms(0).pauses, []);
  t.true(offerTerms(1).pauses.length > 0);
});

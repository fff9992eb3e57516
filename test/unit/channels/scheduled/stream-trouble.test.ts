import test from 'ava';
import { StreamTrouble } from '../../../../src/channels/scheduled/stream-trouble.ts';

const TOLERANCE_MS = 500;

test('silence counts as trouble once it is longer than the channel tolerates, and ends with the first step that is not silent', (t) => {
  const trouble = new StreamTrouble();
  const isPresent = () => trouble.isPresent(0, TOLERANCE_MS);
  t.false(isPresent());
  trouble.step(true, 250);
  t.false(isPresent());
  trouble.step(true, 250);
  t.true(isPresent());
  trouble.forget();
  t.true(isPresent(), 'the item that has begun may fail in the same step');
  trouble.step(false, 4);
  t.false(isPresent());
});

test('trouble of the item on the air lasts for ten seconds, or until another one begins', (t) => {
  const trouble = new StreamTrouble();
  trouble.note(1000);
  t.true(trouble.isPresent(10_999, TOLERANCE_MS));
  t.false(trouble.isPresent(11_000, TOLERANCE_MS));
  trouble.note(20_000);
  trouble.forget();
  t.false(trouble.isPresent(20_000, TOLERANCE_MS));
});

import test from 'ava';
import { BitstreamError } from '../../../src/codecs/bits.ts';
import { placedError } from '../../support/runner/placed-error.ts';

test('an error without a stack becomes one that names a place', (t) => {
  const error = new BitstreamError('too short');
  const placed = placedError(error) as Error;
  t.is(placed.message, 'BitstreamError: too short');
  t.is(placed.cause, error);
  t.regex(placed.stack ?? '', /\n {4}at /);
});

test('any other reason stays what it is', (t) => {
  const error = new Error('with a stack');
  t.is(placedError(error), error);
  t.is(placedError(undefined), undefined);
});

import test from 'ava';
import { BitstreamError } from '../../../src/codecs/bits.ts';
import { placed } from '../../support/runner/placed-error.ts';

test('an error without a stack names a place', (t) => {
  const error = new BitstreamError('too short');
  t.is(placed(error), error);
  t.regex(error.stack ?? '', /^BitstreamError: too short\n {4}at /);
});

test('any other reason stays what it is', (t) => {
  const error = new Error('with a stack');
  const { stack } = error;
  t.is(placed(error), error);
  t.is(error.stack, stack);
  t.is(placed(undefined), undefined);
});

import test from 'ava';
import { userOf } from '../../../src/api/caller.ts';

test('of an access token nothing is told but its user', (t) => {
  for (const [token, user] of [
    ['kiln:secret', 'kiln'],
    ['kiln:se:cret', 'kiln'],
    ['secret', 'access token'],
    ['secret:', 'access token'],
    [':secret', 'access token'],
  ] as const) {
    t.is(userOf(token), user);
  }
});

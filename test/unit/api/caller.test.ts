import test from 'ava';
import { userOf } from '../../../src/api/caller.ts';

test('only the user of an access token is shown', (t) => {
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

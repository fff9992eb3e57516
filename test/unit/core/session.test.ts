import test from 'ava';
import { sessionId } from '../../../src/core/session.ts';

const idOf = (name: string) => sessionId(new URLSearchParams({ session: name }));

test('a viewer names its session, within what a URL of the management API can carry', (t) => {
  for (const name of ['a', 'a/b', '...', 'x'.repeat(128)]) t.is(idOf(name), name);
  for (const name of ['', '.', '..', 'a b', 'ü', 'x'.repeat(129)]) t.regex(idOf(name), /^[0-9a-f-]{36}$/, name);
});

import test from 'ava';
import { isStreamName } from '../../../src/core/names.ts';

test('a stream has a name that URLs, files and keys can carry', (t) => {
  for (const name of ['a', 'a b', '…', '日本', '\u{1f600}', 'x'.repeat(255)]) t.true(isStreamName(name), name);
  for (const name of ['', '.', '..', 'a/b', 'a?b', 'a#b', 'a:b', 'a\u0000', '\ud800', 'a\udc00b', 'x'.repeat(256)])
    t.false(isStreamName(name), JSON.stringify(name));
});

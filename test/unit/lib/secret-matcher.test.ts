import test from 'ava';
import { secretMatcher } from '../../../src/lib/secret-matcher.ts';

test('a secret secretMatcher itself alone, whatever its length', (t) => {
  for (const length of [0, 1, 40, 255, 256, 257, 5000]) {
    const secret = 'sé€cret'.repeat(1000).slice(0, length);
    const isSecret = secretMatcher(secret);
    t.true(isSecret(secret));
    const others = [
      `${secret}x`,
      `${secret}\0`,
      `${secret}${'\0'.repeat(256)}`,
      `x${secret}`,
      `${secret}${secret}x`,
      'x'.repeat(length + 1),
      ...(length === 0 ? [] : ['', secret.slice(1), secret.slice(0, -1), `${secret.slice(0, -1)}\0`]),
    ];
    for (const other of others) t.false(isSecret(other), `${length}: ${JSON.stringify(other.slice(0, 50))}`);
    t.true(isSecret(secret), 'nothing of the texts before is left');
  }
});

test('texts of the same bytes modulo 256 are others', (t) => {
  t.false(secretMatcher('AB')('\u0141\u0142'));
});

import test from 'ava';
import { SessionTokens } from '../../../../src/publishers/llhls/token.ts';

const KEY = Buffer.alloc(32, 1);

test('another node with the key takes a token and reads it', (t) => {
  const token = new SessionTokens(KEY, '#default#app/stream').issue(1_700_000_000_999);
  t.regex(token, /^[A-Za-z0-9_-]{40}$/);
  const claims = new SessionTokens(Buffer.from(KEY), '#default#app/stream').verify(token);
  t.is(claims?.issued, 1_700_000_000_000);
  t.regex(claims?.id ?? '', /^[A-Za-z0-9_-]{12}$/);
});

test('every token is another session', (t) => {
  const tokens = new SessionTokens(KEY, 's');
  const ids = Array.from({ length: 100 }, () => tokens.verify(tokens.issue())?.id);
  t.is(new Set(ids).size, 100);
});

test('another key, another stream, any changed character: refused', (t) => {
  const token = new SessionTokens(KEY, 's').issue();
  t.is(new SessionTokens(Buffer.alloc(32, 2), 's').verify(token), undefined);
  t.is(new SessionTokens(KEY, 't').verify(token), undefined);
  const tokens = new SessionTokens(KEY, 's');
  for (let at = 0; at < token.length; at++) {
    const changed = token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1);
    t.is(tokens.verify(changed), undefined);
  }
});

test('one spelling only', (t) => {
  const tokens = new SessionTokens(KEY, 's');
  let token = tokens.issue();
  while (!token.includes('-')) token = tokens.issue();
  t.is(tokens.verify(token.replace('-', '+')), undefined);
  t.is(tokens.verify(`${token}=`), undefined);
  t.is(tokens.verify(''), undefined);
  t.is(tokens.verify('x'.repeat(100_000)), undefined);
});

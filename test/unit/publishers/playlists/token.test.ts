import test from 'ava';
import { SessionTokens } from '../../../../src/publishers/playlists/token.ts';

const KEY = Buffer.alloc(32, 1);

test('another node with the key takes a token and reads it', (t) => {
  for (const id of ['1b4e28ba-2fa1-4d3b-883f-b9a761bde3fb', 'a', '/?#&=~'.padEnd(128, 'x')]) {
    const token = new SessionTokens(KEY, '#default#app/stream').issue(id, 1_700_000_000_999);
    t.regex(token, /^[A-Za-z0-9_-]{32,202}$/);
    const claims = new SessionTokens(Buffer.from(KEY), '#default#app/stream').verify(token);
    t.deepEqual(claims, { id, issued: 1_700_000_000_999 });
  }
});

test('another key, another stream, any changed character: refused', (t) => {
  const token = new SessionTokens(KEY, 's').issue('somebody');
  t.is(new SessionTokens(Buffer.alloc(32, 2), 's').verify(token), undefined);
  t.is(new SessionTokens(KEY, 't').verify(token), undefined);
  const tokens = new SessionTokens(KEY, 's');
  for (let at = 0; at < token.length; at++) {
    const changed = token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1);
    t.is(tokens.verify(changed), undefined);
  }
});

test('an id and a stream that read as one text alike are told apart', (t) => {
  const token = new SessionTokens(KEY, 'bc').issue('a', 1);
  t.truthy(new SessionTokens(KEY, 'bc').verify(token));
  const claims = Buffer.from(token, 'base64url');
  const forged = Buffer.concat([claims.subarray(0, 7), Buffer.from('b'), claims.subarray(7)]).toString('base64url');
  t.is(new SessionTokens(KEY, 'c').verify(forged), undefined);
});

test('one spelling only, and every length', (t) => {
  const tokens = new SessionTokens(KEY, 's');
  let token = tokens.issue('somebody');
  for (let time = 0; !token.includes('-'); time++) token = tokens.issue('somebody', time);
  t.truthy(tokens.verify(token));
  t.is(tokens.verify(token.replace('-', '+')), undefined);
  t.is(tokens.verify(`${token}=`), undefined);
  for (let length = 0; length < token.length; length++) t.is(tokens.verify(token.slice(0, length)), undefined);
  t.is(tokens.verify('x'.repeat(100_000)), undefined);
});

import test from 'ava';
import { claimsOf, SessionTokens, vhostOf, type SessionTerms } from '../../../../../src/publishers/hls/answer/token.ts';
import { seeded } from '../../../codecs/vectors.ts';

const KEY = Buffer.alloc(32, 1);
const FREE: SessionTerms = { guarded: false, home: undefined, openings: [] };
const BOUND: SessionTerms = {
  until: 1_700_000_060_000,
  guarded: true,
  vhost: 'überall',
  home: undefined,
  openings: [
    { id: 'one', vhost: 'default' },
    { id: 'two', vhost: 'other' },
  ],
};
const MAC_BYTES = 17;

test('a token is read by another node with the key', (t) => {
  for (const id of ['1b4e28ba-2fa1-4d3b-883f-b9a761bde3fb', 'a', '/?#&=~'.padEnd(128, 'x')]) {
    const token = new SessionTokens([KEY], '#default#app/stream').issue(id, FREE, 1_700_000_000_999);
    t.regex(token, /^[A-Za-z0-9_-]{32,203}$/);
    const claims = new SessionTokens([Buffer.from(KEY)], '#default#app/stream').verify(token);
    t.deepEqual(claims, { ...FREE, id, issued: 1_700_000_000_999, until: undefined, vhost: undefined });
  }
});

test('every combination of terms is read as it was written', (t) => {
  const tokens = new SessionTokens([KEY], 's');
  for (const until of [undefined, 0, BOUND.until, 2 ** 48 - 1])
    for (const guarded of [false, true])
      for (const vhost of [undefined, '', BOUND.vhost, 'x'.repeat(255)])
        for (const openings of [[], BOUND.openings.slice(0, 1), BOUND.openings]) {
          for (const home of [undefined, '', 'node-1', 'ü'.repeat(127)]) {
            const terms = { until, guarded, vhost, home, openings };
            const token = tokens.issue('somebody', terms, 7);
            t.deepEqual(tokens.verify(token), { ...terms, id: 'somebody', issued: 7 });
            t.is(vhostOf(token), vhost);
            t.like(claimsOf(token), { id: 'somebody', home });
          }
        }
});

test('a token that is revoked is refused, and a player that was admitted before is told apart', (t) => {
  const revoked = { version: 1, marks: '' };
  const source = {
    get version() {
      return revoked.version;
    },
    revokes: (marks: readonly string[]) => marks.includes(revoked.marks),
    count: () => {},
  };
  const tokens = new SessionTokens([KEY], 's', source);
  const marks = ['AAAAAAAAAAA', 'BBBBBBBBBBA'];
  const token = tokens.issue('me', { ...BOUND, marks }, 7);
  t.deepEqual(tokens.verify(token)?.marks, marks);
  t.deepEqual(tokens.verify(token)?.openings, BOUND.openings);
  const player = { token, checked: tokens.version };
  revoked.marks = 'BBBBBBBBBBA';
  t.false(tokens.isRevoked(player), 'nobody has said that there is news');
  revoked.version = 2;
  t.true(tokens.isRevoked(player));
  t.is(tokens.verify(token), undefined);
  revoked.marks = 'CCCCCCCCCCA';
  t.is(tokens.verify(token)?.id, 'me');
  const unmarked = tokens.issue('other', FREE, 7);
  t.is(tokens.verify(unmarked)?.marks, undefined);
});

test('the bytes of a token: flags, times, virtual host, openings, id', (t) => {
  const claims = (terms: SessionTerms) =>
    Buffer.from(new SessionTokens([KEY], 's').issue('me', terms, 0x0102), 'base64url')
      .subarray(0, -MAC_BYTES)
      .toString('hex');
  const hex = (text: string) => Buffer.from(text).toString('hex');
  t.is(claims(FREE), `00${'000000000102'}${hex('me')}`);
  t.is(claims({ ...FREE, guarded: true, until: 0x0304 }), `03${'000000000102'}${'000000000304'}${hex('me')}`);
  t.is(claims({ ...FREE, vhost: 'v' }), `80${'000000000102'}${'01'}${hex('v')}${hex('me')}`);
  t.is(
    claims({ ...FREE, vhost: 'v', home: 'n' }),
    `90${'000000000102'}${'01'}${hex('v')}${'01'}${hex('n')}${hex('me')}`,
  );
  const openings = [{ id: 'o', vhost: 'w' }];
  t.is(
    claims({ guarded: true, openings }),
    `05${'000000000102'}${'01'}${'01'}${hex('o')}${'01'}${hex('w')}${hex('me')}`,
  );
});

test('an end that no clock shows is the nearest that can be written', (t) => {
  const tokens = new SessionTokens([KEY], 's');
  const untilOf = (until: number) => tokens.verify(tokens.issue('a', { ...FREE, until }))?.until;
  t.is(untilOf(-1), 0);
  t.is(untilOf(1.9), 1);
  t.is(untilOf(Infinity), 2 ** 48 - 1);
});

test('a token fits into a path element; openings that do not are left out', (t) => {
  const tokens = new SessionTokens([KEY], 's');
  const openings = Array.from({ length: 20 }, (_, at) => ({ id: String(at).padEnd(64, 'o'), vhost: 'v'.repeat(100) }));
  const token = tokens.issue('x'.repeat(128), { until: 1, guarded: true, vhost: 'y'.repeat(255), openings });
  t.true(token.length <= 1024);
  t.deepEqual(tokens.verify(token)?.openings, openings.slice(0, 2));
  const many = openings.map(({ id }) => ({ id: id.slice(0, 4), vhost: 'v' }));
  t.deepEqual(tokens.verify(tokens.issue('a', { guarded: true, openings: many }))?.openings, many.slice(0, 8));
  t.throws(() => tokens.issue('a', { ...FREE, vhost: 'ü'.repeat(128) }), { instanceOf: RangeError });
});

test('a token of another key or stream, or with any changed character, is rejected', (t) => {
  for (const terms of [FREE, BOUND]) {
    const token = new SessionTokens([KEY], 's').issue('somebody', terms);
    t.is(new SessionTokens([Buffer.alloc(32, 2)], 's').verify(token), undefined);
    t.is(new SessionTokens([KEY], 't').verify(token), undefined);
    const tokens = new SessionTokens([KEY], 's');
    for (let at = 0; at < token.length; at++) {
      const changed = token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1);
      t.is(tokens.verify(changed), undefined);
    }
  }
});

test('an id and a stream that read as one text alike are distinguished', (t) => {
  const token = new SessionTokens([KEY], 'bc').issue('a', FREE, 1);
  t.truthy(new SessionTokens([KEY], 'bc').verify(token));
  const claims = Buffer.from(token, 'base64url');
  const forged = Buffer.concat([claims.subarray(0, 8), Buffer.from('b'), claims.subarray(8)]).toString('base64url');
  t.is(new SessionTokens([KEY], 'c').verify(forged), undefined);
});

test('a session token has one spelling only, and may have any length', (t) => {
  const tokens = new SessionTokens([KEY], 's');
  for (const terms of [FREE, BOUND]) {
    let token = tokens.issue('somebody', terms);
    for (let time = 0; !token.includes('-'); time++) token = tokens.issue('somebody', terms, time);
    t.truthy(tokens.verify(token));
    t.is(tokens.verify(token.replace('-', '+')), undefined);
    t.is(tokens.verify(`${token}=`), undefined);
    for (let length = 0; length < token.length; length++) {
      t.is(tokens.verify(token.slice(0, length)), undefined);
      t.notThrows(() => vhostOf(token.slice(0, length)));
    }
  }
  t.is(tokens.verify('x'.repeat(100_000)), undefined);
  t.is(vhostOf('x'.repeat(100_000)), undefined);
});

test('random texts, and tokens with random bytes in them, are refused', (t) => {
  const chance = seeded(1);
  const tokens = new SessionTokens([KEY], 's');
  const token = Buffer.from(tokens.issue('somebody', BOUND), 'base64url');
  for (let round = 0; round < 10_000; round++) {
    const bytes = Buffer.from(Array.from({ length: Math.floor(chance() * 120) }, () => Math.floor(chance() * 256)));
    const changed = Buffer.from(token);
    const at = Math.floor(chance() * changed.length);
    changed[at] = (changed[at] ?? 0) ^ (1 + Math.floor(chance() * 255));
    for (const text of [bytes.toString('base64url'), changed.toString('base64url'), bytes.toString('latin1')]) {
      t.is(tokens.verify(text), undefined);
      t.notThrows(() => vhostOf(text));
    }
  }
});

test('a route is the same for all, and no session', (t) => {
  const tokens = new SessionTokens([KEY], 's');
  const route = tokens.route('elsewhere');
  t.is(tokens.route('elsewhere'), route);
  t.is(vhostOf(route), 'elsewhere');
  t.true(tokens.isRoute(route));
  t.false(new SessionTokens([KEY], 't').isRoute(route));
  t.false(tokens.isRoute(tokens.issue('-', { ...FREE, vhost: 'elsewhere' })));
  t.false(tokens.isRoute('nothing'));
});

test('nodes take the tokens of each other while the key is changed', (t) => {
  const [old, present] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
  const before = new SessionTokens([old], 's');
  const between = new SessionTokens([present, old], 's');
  const after = new SessionTokens([present], 's');
  const long = {
    ...FREE,
    vhost: 'v'.repeat(255),
    openings: Array.from({ length: 8 }, () => ({ id: 'o'.repeat(100), vhost: 'v' })),
  };
  for (const terms of [FREE, long]) {
    const tokens = [before, between, after].map((keys) => keys.issue('me', terms));
    t.deepEqual(
      [before, between, after].map((keys) => tokens.map((token) => keys.verify(token)?.id === 'me')),
      [
        [true, true, false],
        [true, true, true],
        [false, true, true],
      ],
    );
    for (const token of tokens) t.true(token.length <= 1024);
    t.is(vhostOf(tokens[1] as string), terms.vhost);
  }
});

test('texts that claim two MACs and have none are no tokens', (t) => {
  const tokens = new SessionTokens([KEY], 's');
  for (let length = 1; length < 60; length++)
    t.is(tokens.verify(Buffer.alloc(length, 8).toString('base64url')), undefined);
});

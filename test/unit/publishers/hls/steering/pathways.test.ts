import test from 'ava';
import type { NodeRow } from '#cluster';
import { steeringManifest } from '../../../../../src/publishers/hls/steering/manifest.ts';
import { Pathways } from '../../../../../src/publishers/hls/steering/pathways.ts';

const row = (
  id: string,
  shape: Partial<NodeRow> = {},
  publicUrl: string | null = `https://${id}.example`,
): NodeRow => ({
  id,
  incarnation: 'x',
  load: 0.2,
  full: false,
  info: { addresses: { llhls: [] }, ...(publicUrl !== null && { publicUrl }) },
  address: undefined,
  state: 'ready',
  uptimeMs: 0,
  silentMs: 0,
  ...shape,
});

const of = (rows: readonly NodeRow[]): Pathways => new Pathways({ nodes: () => [...rows] }, 'llhls');
const PLAYER = { origin: 'https://live.example', isSecure: true, session: 's1' };
const ids = (rows: readonly NodeRow[], player: Partial<typeof PLAYER & { current: string }> = {}): string[] =>
  of(rows)
    .of({ ...PLAYER, ...player })
    .map(({ id }) => id);

test('nodes that take viewers come before the host that was asked', (t) => {
  const rows = [
    row('a'),
    row('full', { full: true }),
    row('draining', { state: 'draining' }),
    row('silent', { state: 'silent' }),
    row('inside', {}, null),
    row('plain', {}, 'http://plain.example'),
    row('other', { info: { addresses: { webrtc: [] }, publicUrl: 'https://other.example' } }),
  ];
  t.deepEqual(ids(rows), ['a', '.']);
  t.deepEqual(ids(rows, { isSecure: false }).sort(), ['.', 'a', 'plain']);
  t.deepEqual(ids([]), ['.']);
});

test('a player keeps its node while that has room', (t) => {
  const rows = ['a', 'b', 'c', 'd', 'e', 'f'].map((id) => row(id));
  const order = ids(rows);
  t.is(order.length, 5);
  for (const current of ['a', 'b', 'c', 'd', 'e', 'f']) t.is(ids(rows, { current })[0], current);
  t.is(ids([row('a', { full: true }), row('b')], { current: 'a' })[0], 'b');
  t.deepEqual(ids(rows, { current: '.' }), order);
  t.deepEqual(ids(rows, { current: '"' }), order);
});

test('sessions are spread in proportion to the room of the nodes', (t) => {
  const rows = [row('a', { load: 0.1 }), row('b', { load: 0.7 }), row('c', { load: 1 })];
  const counts: Record<string, number> = {};
  for (let session = 0; session < 4000; session++) {
    const [first = ''] = ids(rows, { session: `session ${session}` });
    counts[first] = (counts[first] ?? 0) + 1;
  }
  const { a = 0, b = 0, c = 0 } = counts;
  // 0.9, 0.3 and the least share of 0.05
  t.true(a > 2700 && a < 3050, `${a}`);
  t.true(b > 820 && b < 1100, `${b}`);
  t.true(c > 90 && c < 240, `${c}`);
});

test('a node that is asked itself has the pathway of the host', (t) => {
  const rows = [row('a'), row('b')];
  const player = { origin: 'https://a.example', current: '.' };
  t.deepEqual(ids(rows, player), ['.', 'b']);
  t.deepEqual(ids([row('a', { full: true }), row('b')], player), ['b', '.']);
});

test('what is no pathway id is replaced', (t) => {
  const [first] = of([row('node one', {}, 'https://one.example')]).of(PLAYER);
  t.regex(first?.id ?? '', /^[\w-]{16}$/);
});

test('pathways are offered where there is another host', (t) => {
  const offers = (rows: readonly NodeRow[], origin = PLAYER.origin, isSecure = true): boolean =>
    of(rows).areOffered({ origin, isSecure });
  t.true(offers([row('a', { full: true })]));
  t.false(offers([row('a', {}, null)]));
  t.false(offers([row('a')], 'https://a.example'));
  t.false(offers([row('a', {}, 'http://a.example')]));
  t.true(offers([row('a', {}, 'http://a.example')], 'http://live.example', false));
});

test('a manifest replaces the host alone where that suffices, and each URI for players with a session', (t) => {
  const children = { variants: { 'v.m3u8': '/app/s/t/v.m3u8' }, renditions: { 'a.m3u8': '/app/s/t/a.m3u8' } };
  const pathways = [
    { id: 'a', url: 'https://a.example' },
    { id: 'b', url: 'https://b.example:3334' },
    { id: '.', url: undefined },
  ];
  const at = (origin: string): object => ({
    'PER-VARIANT-URIS': { 'v.m3u8': `${origin}/app/s/t/v.m3u8` },
    'PER-RENDITION-URIS': { 'a.m3u8': `${origin}/app/s/t/a.m3u8` },
  });
  const clone = (ID: string, replacement: object): object => ({
    'BASE-ID': '.',
    ID,
    'URI-REPLACEMENT': replacement,
  });
  t.deepEqual<object, object>(steeringManifest(pathways, PLAYER.origin, children), {
    VERSION: 1,
    TTL: 30,
    'PATHWAY-PRIORITY': ['a', 'b', '.'],
    'PATHWAY-CLONES': [
      clone('a', { HOST: 'a.example', ...at('https://a.example') }),
      clone('b', at('https://b.example:3334')),
    ],
  });
  t.deepEqual<object, object>(steeringManifest(pathways, PLAYER.origin, undefined), {
    VERSION: 1,
    TTL: 30,
    'PATHWAY-PRIORITY': ['a', '.'],
    'PATHWAY-CLONES': [clone('a', { HOST: 'a.example' })],
  });
});

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
const PLAYER = { origin: 'https://live.example', isSecure: true, stream: '#default#app/live', session: 's1' };
const ids = (
  rows: readonly NodeRow[],
  player: Partial<typeof PLAYER & { current: string; owner: string }> = {},
): string[] =>
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

test('a player keeps its node until that leaves, and a full one gets no other', (t) => {
  const rows = ['a', 'b', 'c', 'd', 'e', 'f'].map((id) => row(id));
  const order = ids(rows);
  t.is(order.length, 5);
  for (const current of ['a', 'b', 'c', 'd', 'e', 'f']) t.is(ids(rows, { current })[0], current);
  t.deepEqual(ids([row('a', { full: true }), row('b')], { current: 'a' }), ['a', 'b', '.']);
  t.deepEqual(ids([row('a', { full: true }), row('b')]), ['b', '.']);
  t.deepEqual(ids([row('a', { full: true }), row('b', { full: true })], { current: 'b' }), ['b', '.']);
  for (const state of ['draining', 'silent', 'lost'] as const)
    t.deepEqual(ids([row('a', { state }), row('b')], { current: 'a' }), ['b', '.']);
  t.deepEqual(ids(rows, { current: '.' }), order);
  t.deepEqual(ids(rows, { current: '"' }), order);
});

test('players of one stream go to two nodes, the one that has it among them', (t) => {
  const rows = ['a', 'b', 'c', 'd', 'e', 'f'].map((id) => row(id));
  const firsts = (player: Partial<typeof PLAYER & { owner: string }>): Set<string | undefined> =>
    new Set(Array.from({ length: 200 }, (_, n) => ids(rows, { ...player, session: `session ${n}` })[0]));
  for (const owner of ['a', 'f']) {
    const chosen = firsts({ owner });
    t.is(chosen.size, 2);
    t.true(chosen.has(owner));
  }
  const others = Array.from({ length: 20 }, (_, n) => [...firsts({ stream: `stream ${n}` })]);
  t.true(others.every(({ length }) => length === 2));
  t.is(new Set(others.flat()).size, 6, 'streams are spread over all nodes');
});

test('sessions are spread in proportion to the room of the nodes', (t) => {
  const shareOf = (loads: readonly number[]): number[] => {
    const rows = loads.map((load, at) => row(`${at}`, { load }));
    const counts = loads.map(() => 0);
    for (let session = 0; session < 4000; session++)
      counts[Number(ids(rows, { session: `session ${session}` })[0])]! += 1;
    return counts.map((count) => count / 4000);
  };
  const [idle = 0] = shareOf([0.1, 0.7]);
  t.true(Math.abs(idle - 0.75) < 0.04, `${idle}`);
  const [, busy = 0] = shareOf([0.05, 1]);
  t.true(Math.abs(busy - 0.05) < 0.02, `${busy}`);
});

test('a node that is asked itself has the pathway of the host', (t) => {
  const rows = [row('a'), row('b')];
  const player = { origin: 'https://a.example', current: '.' };
  t.deepEqual(ids(rows, player), ['.', 'b']);
  t.deepEqual(ids([row('a', { full: true }), row('b')], player), ['.', 'b']);
  t.deepEqual(ids([row('a', { state: 'draining' }), row('b')], player), ['b', '.']);
  t.deepEqual(ids(rows, { ...player, origin: 'http://a.example' }), ['.', 'b'], 'a proxy takes TLS away');
});

test('what is no pathway id is replaced', (t) => {
  const [first] = of([row('node one', {}, 'https://one.example')]).of(PLAYER);
  t.regex(first?.id ?? '', /^[\w-]{16}$/);
});

test('pathways are offered where several nodes have a URL', (t) => {
  const offers = (rows: readonly NodeRow[], origin = PLAYER.origin, isSecure = true): boolean =>
    of(rows).areOffered({ origin, isSecure });
  t.true(offers([row('a', { full: true }), row('b')]));
  t.true(offers([row('a'), row('b')], 'https://a.example'));
  t.false(offers([row('a')]), 'one node is not more than the balancer');
  t.false(offers([row('a'), row('b', {}, null)]));
  t.false(offers([row('a', {}, 'http://a.example'), row('b', {}, 'http://b.example')]));
  t.true(offers([row('a', {}, 'http://a.example'), row('b', {}, 'http://b.example')], 'http://live.example', false));
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
    TTL: 15,
    'PATHWAY-PRIORITY': ['a', 'b', '.'],
    'PATHWAY-CLONES': [
      clone('a', { HOST: 'a.example', ...at('https://a.example') }),
      clone('b', at('https://b.example:3334')),
    ],
  });
  t.deepEqual<object, object>(steeringManifest(pathways, PLAYER.origin, undefined), {
    VERSION: 1,
    TTL: 15,
    'PATHWAY-PRIORITY': ['a', '.'],
    'PATHWAY-CLONES': [clone('a', { HOST: 'a.example' })],
  });
});

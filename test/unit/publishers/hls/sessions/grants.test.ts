import { mock } from 'node:test';
import test, { type ExecutionContext } from 'ava';
import { openLlhls, type LlhlsSetup } from '../../../../support/hls/llhls.ts';
import { feeder } from '../../../../support/hls/llhls-nodes.ts';
import { GUARDED, NotedSessions } from '../../../../support/access/noted-sessions.ts';
import { audioTrack, videoTrack } from '../../../../support/media/packets.ts';
import { until } from '../../../../support/time/until.ts';
import { virtualTime } from '../../../../support/time/virtual-time.ts';

const MASTER = '/app/stream/llhls.m3u8';
const TRACKS = [videoTrack(), audioTrack()];
const OVER = 'its allowed time is over';
const SILENT = 'the player asks for nothing any more';

/** A server whose viewers are guarded. */
async function open(t: ExecutionContext, setup: LlhlsSetup = {}) {
  const openings = new NotedSessions('a');
  const llhls = { segmentDuration: 0.5, chunkDuration: 0.25, ...setup.llhls };
  const access = { guards: [openings.guard], webhookSessions: openings };
  return { ...(await openLlhls(t, { vhost: GUARDED, ...setup, access, llhls })), openings };
}

/** The same with a stream that can be played. */
async function live(t: ExecutionContext, setup?: LlhlsSetup) {
  const server = await open(t, setup);
  const { input, output } = server.goLive(TRACKS);
  feeder(output)(3.1);
  return { ...server, input, output };
}

/** Stops the clock, and returns a function that lets milliseconds pass on it. */
function clock(t: ExecutionContext): (ms: number) => void {
  mock.timers.enable({ apis: ['Date'], now: Date.now() });
  t.teardown(() => mock.timers.reset());
  return (ms) => mock.timers.setTime(Date.now() + ms);
}

const sibling = (url: string, name: string) => `${url.slice(0, url.lastIndexOf('/'))}/${name}`;
const forged = (url: string) =>
  url.replace(/^(\/app\/stream\/.{20})(.)/, (_, start: string, char: string) => start + (char === 'A' ? 'B' : 'A'));

test('guarded: what a master playlist names is served with its token, and refused without', async (t) => {
  const { get, children, output } = await live(t);
  for (const url of await children()) {
    const { statusCode, body } = await get(url);
    t.is(statusCode, 200);
    const [, init = ''] = /MAP:URI="([^"]+)"/.exec(body) ?? [];
    t.is((await get(sibling(url, init))).statusCode, 200);
    const bare = `/app/stream/${url.slice(url.lastIndexOf('/') + 1)}`;
    t.like(await get(bare), { statusCode: 401, body: '' });
    t.is((await get(`/app/stream/${init}`)).statusCode, 401);
    t.like(await get(forged(url)), { statusCode: 401, body: '' });
  }
  t.is(output.sessions.size, 1);
});

test('only a client with a token learns that a guarded stream does not exist', async (t) => {
  const { get, children, input } = await live(t);
  const [url = ''] = await children();
  t.is((await get('/app/other/chunklist_0_video_abcdefgh_llhls.m3u8')).statusCode, 401);
  t.is((await get(url.replace('/app/stream/', '/app/other/'))).statusCode, 401);
  input.end('deleted');
  t.is((await get(url)).statusCode, 404);
  t.is((await get(forged(url))).statusCode, 401);
});

test('guarded: a token from before access control was configured is refused', async (t) => {
  const before = await openLlhls(t, { llhls: { segmentDuration: 0.5 } });
  feeder(before.goLive(TRACKS).output)(3.1);
  const [url = ''] = await before.children();
  const { get, openings } = await live(t);
  t.is((await before.get(url)).statusCode, 200);
  t.is((await get(url)).statusCode, 401);
  t.is(openings.opened, 0);
});

test('a player that falls silent: its opening is closed once, and its token is not good any more', async (t) => {
  const { get, children, openings, output } = await live(t);
  const [url = ''] = await children();
  t.is((await get(url)).statusCode, 200);
  await until('it has been silent', () => output.sessions.size === 0);
  t.deepEqual(openings.events, [`close a1: ${SILENT}`]);
  t.like(await get(url), { statusCode: 401, body: '' });
  t.is(output.sessions.size, 0);
  t.is((await get((await children())[0] ?? '')).statusCode, 200);
  output.input.end('deleted');
  t.deepEqual(openings.closed, [`a1: ${SILENT}`, 'a2: deleted']);
});

test('a player that is thrown out: its opening is closed once', async (t) => {
  const { get, children, openings, output } = await live(t);
  const [url = ''] = await children();
  for (const session of output.sessions.values()) session.kick();
  t.deepEqual(openings.closed, ['a1: the session was ended by the server']);
  t.is((await get(url)).statusCode, 401);
  output.input.end('deleted');
  t.is(openings.closed.length, 1);
});

test.serial('time that is over: 403 for the next request, the player leaves, its opening is closed', async (t) => {
  const { get, children, openings, output } = await live(t);
  const pass = clock(t);
  openings.lifetime = 60_000;
  const [url = ''] = await children();
  t.is((await get(url)).statusCode, 200);
  pass(60_000);
  t.is((await get(url)).statusCode, 403);
  t.is(output.sessions.size, 0);
  t.is(output.counters.publishers.llhls, 0);
  t.deepEqual(openings.closed, [`a1: ${OVER}`]);
  t.is((await get(url)).statusCode, 403);
  t.is(output.sessions.size, 0);
  t.is(openings.closed.length, 1);
});

test.serial('time that is over ends a player that asks for nothing, too', async (t) => {
  const { children, openings, output } = await live(t, { llhls: { segmentDuration: 60 } });
  const pass = clock(t);
  openings.lifetime = 1000;
  await children();
  t.is(output.sessions.size, 1);
  pass(1000);
  await until('its time is over', () => output.sessions.size === 0);
  t.deepEqual(openings.closed, [`a1: ${OVER}`]);
});

test.serial('one of two openings of a session may end before the other', async (t) => {
  const { get, children, openings, output } = await live(t, { llhls: { segmentDuration: 60 } });
  const pass = clock(t);
  const named = `${MASTER}?session=me`;
  openings.lifetime = 1000;
  const [first = ''] = await children(named);
  openings.lifetime = undefined;
  pass(1);
  const [second = ''] = await children(named);
  pass(999);
  t.is((await get(first)).statusCode, 403);
  t.deepEqual(openings.closed, [`a1: ${OVER}`]);
  t.is((await get(second)).statusCode, 200);
  t.deepEqual([...output.sessions.keys()], ['me']);
  output.input.end('deleted');
  t.deepEqual(openings.closed, [`a1: ${OVER}`, 'a2: deleted']);
});

test('a session that loads its master playlist again has two openings, each of which is closed once', async (t) => {
  const { get, children, openings, output } = await live(t);
  const named = `${MASTER}?session=me`;
  const [first = ''] = await children(named);
  const asked = Date.now();
  await until('the clock goes on', () => Date.now() > asked);
  const [second = ''] = await children(named);
  for (const url of [first, second]) t.is((await get(url)).statusCode, 200);
  t.is(output.sessions.size, 1);
  t.deepEqual(openings.events, []);
  await until('it has been silent', () => output.sessions.size === 0);
  t.deepEqual(openings.closed, [`a1: ${SILENT}`, `a2: ${SILENT}`]);
  for (const url of [first, second]) t.is((await get(url)).statusCode, 401);
});

test.serial(
  'HEAD, a stream that has not started, and one that is refused: what was opened is closed at once',
  async (t) => {
    virtualTime(t);
    const { app, get, openings, goLive } = await open(t, { llhls: { maxConnection: 1 } });
    const { output } = goLive(TRACKS);
    t.is((await get(MASTER)).statusCode, 201);
    t.deepEqual(openings.closed, ['a1: the stream has not started']);
    feeder(output)(3.1);
    t.is((await app.inject({ method: 'HEAD', url: MASTER })).statusCode, 200);
    t.deepEqual(openings.closed.slice(1), ['a2: the playlist itself was not asked for']);
    t.is((await get('/app/stream/nothing.m3u8')).statusCode, 404);
    t.deepEqual(openings.closed.slice(2), ['a3: Could not find the file']);
    t.is(output.sessions.size, 0);
    t.is((await get(MASTER)).statusCode, 200);
    t.is((await get(MASTER)).statusCode, 503);
    t.deepEqual(openings.closed.slice(3), ['a5: Too many connections: at most 1 are allowed']);
    t.is(output.sessions.size, 1);
    t.is(openings.opened, 5);
  },
);

test('a name that was thrown out is refused again, and what was opened for it closed', async (t) => {
  const { get, children, openings, output, lines } = await live(t);
  await children(`${MASTER}?session=me`);
  output.sessions.get('me')?.kick();
  t.is((await get(`${MASTER}?session=me`)).statusCode, 401);
  t.is(openings.closed.length, 2);
  t.is(output.sessions.size, 0);
  t.true(
    lines.some(({ msg }) => String(msg).includes('The session in this URL')),
    'it is logged',
  );
});

test('too many openings for one session close the oldest', async (t) => {
  const { children, openings, output } = await live(t);
  for (let load = 0; load < 10; load++) await children(`${MASTER}?session=me`);
  t.deepEqual(
    openings.closed.map((line) => line.slice(0, 3)),
    ['a1:', 'a2:'],
  );
  output.input.end('deleted');
  t.is(openings.closed.length, 10);
  t.is(new Set(openings.closed.map((line) => line.split(':')[0])).size, 10);
});

test('a server that stops closes what is open', async (t) => {
  const { children, openings, publisher } = await live(t);
  await children();
  await publisher.close();
  await publisher.close();
  t.deepEqual(openings.closed, ['a1: the application or the server has closed']);
});

test('OriginMode, guarded: the master playlist is checked, its children are open, and no opening lasts', async (t) => {
  const { get, children, openings, output } = await live(t, { llhls: { originMode: true } });
  const urls = await children();
  t.deepEqual(openings.closed, ['a1: there are no sessions in OriginMode']);
  for (const url of urls) t.is((await get(url)).statusCode, 200);
  t.is(output.sessions.size, 0);
});

import { mock } from 'node:test';
import test, { type ExecutionContext } from 'ava';
import { OutcomeUnknownError, UnreachableError } from '#cluster';
import { KilnError } from '../../../../../src/errors.ts';
import type { LlhlsSetup } from '../../../../support/hls/llhls.ts';
import { feeder, openLlhlsNode, untilKnown, type LlhlsNode } from '../../../../support/hls/llhls-nodes.ts';
import { MemoryCluster } from '../../../../support/memory-cluster/cluster.ts';
import { GUARDED, NotedSessions } from '../../../../support/access/noted-sessions.ts';
import { audioTrack, videoTrack } from '../../../../support/media/packets.ts';
import { inPlace } from '../../../../support/hls/playlist-uris.ts';
import { until } from '../../../../support/time/until.ts';
import { virtualTime } from '../../../../support/time/virtual-time.ts';

const MASTER = '/app/stream/llhls.m3u8';
const NAMED = `${MASTER}?session=me`;
const TRACKS = [videoTrack(), audioTrack()];
const SILENT = 'the player asks for nothing any more';

/** Nodes whose viewers are guarded. */
async function open(t: ExecutionContext, setup: LlhlsSetup = {}) {
  virtualTime(t);
  const nodes = MemoryCluster.create(t, 1);
  const openOne = async (id: string) => {
    const openings = new NotedSessions(id);
    const llhls = { segmentDuration: 0.5, chunkDuration: 0.25, ...setup.llhls };
    const access = { guards: [openings.guard], webhookSessions: openings };
    return { ...(await openLlhlsNode(t, nodes, id, { vhost: GUARDED, ...setup, llhls, access })), openings };
  };
  const [a, b, c] = await Promise.all([openOne('a'), openOne('b'), openOne('c')]);
  return { a, b, c };
}

/** The same with a stream of node `a`. */
async function live(t: ExecutionContext, setup?: LlhlsSetup) {
  const { a, b, c } = await open(t, setup);
  const { input, output } = await a.goLive(TRACKS);
  for (const node of [b, c]) await untilKnown(node, a);
  feeder(output)(3.1);
  return { a, b, c, input, output };
}

/** A publisher tries until the name is free. */
async function publishAgain(node: LlhlsNode) {
  const published = await until('the name is free', () =>
    node.goLive(TRACKS).catch((error: unknown) => {
      if (error instanceof KilnError && error.code === 'streamExists') return undefined;
      throw error;
    }),
  );
  feeder(published.output)(3.1);
  return published;
}

/** A player that goes on until the function that it returns is called. */
function playing(t: ExecutionContext, nodes: readonly LlhlsNode[], url: string): () => void {
  const stop = new AbortController();
  t.teardown(() => stop.abort());
  const play = async (): Promise<void> => {
    for (let turn = 0; !stop.signal.aborted; turn++) {
      await nodes[turn % nodes.length]?.get(url);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  };
  void play();
  return () => stop.abort();
}

test('children are covered on every node, and refused without a token', async (t) => {
  const { a, b, c, output } = await live(t);
  for (const url of await b.children()) {
    for (const node of [a, b, c]) {
      t.is((await node.get(url)).statusCode, 200);
      t.like(await node.get(`/app/stream/${url.slice(url.lastIndexOf('/') + 1)}`), { statusCode: 401, body: '' });
    }
  }
  t.is(output.sessions.size, 1);
});

test('the owner of the stream takes the opening over, and closes it when the player falls silent', async (t) => {
  const { a, b, output } = await live(t);
  const [url = ''] = await b.children();
  t.is(output.sessions.size, 1, 'at once');
  t.deepEqual(a.openings.events, ['adopt b1 of default']);
  t.is((await b.get(url)).statusCode, 200);
  await until('it has been silent', () => output.sessions.size === 0);
  t.deepEqual(a.openings.closed, [`b1: ${SILENT}`]);
  t.deepEqual(b.openings.events, []);
  await until('its token is not good any more', async () => (await b.get(url)).statusCode === 401);
  t.is((await a.get(url)).statusCode, 401);
  t.is(output.sessions.size, 0);
});

test('a player of another node that is thrown out, and one whose stream ends for good', async (t) => {
  const { a, b, input, output } = await live(t);
  await b.children(NAMED);
  await b.children();
  output.sessions.get('me')?.kick();
  t.deepEqual(a.openings.closed, ['b1: the session was ended by the server']);
  input.end('deleted');
  t.deepEqual(a.openings.closed.slice(1), ['b2: deleted']);
  t.deepEqual(b.openings.events, []);
});

test('one session on two nodes has as many openings as it loaded master playlists', async (t) => {
  const { a, b, c, output } = await live(t);
  for (const node of [a, b, c]) await node.children(NAMED);
  t.is(output.sessions.size, 1);
  await until('it has been silent', () => output.sessions.size === 0);
  t.deepEqual(
    a.openings.closed,
    ['a1', 'b1', 'c1'].map((id) => `${id}: ${SILENT}`),
  );
  for (const { openings } of [b, c]) t.deepEqual(openings.events, []);
});

test.serial('time that is over is known to every node, without a call', async (t) => {
  const { a, b, c, output } = await live(t);
  // the start of a stream is awaited, by the clock
  t.is((await a.get((await a.children())[0] ?? '')).statusCode, 200);
  mock.timers.enable({ apis: ['Date'], now: Date.now() });
  t.teardown(() => mock.timers.reset());
  b.openings.lifetime = 60_000;
  const [url = ''] = await b.children(NAMED);
  for (const node of [a, b]) t.is((await node.get(url)).statusCode, 200);
  t.true(output.sessions.has('me'));
  mock.timers.setTime(Date.now() + 60_000);
  const asked = [...b.asked, ...c.asked].length;
  for (const node of [b, c]) t.is((await node.get(url)).statusCode, 403);
  t.is([...b.asked, ...c.asked].length, asked);
  t.is((await a.get(url)).statusCode, 403);
  await until('it has left', () => a.openings.closed.includes('b1: its allowed time is over'));
  t.false(output.sessions.has('me'));
});

test('a player whom the owner does not begin with: what it had adopted is closed there at once', async (t) => {
  const { a, b, output } = await live(t);
  b.openings.lifetime = 0;
  t.is((await b.get(MASTER)).statusCode, 403);
  t.is(output.sessions.size, 0);
  t.is(a.openings.closed.length, 1);
  t.regex(a.openings.closed[0] ?? '', /^b1: /);
});

test('an owner that cannot be reached: the node that was asked closes the opening, and the viewer gets 503', async (t) => {
  const { a, b } = await live(t);
  t.is((await b.get(MASTER)).statusCode, 200);
  const { forward } = b.cluster;
  b.cluster.forward = () => Promise.reject(new UnreachableError('the cable was pulled'));
  t.is((await b.get(MASTER)).statusCode, 503);
  t.deepEqual(b.openings.events, ['adopt b2 of default', 'close b2: The stream is interrupted']);
  b.cluster.forward = forward;
  t.false(a.openings.events.some((event) => event.includes('b2')));
});

test('an owner that takes the opening and does not answer: it is closed by the node that was asked, too', async (t) => {
  const { a, b } = await live(t);
  const forward = b.cluster.forward;
  b.cluster.forward = async (to, request, timeoutMs) => {
    const answer = await forward(to, request, timeoutMs);
    if (request.path.includes('/master')) throw new OutcomeUnknownError('the cable was pulled');
    return answer;
  };
  t.is((await b.get(MASTER)).statusCode, 503);
  t.deepEqual(b.openings.closed, ['b1: The stream is interrupted']);
  await until('the owner hears nothing of it', () => a.openings.closed.length > 0);
  t.deepEqual(a.openings.closed, [`b1: ${SILENT}`]);
});

test('HEAD, a stream that has not started, a file that is not there: nothing is handed over', async (t) => {
  const { a, b } = await open(t);
  const { output } = await a.goLive(TRACKS);
  await untilKnown(b, a);
  t.is((await b.get(MASTER)).statusCode, 201);
  feeder(output)(3.1);
  for (const url of [MASTER, NAMED]) t.is((await b.app.inject({ method: 'HEAD', url })).statusCode, 200);
  t.is((await b.get('/app/stream/nothing.m3u8')).statusCode, 404);
  t.deepEqual(b.openings.closed, [
    'b1: the stream has not started',
    'b2: the playlist itself was not asked for',
    'b3: the playlist itself was not asked for',
    'b4: Could not find the file',
  ]);
  t.deepEqual(a.openings.events, []);
  t.is(output.sessions.size, 0);
});

test('a publisher that returns to the same node: no opening ends in between, and each ends once', async (t) => {
  const { a, b, input, output } = await live(t);
  const [url = ''] = await b.children(NAMED);
  const stop = playing(t, [a, b], url);
  input.close('the connection was lost');
  t.is(output.sessions.size, 0);
  const next = await publishAgain(a);
  await until('it is counted again', () => next.output.sessions.has('me'));
  t.deepEqual(a.openings.events, ['adopt b1 of default']);
  stop();
  await until('it has been silent', () => next.output.sessions.size === 0);
  t.deepEqual(a.openings.closed, [`b1: ${SILENT}`]);
  t.deepEqual(b.openings.events, []);
});

test('a player that leaves while the publisher is away: its opening is closed', async (t) => {
  const { a, b, input } = await live(t);
  await b.children(NAMED);
  input.close('the connection was lost');
  await until('it has been silent', () => a.openings.closed.length > 0);
  t.deepEqual(a.openings.closed, [`b1: ${SILENT}`]);
});

test('a publisher that returns to another node: that one goes on with the openings', async (t) => {
  const { a, b, c, input } = await live(t, { llhls: { segmentDuration: 2 } });
  const [url = ''] = await b.children(NAMED);
  await b.children();
  input.close('the connection was lost');
  const { output } = await publishAgain(c);
  await untilKnown(a, c);
  await until('it has them', () => c.openings.events.length === 2);
  t.deepEqual(c.openings.events, ['resume b1 of default', 'resume b2 of default']);
  await until('the player is counted there', async () => {
    await b.get(url);
    return output.sessions.has('me');
  });
  t.is(c.openings.events.length, 2, 'once');
  output.input.end('deleted');
  t.deepEqual(c.openings.closed, ['b1: deleted', 'b2: deleted']);
  t.deepEqual(a.openings.closed, []);
});

test('a player whose node has died: the one that goes on with the stream takes its opening from its token', async (t) => {
  const { a, b, c, input } = await live(t);
  const [url = ''] = await b.children(NAMED);
  // as dead as a node in this process can be: it tells nobody of anything
  a.cluster.forward = () => Promise.reject(new UnreachableError('it is dead'));
  await a.publisher.close();
  a.openings.events.length = 0;
  input.close('it is dead');
  const { output } = await publishAgain(c);
  await untilKnown(b, c);
  await until('the player is counted there', async () => {
    await b.get(url);
    return output.sessions.has('me');
  });
  t.deepEqual(c.openings.events, ['resume b1 of default']);
  output.input.end('deleted');
  t.deepEqual(c.openings.closed, ['b1: deleted']);
});

test('sessions that the next owner does not take are ended by the one before', async (t) => {
  const { a, b, c, input } = await live(t);
  await b.children(NAMED);
  const forward = a.cluster.forward;
  a.cluster.forward = (to, request, timeoutMs) =>
    request.path.includes('/sessions')
      ? Promise.reject(new UnreachableError('pulled'))
      : forward(to, request, timeoutMs);
  input.close('the connection was lost');
  await publishAgain(c);
  await until('they are ended', () => a.openings.closed.length > 0);
  t.deepEqual(a.openings.closed, ['b1: the node that goes on with the stream did not take over the session']);
  t.deepEqual(c.openings.closed, []);
});

test('a guard sends a viewer to a stream of another virtual host: its children are there, on every node', async (t) => {
  for (const stream of ['stream', 'another']) {
    const { a, b, c } = await open(t, {
      vhost: { ...GUARDED, host: { names: ['localhost'] } },
      vhosts: { other: GUARDED },
    });
    const { output } = await a.goLive(TRACKS, stream, false, 'other');
    const other = b.registry.vhost('other').application('app');
    await until('it is known', () => b.directory.known(other, stream));
    feeder(output)(3.1);
    for (const node of [a, b]) {
      node.openings.target = { hostName: 'other.example', stream };
      const headers = { host: 'localhost' };
      const { statusCode, body } = await node.get(MASTER, headers);
      t.is(statusCode, 200);
      const uris = [...body.matchAll(/URI="([^"]+)"|^([^#\n].*)$/gm)].map(([, quoted, line]) => quoted ?? line ?? '');
      t.is(uris.length, 2);
      for (const uri of uris) {
        const { pathname } = new URL(uri, `http://localhost${MASTER}`);
        for (const asked of [a, b, c]) t.is((await asked.get(pathname, headers)).statusCode, 200, pathname);
        t.is((await a.get(pathname.replace(/\/([\w-]{40})(.)/, '/$1_'), headers)).statusCode, 401, 'a forged one');
      }
    }
    t.is(output.sessions.size, 2);
    output.input.end('deleted');
    t.deepEqual(a.openings.closed, ['a1: deleted', 'b1: deleted']);
    t.true(a.openings.events.includes('adopt b1 of default'));
  }
});

test('a guard sends a viewer to another virtual host in OriginMode: a route that is the same for all leads there', async (t) => {
  const setup = {
    vhost: { ...GUARDED, host: { names: ['localhost'] } },
    vhosts: { other: {} },
    llhls: { originMode: true },
  };
  const { a, b, c } = await open(t, setup);
  const { output } = await a.goLive(TRACKS, 'stream', false, 'other');
  const other = b.registry.vhost('other').application('app');
  await until('it is known', () => b.directory.known(other, 'stream'));
  feeder(output)(3.1);
  const headers = { host: 'localhost' };
  for (const node of [a, b]) node.openings.target = { hostName: 'other.example' };
  const [one, two] = await Promise.all([a, b].map((node) => node.get(MASTER, headers)));
  t.is(one?.body, two?.body);
  const uri = inPlace(/URI="([^"]+)"/.exec(one?.body ?? '')?.[1] ?? '', MASTER);
  for (const node of [a, b, c]) t.is((await node.get(uri, headers)).statusCode, 200);
  t.is((await a.get(uri.replace(/stream\/(.{9})./, 'stream/$1_'), headers)).statusCode, 401);
});

import assert from 'node:assert/strict';
import { get } from 'node:http';
import { text as whole } from 'node:stream/consumers';
import test, { type ExecutionContext } from 'ava';
import { signUrl, type PolicyFields } from '../../src/access/policy/sign.ts';
import { aac } from '../support/media/aac.ts';
import { admissionsXml, startAdmissions, type Admissions } from '../support/access/admissions.ts';
import { BEHIND_BALANCER, startBalancer } from '../support/network/balancer.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { urisOf } from '../support/hls/playlist-uris.ts';
import { long } from '../support/runner/long.ts';
import { MediaPublisher } from '../support/media/media-publisher.ts';
import { shared } from '../support/runner/shared.ts';
import { startNode, untilStates, usedRedis } from '../support/server/nodes.ts';
import { Teardown } from '../support/programs/teardown.ts';
import { RtmpClient } from '../support/rtmp/rtmp-client.ts';
import { SrtCaller } from '../support/srt/caller.ts';
import { until, untilWorks } from '../support/time/until.ts';
import { ViewerPeer } from '../support/webrtc/viewer-peer.ts';
import { h264 } from '../support/webrtc/webrtc-media.ts';

const SIGNING = {
  policyQueryKeyName: 'policy',
  signatureQueryKeyName: 'signature',
  secretKey: 'of these nodes',
  algorithm: 'sha1',
} as const;
const SIGNED_POLICY =
  '<SignedPolicy><PolicyQueryKeyName>policy</PolicyQueryKeyName><SignatureQueryKeyName>signature</SignatureQueryKeyName>' +
  `<SecretKey>${SIGNING.secretKey}</SecretKey><Enables><Publishers>llhls</Publishers></Enables></SignedPolicy>`;
const LLHLS = '<SegmentDuration>1</SegmentDuration><SegmentCount>5</SegmentCount><ChunkDuration>0.5</ChunkDuration>';
const HOUR = 3_600_000;
/** Of this machine, and none that the nodes believe about who its clients are. */
const FROM = { localAddress: '127.0.0.5' };
/** Calls through the balancer, which sends each to another node. */
const CALLS = 6;

const SECONDS = 3.2;
const scene = {
  video: await h264({ width: 160, height: 90, fps: 15, gop: 16, seconds: SECONDS, kbit: 100 }),
  audio: await aac(440, {}, SECONDS),
};

type WithTeardown = Pick<ExecutionContext, 'teardown'>;

/** Three nodes, with a control server that allows everybody but `refused`. */
async function start(t: WithTeardown) {
  const control = await startAdmissions(t, ({ url }) => ({ allowed: !url.includes('who=refused') }));
  const redis = await usedRedis(t);
  const options = {
    vhost: SIGNED_POLICY + admissionsXml(control),
    hostName: '127.0.0.1',
    modules: BEHIND_BALANCER,
    llhls: LLHLS,
    srt: {},
    nodeXml: '<DrainTimeout>3000</DrainTimeout>',
  };
  const nodes = (await Promise.all(['a', 'b', 'c'].map((id) => startNode(t, redis, id, options)))) as [
    Kiln,
    Kiln,
    Kiln,
  ];
  for (const node of nodes) await untilStates(node, { a: 'ready', b: 'ready', c: 'ready' });
  const closed = async (...whos: readonly string[]): Promise<void> => {
    try {
      await until('all have closed', () => whos.every((who) => control.count('closing', who) > 0), 120_000);
    } catch (error) {
      throw new Error(`${whos.join(', ')} were to be closed: ${control.list().join(', ')}`, { cause: error });
    }
  };
  return { nodes, control, closed };
}

function closedOnce(t: ExecutionContext, control: Admissions, whos: readonly string[]): void {
  for (const who of whos) t.deepEqual([control.count('opening', who), control.count('closing', who)], [1, 1], who);
}

function sign(url: string, fields: Partial<PolicyFields> = {}): string {
  return signUrl(url, { url_expire: Date.now() + HOUR, ...fields }, SIGNING);
}

interface Answer {
  readonly status: number;
  readonly body: string;
}

/** Asks a port of this machine for a URL, whatever host that names. */
function ask(url: string, port = Number(new URL(url).port)): Promise<Answer> {
  const { host, pathname, search } = new URL(url);
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path: pathname + search, headers: { host }, agent: false }, (message) => {
      const status = message.statusCode ?? 0;
      // one that is cut rejects
      whole(message).then((body) => resolve({ status, body }), reject);
    }).on('error', reject);
  });
}

/** The URLs that a master playlist names, as a player asks for them. */
async function children(master: string): Promise<string[]> {
  const { status, body } = await ask(master);
  assert.equal(status, 200, body);
  return urisOf(body, master);
}

/** A player that asks for the chunklists of its session, each time at another of the ports. */
function keepsAsking(t: WithTeardown, urls: readonly string[], ports: readonly number[]) {
  const statuses: number[] = [];
  let count = 0;
  const timer = setInterval(() => {
    const [url, port] = [urls[count % urls.length], ports[count++ % ports.length]];
    ask(url as string, port).then(
      ({ status }) => statuses.push(status),
      () => statuses.push(0),
    );
  }, 250);
  const stop = (): void => clearInterval(timer);
  t.teardown(stop);
  return { statuses, stop };
}

async function publish(t: WithTeardown, node: Kiln, key: string): Promise<MediaPublisher> {
  const publisher = await MediaPublisher.start(node.ports.rtmp, key, [scene], FROM);
  t.teardown(() => publisher.close());
  return publisher;
}

async function watch(t: WithTeardown, node: Kiln, who: string, stream = 'live'): Promise<ViewerPeer> {
  const peer = new ViewerPeer({ audio: false });
  t.teardown(() => peer.close());
  await peer.play(node.httpUrl(`/app/${stream}?direction=whep&who=${who}`));
  await peer.until(() => peer.packets.video.length > 0);
  return peer;
}

const teardown = new Teardown();
test.after.always(() => teardown.run());

/** Of tests that give their clients different names; the last of them stops a node. */
const cluster = shared(() => start(teardown));

test('what is revoked on one node ends on the others, by the policy of a URL and by address, and is refused there', async (t) => {
  const { nodes } = await cluster();
  const [a, b, c] = nodes;
  await publish(t, a, 'revoked?who=revoked');
  await until('b knows it', async () => (await b.api('/v1/vhosts/default/apps/app/streams/revoked')).status === 200);
  const ports = nodes.map(({ ports: { http } }) => http);
  const [signed, other] = [1, 2].map((n) =>
    sign(b.httpUrl('/app/revoked/llhls.m3u8?who=hls'), { url_expire: Date.now() + n * HOUR }),
  ) as [string, string];
  const [urls, others] = [await children(signed), await children(other)];
  const [player, spared] = [keepsAsking(t, urls, ports), keepsAsking(t, others, ports)];
  const peer = await watch(t, b, 'whep', 'revoked');
  await until('both play', () =>
    [player, spared].every(({ statuses }) => statuses.filter((s) => s === 200).length > 6),
  );

  const expires = new Date(Date.now() + HOUR).toISOString();
  const policy = new URL(signed).searchParams.get('policy');
  const made = await c.api<{ id: string }>('/v1/cluster/revocations', 'POST', { policy, expires });
  t.is(made.status, 200);
  await until('its player is refused by every node', () => {
    const last = player.statuses.slice(-2 * ports.length);
    return last.length === 2 * ports.length && last.every((status) => status === 401);
  });
  for (const port of ports) await until('it cannot come back', async () => (await ask(signed, port)).status === 401);
  t.true(spared.statuses.slice(-3).every((status) => status === 200));

  const byAddress = { address: '127.0.0.1', app: 'app', stream: 'revoked', expires };
  t.is((await c.api('/v1/cluster/revocations', 'POST', byAddress)).status, 200);
  await until('the viewer of another node has gone', async () => {
    const { body } = await b.api<unknown[]>('/v1/vhosts/default/apps/app/streams/revoked/sessions');
    return !JSON.stringify(body.response).includes('webrtc');
  });
  await peer.until(() => peer.state === 'disconnected' || peer.state === 'closed' || peer.state === 'failed');
  await t.throwsAsync(watch(t, b, 'again', 'revoked'));
  const { body } = await a.api<{ id: string }[]>('/v1/cluster/revocations');
  t.is(body.response.length, 2);
  for (const { id } of body.response) t.is((await a.api(`/v1/cluster/revocations/${id}`, 'DELETE')).status, 200);
  await until('it may come back', async () => (await ask(signed, b.ports.http)).status === 200);
});

test.serial('a signed master playlist covers its children on every node, and ends on every node', async (t) => {
  t.timeout(300_000);
  const { nodes, control, closed } = await cluster();
  const balancer = await startBalancer(t, nodes, true);
  await publish(t, nodes[0], 'live?who=publisher');
  await publish(t, nodes[1], 'other?who=otherPublisher');
  const masterOf = (stream: string, who: string): string =>
    `http://127.0.0.1:${balancer.http}/app/${stream}/llhls.m3u8?who=${who}`;
  for (const stream of ['live', 'other'])
    await until(`${stream} can be played`, async () => (await ask(sign(masterOf(stream, 'early')))).status === 200);

  const master = masterOf('live', 'viewer');
  const everywhere = async (url: string): Promise<Set<number>> => {
    const direct = nodes.map(({ ports }) => ask(url, ports.http));
    const balanced = Array.from({ length: CALLS }, () => ask(url));
    return new Set((await Promise.all([...direct, ...balanced])).map(({ status }) => status));
  };
  t.deepEqual(await everywhere(master), new Set([401]), 'unsigned');
  t.is(control.count('opening', 'viewer'), 0);
  const own = await children(sign(master));
  const present = keepsAsking(t, own, [balancer.http]);
  const foreign = await children(sign(masterOf('other', 'foreign')));
  t.deepEqual([control.count('opening', 'viewer'), control.count('opening', 'foreign')], [1, 1]);
  for (const [at, url] of own.entries()) {
    t.deepEqual(await everywhere(url), new Set([200]), url);
    const [path, others] = [url, foreign[at] as string].map((one) => new URL(one).pathname.split('/').slice(3));
    const [name = ''] = (path as string[]).slice(-1);
    t.is((path as string[]).length, 2, 'a token and a name');
    t.deepEqual(await everywhere(url.replace(`/${path?.[0]}/`, '/')), new Set([401]), 'without a token');
    t.deepEqual(await everywhere(url.replace(`/${path?.[0]}/`, `/${others?.[0]}/`)), new Set([401]), name);
  }
  await until('it has been answered', () => present.statuses.length > 0);
  t.deepEqual(new Set(present.statuses), new Set([200]));
  t.is(control.count('closing', 'viewer'), 0);
  present.stop();

  const stream_expire = Date.now() + 15_000;
  const limited = await children(sign(masterOf('live', 'limited'), { stream_expire }));
  const player = keepsAsking(t, limited, [balancer.http]);
  await until('it plays', () => player.statuses.includes(200));
  await until('its time is over', () => Date.now() > stream_expire);
  for (const url of limited) t.deepEqual(await everywhere(url), new Set([403]), url);
  await until('the player hears of it', () => player.statuses.includes(403));
  player.stop();
  t.deepEqual(new Set(player.statuses), new Set([200, 403]));
  const whos = ['viewer', 'foreign', 'limited'];
  await closed(...whos);
  closedOnce(t, control, whos);
});

long(
  'a virtual host that is made on one node asks its webhook on all, and its sessions are closed when it is deleted',
  async (t) => {
    t.timeout(300_000);
    const {
      nodes: [a, b, c],
      control,
      closed,
    } = await cluster();
    const made = {
      name: 'made',
      host: { names: ['made.example'] },
      signedPolicy: { ...SIGNING, secretKey: 'of the made one', enables: { publishers: 'llhls' } },
      admissionWebhooks: {
        controlServerUrl: control.url,
        secretKey: 'x',
        timeout: 20_000,
        enables: { providers: 'rtmp', publishers: 'llhls' },
      },
    };
    const llhls = { segmentDuration: 1, segmentCount: 5, chunkDuration: 0.5 };
    const app = { name: 'app', type: 'live', providers: { rtmp: {} }, publishers: { llhls } };
    t.is((await a.api('/v1/vhosts', 'POST', [made])).status, 200);
    t.is((await a.api('/v1/vhosts/made/apps', 'POST', [app])).status, 200);
    const host = 'made.example';
    for (const node of [b, c]) {
      t.like((await node.api<typeof made>('/v1/vhosts/made')).body.response.admissionWebhooks, {
        controlServerUrl: control.url,
      });
      const refused = RtmpClient.publish('live?who=refused', { port: node.ports.rtmp, host, ...FROM });
      await t.throwsAsync(refused, { message: /denied/i });
    }
    t.is(control.count('opening', 'refused'), 2);
    const publisher = await MediaPublisher.start(c.ports.rtmp, 'live?who=made', [scene], { host, ...FROM });
    t.teardown(() => publisher.close());
    const master = `http://${host}:${b.ports.http}/app/live/llhls.m3u8?who=madeViewer`;
    t.is((await ask(master)).status, 401);
    t.is((await ask(sign(master))).status, 401, 'by the key of another virtual host');
    const signing = { ...SIGNING, secretKey: 'of the made one' };
    const signed = signUrl(master, { url_expire: Date.now() + HOUR }, signing);
    const early = signUrl(master.replace('madeViewer', 'madeEarly'), { url_expire: Date.now() + HOUR }, signing);
    await until('it can be played', async () => (await ask(early)).status === 200);
    const player = keepsAsking(t, await children(signed), [b.ports.http, c.ports.http]);
    await until('it plays', () => player.statuses.filter((status) => status === 200).length > 4);
    t.is((await a.api('/v1/vhosts/made', 'DELETE')).status, 200);
    await closed('made', 'madeViewer');
    closedOnce(t, control, ['made', 'madeViewer']);
    t.is(control.count('closing', 'refused'), 0);
  },
);

long('sessions of a node that drains and stops are closed once, also of viewers on another node', async (t) => {
  t.timeout(300_000);
  const {
    nodes: [, b, c],
    control,
    closed,
  } = await cluster();
  await publish(t, c, 'drained?who=drained');
  await c.liveStream('drained');
  await watch(t, c, 'drainedWhep', 'drained');
  await watch(t, b, 'drainedRelayed', 'drained');
  const own = `http://127.0.0.1:${c.ports.http}/app/drained/llhls.m3u8?who=drainedViewer`;
  keepsAsking(t, await children(sign(own)), [c.ports.http]);
  c.signal('SIGTERM');
  await c.exited();
  const whos = ['drained', 'drainedWhep', 'drainedRelayed', 'drainedViewer'];
  await closed(...whos);
  closedOnce(t, control, whos);
  // nor does the drain close those again that had closed before
  for (const who of ['made', 'madeViewer']) t.is(control.count('closing', who), control.count('opening', who), who);
  t.is(control.count('closing', 'refused'), 0);
});

/** Another cluster, whose nodes end one after the other: the first owns a stream that viewers play from the others. */
const watched = shared(async () => {
  const { nodes, control, closed } = await start(teardown);
  const [a, b, c] = nodes;
  await publish(teardown, a, 'live?who=publisher');
  await a.liveStream('live');
  await watch(teardown, b, 'whepB');
  const whepC = await watch(teardown, c, 'whepC');
  const srt = new SrtCaller(teardown);
  const call = async (node: Kiln, who: string) => {
    const streamId = `default/app/live?who=${who}`;
    const { refused, receive } = await srt.call(node.ports.srtPlay as number, { streamId });
    assert.equal(refused, 0);
    const comes = (): Promise<unknown> => until('media comes', async () => (await receive()) > 0);
    await comes();
    return { receive, comes };
  };
  await call(b, 'srtB');
  const srtC = await call(c, 'srtC');
  const hls = async (node: Kiln, who: string, asked: readonly Kiln[]) => {
    const master = sign(`http://127.0.0.1:${node.ports.http}/app/live/llhls.m3u8?who=${who}`);
    return keepsAsking(
      teardown,
      await children(master),
      asked.map(({ ports }) => ports.http),
    );
  };
  const staying = await hls(b, 'staying', [b, a, c]);
  const leaving = await hls(c, 'leaving', [a]);
  await until('both play', () => [staying, leaving].every(({ statuses }) => statuses.includes(200)));
  return { nodes, control, closed, whepC, srtC, staying, leaving };
});

async function goesOn({ statuses }: ReturnType<typeof keepsAsking>): Promise<void> {
  const known = statuses.length;
  await until('the player goes on', () => statuses.slice(known).filter((status) => status === 200).length > 4);
}

/** Kills the second node, which admitted viewers. */
const admitterKilled = shared(async () => {
  const { nodes, closed, staying } = await watched();
  nodes[1].signal('SIGKILL');
  await closed('whepB', 'srtB');
  await goesOn(staying);
});

/** Kills the first node, which owns the stream, and publishes that to the last. */
const ownerKilled = shared(async () => {
  await admitterKilled();
  const { nodes, closed, leaving } = await watched();
  leaving.stop();
  nodes[0].signal('SIGKILL');
  await untilWorks('a publisher is back', () => publish(teardown, nodes[2], 'live?who=back'));
  await closed('publisher', 'leaving');
});

long('sessions of a node that is killed are closed, and LL-HLS players that it admitted go on elsewhere', async (t) => {
  await admitterKilled();
  const { control } = await watched();
  for (const who of ['publisher', 'whepC', 'srtC', 'staying', 'leaving']) t.is(control.count('closing', who), 0, who);
});

long('viewers go on when the node that owns their stream is killed and its publisher is back on theirs', async (t) => {
  await ownerKilled();
  const { control, whepC, srtC, staying } = await watched();
  const { length: shown } = whepC.packets.video;
  await whepC.until(() => whepC.packets.video.length > shown + 15);
  await srtC.receive();
  await srtC.comes();
  await goesOn(staying);
  for (const who of ['whepC', 'srtC', 'staying']) t.is(control.count('closing', who), 0, who);
});

long('each session is closed once after two of three nodes were killed and the last one stopped', async (t) => {
  await ownerKilled();
  const { nodes, control, closed, staying } = await watched();
  staying.stop();
  await closed('staying');
  await nodes[2].stop();
  await closed('back', 'whepC', 'srtC');
  closedOnce(t, control, ['publisher', 'whepB', 'whepC', 'srtB', 'srtC', 'staying', 'leaving']);
  // it came again and again until the name was free
  t.is(control.count('closing', 'back'), control.count('opening', 'back'));
});

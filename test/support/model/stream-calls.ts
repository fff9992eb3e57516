import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { PictureClient } from '../rtmp/picture-client.ts';
import { urisOf } from '../hls/playlist-uris.ts';
import { until } from '../time/until.ts';
import { ask, ended, same, soon, type Call, type Turn } from './calls.ts';

const ofApp = ({ vhost, app }: Turn): string => `/v1/vhosts/${vhost}/apps/${app}`;
const ofStream = (turn: Turn): string => `${ofApp(turn)}/streams/${turn.stream}`;
const path = ({ vhost, app, stream }: Turn): string => `${vhost}/${app}/${stream}`;
const isStream = ({ state, vhost, app, stream }: Turn): boolean => state.stream(vhost, app, stream) !== undefined;
const found = (turn: Turn): number => (isStream(turn) ? 200 : 404);
/** Encoders that publish at once: each costs the machine a little all the time. */
const MOST = 8;

/** A node that does not have the stream: it knows only what is known everywhere. */
function another({ nodes, node }: Turn) {
  return nodes.find((one) => one !== node) ?? node;
}

const publish: Call = async (turn) => {
  const { state, node, vhost, app, stream } = turn;
  const present = state.vhosts.get(vhost);
  if (state.streams().length >= MOST) return 'publish nothing: there are enough';
  // a publisher asks no store: it may come before its node has heard of the last change
  await ask(turn, 'GET', '/v1/vhosts', 200);
  const welcome = present !== undefined && (present.apps.has(app) || present.hasTemplate) && !isStream(turn);
  const client = await PictureClient.publish(node, stream, app, `${vhost}.example.com`).catch((error: Error) => error);
  if (client instanceof Error) {
    if (welcome) throw new Error(`publishing ${path(turn)} was refused: ${client.message}`);
    return `publish ${path(turn)}: refused`;
  }
  if (!welcome || present === undefined) throw new Error(`publishing ${path(turn)} was not refused`);
  const application = present.apps.get(app) ?? { dynamic: true, profiles: new Set(['default']), streams: new Map() };
  present.apps.set(app, application);
  application.streams.set(stream, { client, node });
  await soon('the stream is live', async () => (await another(turn).api(ofStream(turn))).status === 200);
  return `publish ${path(turn)}`;
};

const disconnect: Call = async (turn) => {
  const published = turn.state.stream(turn.vhost, turn.app, turn.stream);
  if (published === undefined) return `disconnect ${path(turn)}: there is none`;
  published.client.close();
  turn.state.app(turn.vhost, turn.app)?.streams.delete(turn.stream);
  const other = another({ ...turn, node: published.node });
  await soon('the stream is gone', async () => (await other.api(ofStream(turn))).status === 404);
  return `disconnect ${path(turn)}`;
};

const remove: Call = async (turn) => {
  const published = turn.state.stream(turn.vhost, turn.app, turn.stream);
  await ask(turn, 'DELETE', ofStream(turn), found(turn));
  turn.state.app(turn.vhost, turn.app)?.streams.delete(turn.stream);
  if (published !== undefined) await ended([published]);
  return `delete stream ${path(turn)}`;
};

interface Shown {
  readonly name: string;
  readonly input: { readonly connection: { readonly localPort: number } };
}

const show: Call = async (turn) => {
  const { response } = await ask<Shown>(turn, 'GET', ofStream(turn), found(turn));
  const published = turn.state.stream(turn.vhost, turn.app, turn.stream);
  if (published === undefined) return `show stream ${path(turn)}: there is none`;
  const { localPort } = response.input.connection;
  const { rtmp } = published.node.ports;
  if (response.name !== turn.stream || localPort !== rtmp)
    throw new Error(`${path(turn)}: ${response.name} on port ${localPort}, not ${rtmp}`);
  return `show stream ${path(turn)}`;
};

const list: Call = async (turn) => {
  const present = turn.state.app(turn.vhost, turn.app);
  const { response } = await ask<string[]>(turn, 'GET', `${ofApp(turn)}/streams`, present === undefined ? 404 : 200);
  if (present !== undefined) same(`streams of ${ofApp(turn)}`, response, present.streams.keys());
  return `list streams of ${turn.vhost}/${turn.app}`;
};

let views = 0;

/** A player comes to the node that has the stream, is seen from any, and is sent away from any. */
const watch: Call = async (turn) => {
  const published = turn.state.stream(turn.vhost, turn.app, turn.stream);
  const sessions = `${ofStream(turn)}/sessions`;
  if (published === undefined || !plays(turn) || !turn.random.chance(0.2)) {
    await ask(turn, 'GET', sessions, found(turn));
    return `list sessions of ${path(turn)}`;
  }
  const id = `player${views++}`;
  const master = `/${turn.app}/${turn.stream}/llhls.m3u8?session=${id}`;
  const { http } = published.node.ports;
  const host = `${turn.vhost}.example.com`;
  const playlist = await until('a playlist', async () => {
    const { status, body } = await getAs(host, http, master);
    return status === 200 && body;
  });
  await getAs(host, http, urisOf(playlist, master).at(-1) ?? '');
  const { response } = await ask<string[]>(turn, 'GET', sessions, 200);
  same(`sessions of ${path(turn)}`, response, [id]);
  await ask(
    turn,
    'GET',
    `/v1/stats/current/vhosts/${turn.vhost}/apps/${turn.app}/streams/${turn.stream}/sessions/${id}`,
    200,
  );
  await ask(turn, 'DELETE', `${sessions}/${id}`, 200);
  await ask(turn, 'DELETE', `${sessions}/${id}`, 404);
  same(`sessions of ${path(turn)}`, (await ask<string[]>(turn, 'GET', sessions, 200)).response, []);
  return `watch ${path(turn)}`;
};

/** Asks a port of the loopback interface under a host name. */
async function getAs(
  host: string,
  port: number,
  path: string,
): Promise<{ readonly status: number; readonly body: string }> {
  const asked = get({ host: '127.0.0.1', port, path, headers: { host } });
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  return { status: answer.statusCode ?? 0, body: await text(answer) };
}

/** Output streams go by the origin's name where the default profile is. */
function plays({ state, vhost, app }: Turn): boolean {
  return state.app(vhost, app)?.profiles.has('default') === true;
}

export const STREAM_CALLS: readonly Call[] = [
  publish,
  publish,
  publish,
  publish,
  disconnect,
  remove,
  show,
  show,
  list,
  list,
  watch,
];

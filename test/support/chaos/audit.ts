import { Redis } from 'ioredis';
import type { StreamInfo } from '../../../src/stats/stream-schema.ts';
import type { Kiln } from '../server/kiln.ts';
import type { NodeInfo } from '../server/nodes.ts';
import type { ChaosCluster } from './cluster.ts';

const APP = 'vhosts/default/apps/app';
const PREFIX = '{kiln:kiln}:';

interface Statistics {
  readonly providers: {
    readonly totalBytesIn: number;
    readonly connections: { readonly rtmp: number; readonly ovt: number };
  };
}

/** In which the API of every node, Redis, and who really sends differ; empty when they agree. */
export async function audit(cluster: ChaosCluster): Promise<string[]> {
  const { nodes, ids, publishers } = cluster;
  const away = publishers
    .filter(({ connection }) => connection === undefined)
    .map(({ name }) => `${name} is not published`);
  if (away.length > 0) return away;
  const told = await Promise.all(nodes.map((node, at) => auditNode(cluster, node, ids[at] as string)));
  const views = told.map(({ view }) => view);
  const differing = views.flatMap((view, at) =>
    view === views[0] ? [] : [`${ids[at]} tells ${view}, ${ids[0]} ${views[0]}`],
  );
  const pullers = await cluster.pullers();
  const pulls =
    pullers === cluster.pulled.length ? [] : [`the origin is pulled from by ${pullers}, not ${cluster.pulled.length}`];
  return [...told.flatMap(({ problems }) => problems), ...differing, ...pulls, ...(await auditRedis(cluster))];
}

/** @returns what is wrong, and what every node must tell the same of */
async function auditNode({ publishers, pulled, names, nodes }: ChaosCluster, node: Kiln, id: string) {
  const problems: string[] = [];
  const read = async <T>(path: string): Promise<T | undefined> => {
    const { status, headers, body } = await node.api<T>(path);
    if (headers.get('x-kiln-stale') !== null) problems.push(`${id} is stale`);
    if (status !== 200) problems.push(`${id}: ${path} is answered ${status}`);
    return status === 200 ? body.response : undefined;
  };
  const expect = (what: string, is: unknown, should: unknown): void => {
    if (is !== should) problems.push(`${id}: ${what} is ${is}, not ${should}`);
  };
  const rows = (await read<NodeInfo[]>('/v1/cluster/nodes')) ?? [];
  expect(
    'nodes',
    rows
      .map((row) => `${row.id} ${row.state}`)
      .sort()
      .join(),
    rows
      .map((row) => `${row.id} ready`)
      .sort()
      .join(),
  );
  expect('the number of nodes', rows.length, nodes.length);
  expect(
    'the streams of all nodes',
    rows.reduce((sum, { streams }) => sum + streams, 0),
    names.length,
  );
  const listed = (await read<string[]>(`/v1/${APP}/streams`)) ?? [];
  expect('the list', listed.toSorted().join(), names.toSorted().join());
  for (const { name, connection } of publishers) {
    const info = await read<StreamInfo>(`/v1/${APP}/streams/${name}`);
    const { localPort, remotePort } = info?.input.connection ?? {};
    expect(
      `where ${name} is`,
      `${localPort} from ${remotePort}`,
      `${connection?.node.ports.rtmp} from ${connection?.port}`,
    );
    const one = await read<Statistics>(`/v2/stats/current/${APP}/streams/${name}`);
    expect(`sources of ${name}`, one?.providers.connections.rtmp, 1);
  }
  for (const name of pulled) {
    expect(`the source of ${name}`, (await read<StreamInfo>(`/v1/${APP}/streams/${name}`))?.input.sourceType, 'Ovt');
    const one = await read<Statistics>(`/v2/stats/current/${APP}/streams/${name}`);
    expect(`sources of ${name}`, one?.providers.connections.ovt, 1);
  }
  for (const level of [APP, 'vhosts/default']) {
    const all = await read<Statistics>(`/v2/stats/current/${level}`);
    expect(`publishers of ${level}`, all?.providers.connections.rtmp, publishers.length);
    expect(`pulls of ${level}`, all?.providers.connections.ovt, pulled.length);
  }
  return { problems, view: JSON.stringify(await configOf(read)) };
}

/** Everything that the API shows of the virtual hosts that it made. */
async function configOf(read: <T>(path: string) => Promise<T | undefined>): Promise<unknown> {
  const vhosts = ((await read<string[]>('/v1/vhosts')) ?? []).toSorted();
  return await Promise.all(
    vhosts.map(async (vhost) => {
      const apps = ((await read<string[]>(`/v1/vhosts/${vhost}/apps`)) ?? []).toSorted();
      return [vhost, await Promise.all(apps.map((app) => read(`/v1/vhosts/${vhost}/apps/${app}`)))];
    }),
  );
}

/** Every stream is claimed, by the node that has it, and the task of every pull by the node that pulls; no more is claimed. */
async function auditRedis({ redis: { port }, nodes, ids, publishers, pulled }: ChaosCluster): Promise<string[]> {
  const client = new Redis(port);
  try {
    const claims = await client.hgetall(`${PREFIX}claims`);
    // an entry of each epoch is no claim
    const is = Object.entries(claims).flatMap(([key, record]) =>
      record === '' ? [] : `${key} ${record.split(' ')[2]}`,
    );
    const pushes = publishers.map(
      ({ name, connection }) =>
        `stream/default/app/${name} ${ids[nodes.findIndex((node) => node === connection?.node)]}`,
    );
    // where a pull is, its task tells; that it is anywhere at all, the origin
    const pulls = pulled.flatMap((name) => {
      const owner = claims[`stream/default/app/${name}`]?.split(' ')[2];
      return [`stream/default/app/${name} ${owner}`, `task/pull/default/app/${name} ${owner}`];
    });
    const should = [...pushes, ...pulls];
    const [actual, wanted] = [is.sort().join(), should.sort().join()];
    return actual === wanted ? [] : [`Redis has the claims ${actual}, not ${wanted}`];
  } finally {
    client.disconnect();
  }
}

/** Bytes that came in of each stream, as a node counts them. */
export async function received(node: Kiln, names: readonly string[]): Promise<number[]> {
  return await Promise.all(
    names.map(async (name) => {
      const { body } = await node.api<Statistics>(`/v2/stats/current/${APP}/streams/${name}`);
      return body.response.providers.totalBytesIn;
    }),
  );
}

/** All that ever came in, as a node tells. */
export async function receivedInAll(node: Kiln): Promise<number> {
  const { body } = await node.api<Statistics>('/v2/stats/current/vhosts/default');
  return body.response.providers.totalBytesIn;
}

import test from 'ava';
import type { Kiln } from '../support/kiln.ts';
import { startNode } from '../support/nodes.ts';
import { RedisServer } from '../support/redis.ts';
import { seeded } from '../unit/codecs/vectors.ts';

const CALLS = 400;
const NAMES = ['one', 'two', 'three'];
const vhost = (name: string) => ({ name, host: { names: [`${name}.example.com`] } });
const profile = (name: string) => ({
  name, outputStreamName: `\${OriginStreamName}_${name}`, encodes: { videos: [{ name: 'v', bypass: true }] },
});

/** What there should be: virtual hosts, their applications, and the output profiles of those. */
type Model = Map<string, Map<string, Set<string>>>;

interface Call {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  readonly status: number;
  /** Names that the answer lists, in any order. */
  readonly listed?: readonly string[];
}

/** A random call, its effect on the model, and what must come of it. */
function next(model: Model, pick: <T>(of: readonly T[]) => T): Call {
  const [v, a, p] = [pick(NAMES), pick(NAMES), pick(NAMES)];
  const apps = model.get(v);
  const profiles = apps?.get(a);
  const [ofVhost, ofApp] = [`/v1/vhosts/${v}`, `/v1/vhosts/${v}/apps/${a}`];
  const found = (there: boolean): number => (there ? 200 : 404);
  switch (pick(['POST v', 'POST v', 'POST a', 'POST a', 'POST p', 'DELETE v', 'DELETE a', 'DELETE p', 'PATCH', 'GET v', 'GET a', 'GET p'])) {
    case 'POST v':
      if (apps === undefined) model.set(v, new Map());
      return { method: 'POST', path: '/v1/vhosts', body: [vhost(v)], status: apps === undefined ? 200 : 409 };
    case 'POST a': {
      const status = apps === undefined ? 404 : profiles === undefined ? 200 : 409;
      if (status === 200) apps?.set(a, new Set(['default']));
      return { method: 'POST', path: `${ofVhost}/apps`, body: [{ name: a, type: 'live' }], status };
    }
    case 'POST p': {
      const status = profiles === undefined ? 404 : profiles.has(p) ? 409 : 200;
      if (status === 200) profiles?.add(p);
      return { method: 'POST', path: `${ofApp}/outputProfiles`, body: [profile(p)], status };
    }
    case 'DELETE v':
      return { method: 'DELETE', path: ofVhost, status: found(model.delete(v)) };
    case 'DELETE a':
      return { method: 'DELETE', path: ofApp, status: found(apps?.delete(a) ?? false) };
    case 'DELETE p':
      return { method: 'DELETE', path: `${ofApp}/outputProfiles/${p}`, status: found(profiles?.delete(p) ?? false) };
    case 'PATCH':
      return { method: 'PATCH', path: ofApp, body: { publishers: { llhls: {} } }, status: found(profiles !== undefined) };
    case 'GET v':
      return { method: 'GET', path: '/v1/vhosts', status: 200, listed: ['default', ...model.keys()] };
    case 'GET a':
      return { method: 'GET', path: `${ofVhost}/apps`, status: found(apps !== undefined), listed: apps && [...apps.keys()] };
    default:
      return { method: 'GET', path: `${ofApp}/outputProfiles`, status: found(profiles !== undefined), listed: profiles && [...profiles] };
  }
}

test(`${CALLS} random calls to random nodes are answered as one server would`, async (t) => {
  const redis = await RedisServer.start(t);
  const nodes = await Promise.all(['a', 'b', 'c'].map((id) => startNode(t, redis, id)));
  const random = seeded(20_26);
  const pick = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)] as T;
  const model: Model = new Map();
  let reached = 0;
  for (let n = 0; n < CALLS; n++) {
    const at = pick(['a', 'b', 'c']);
    const node = nodes[at.charCodeAt(0) - 97] as Kiln;
    const { method, path, body, status, listed } = next(model, pick);
    const answer = await node.api<string[]>(path, method, body);
    const what = `call ${n}: ${method} ${path} at ${at}`;
    if (!t.is(answer.status, status, what)) return;
    if (listed !== undefined && !t.deepEqual([...answer.body.response].sort(), [...listed].sort(), what)) return;
    if (status === 200) reached++;
  }
  t.true(reached > CALLS / 4, `${reached} calls found what they were for`);
});

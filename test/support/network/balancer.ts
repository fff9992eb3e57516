import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { balancerEnvironment } from '../../../deploy/cluster/balancer.ts';
import { findProgram } from '../../../deploy/cluster/program.ts';
import { Program } from '../media/ffmpeg.ts';
import type { Kiln } from '../server/kiln.ts';
import { freePorts } from './ports.ts';
import { until } from '../time/until.ts';

const CONFIG = join(import.meta.dirname, '../../../deploy/haproxy.cfg');
/** Of nodes without OVT: nothing listens there. */
const NOWHERE = 1;

/** For `modules` of a node: it believes a balancer on this machine about who the client is. */
export const BEHIND_BALANCER =
  '<ProxyProtocol><Networks>127.0.0.1</Networks></ProxyProtocol><ForwardedFor><Networks>127.0.0.1</Networks></ForwardedFor>';

/** Ports of a HAProxy on loopback. */
export interface Balancer {
  readonly rtmp: number;
  readonly http: number;
  readonly ovt: number;
  readonly api: number;
}

/**
 * HAProxy with deploy/haproxy.cfg in front of three nodes, once one of them takes calls. It is gone after the test.
 * @param spreads each HTTP request goes to the next node, whatever it is about
 */
export async function startBalancer(
  t: Pick<ExecutionContext, 'teardown'>,
  nodes: readonly [Kiln, Kiln, Kiln],
  spreads = false,
): Promise<Balancer> {
  const [rtmp, http, ovt, api] = freePorts(4) as [number, number, number, number];
  const balancer = { rtmp, http, ovt, api };
  const environment = balancerEnvironment('127.0.0.1', {
    balancer,
    nodes: nodes.map(({ ports: { ovt = NOWHERE, ...ports } }) => ({ ...ports, ovt })),
  });
  const config = spreads ? await spreadingConfig(t) : CONFIG;
  const haproxy = new Program(findProgram('haproxy'), ['-f', config], { ...process.env, ...environment });
  t.teardown(() => haproxy.stop());
  await until('the balancer passes calls', async () => {
    if (!haproxy.running) throw new Error(haproxy.stderr);
    const answers = [http, api].map((port) => fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined));
    return (await Promise.all(answers)).every((answer) => answer?.status === 200);
  });
  return balancer;
}

async function spreadingConfig(t: Pick<ExecutionContext, 'teardown'>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-test-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const text = await readFile(CONFIG, 'utf8');
  const path = join(folder, 'haproxy.cfg');
  await writeFile(path, text.replace(/balance uri depth 2\n.*hash-type.*\n.*hash-balance.*\n/, 'balance roundrobin\n'));
  return path;
}

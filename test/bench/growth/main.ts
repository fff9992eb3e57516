import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { LocalCluster } from '../../../deploy/cluster/cluster.ts';
import { freePorts } from '../../../deploy/cluster/ports.ts';
import { encodeClip } from '../../support/load/clip.ts';
import { Program } from '../../support/load/program.ts';
import type { PublishCommands } from '../../support/load/programs/publish.ts';
import type { LlhlsCommands } from '../../support/load/programs/watch-llhls.ts';
import type { Line, Measurement } from '../measurement.ts';
import { withServer } from '../server.ts';
import { installed } from '../wrk.ts';
import { costLines, extrapolation, type Size } from './costs.ts';
import { growStreams, growViewers, type Grow } from './loads.ts';

const NODES = 2;
const SMALL = { size: '320x180', kbit: 120 };
const STREAMS = 'streams of 2.5 Mbit/s';
const SMALL_STREAMS = 'streams of 200 kbit/s';
const VIEWERS = 'LL-HLS viewers of one stream';

/** What a stream and a viewer cost, and how late frames are, the more of them there are. */
export const growth: Measurement = {
  name: 'growth',
  run: async ({ clip, folder }) => {
    const small = join(folder, 'small.flv');
    await encodeClip(small, SMALL);
    return [
      ...linesOf(STREAMS, 'stream', await onServer(growStreams, clip, [50, 10, 1])),
      ...linesOf(SMALL_STREAMS, 'stream', await onServer(growStreams, small, [200])),
      ...linesOf(VIEWERS, 'viewer', await onServer(growViewers, clip, [400, 100, 1])),
      ...(await onCluster(clip)),
    ];
  },
};

function linesOf(what: string, unit: string, sizes: readonly Size[]): Line[] {
  return [...costLines(what, unit, sizes), extrapolation(what, unit, sizes)];
}

function onServer(grow: Grow, clip: string, counts: readonly number[]): Promise<Size[]> {
  return withServer(({ kiln, publishers, llhls }) => {
    const target = { pids: [kiln.pid], rtmp: kiln.ports.rtmp, http: [kiln.ports.http] };
    return grow(target, { clip, publishers, llhls }, counts);
  });
}

/** The largest loads on the nodes of `npm run cluster` on this machine. */
async function onCluster(clip: string): Promise<Line[]> {
  const missing = ['redis-server', 'haproxy'].filter((program) => !installed(program));
  if (missing.length > 0)
    return [{ what: 'growth on a cluster', measured: `skipped: ${missing.join(' and ')} not installed` }];
  const name = `npm run cluster -- ${NODES}`;
  return [
    ...costLines(`${name}: ${STREAMS}`, 'stream', await onNodes(growStreams, clip, 50)),
    ...costLines(`${name}: ${VIEWERS}`, 'viewer', await onNodes(growViewers, clip, 400)),
  ];
}

async function onNodes(grow: Grow, clip: string, count: number): Promise<Size[]> {
  const ports = freePorts(NODES);
  let said = '';
  const cluster = new LocalCluster({
    address: '127.0.0.1',
    ports,
    turn: false,
    token: `kiln:${randomBytes(16).toString('hex')}`,
    say: (text) => (said = text),
    onBroken: () => {
      throw new Error(said);
    },
  });
  const publishers = new Program<PublishCommands>('publish.ts');
  const llhls = new Program<LlhlsCommands>('watch-llhls.ts');
  try {
    await cluster.start();
    const pids = cluster.pids.map((pid = 0) => pid);
    const target = { pids, rtmp: ports.balancer.rtmp, http: ports.nodes.map(({ http }) => http) };
    return await grow(target, { clip, publishers, llhls }, [count]);
  } finally {
    await Promise.all([publishers.stop(), llhls.stop()]);
    await cluster.close();
  }
}

import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { LocalCluster } from '../../deploy/cluster/cluster.ts';
import { freePorts } from '../../deploy/cluster/ports.ts';
import { encodeClip } from '../support/load/clip.ts';
import { worstShare } from '../support/load/frame-log.ts';
import { Program } from '../support/load/program.ts';
import type { PublishCommands } from '../support/load/programs/publish.ts';
import type { LlhlsCommands } from '../support/load/programs/watch-llhls.ts';
import type { WebrtcCommands } from '../support/load/programs/watch-webrtc.ts';
import { percent } from '../support/load/statistics.ts';
import { cpuSeconds } from '../support/load/usage.ts';
import { Teardown } from '../support/programs/teardown.ts';

const NODES = 8;
const LLHLS_VIEWERS = 400;
const WEBRTC_VIEWERS = 60;
const STREAM = 'live';
const WARM_UP_MS = 5000;
/** So that the newest frames that count have come everywhere. */
const TAIL_MS = 5000;
const WANTED_SHARE = 0.999;

/**
 * One stream, published through the balancer of `npm run cluster -- 8`, and its viewers, as many on each node.
 * @returns whether all of them saw it all
 */
export async function spread(clip: string, minutes: number, print: (text: string) => void): Promise<boolean> {
  await encodeClip(clip, { size: '160x90', kbit: 100 });
  const end = new Teardown();
  try {
    const ports = freePorts(NODES);
    const cluster = new LocalCluster({
      address: '127.0.0.1',
      ports,
      turn: false,
      token: `kiln:${randomBytes(16).toString('hex')}`,
      say: print,
      onBroken: () => print('Redis or the balancer has ended'),
    });
    end.teardown(() => cluster.close());
    await cluster.start();
    const publisher = new Program<PublishCommands>('publish.ts');
    const llhls = new Program<LlhlsCommands>('watch-llhls.ts');
    const webrtc = new Program<WebrtcCommands>('watch-webrtc.ts');
    for (const program of [publisher, llhls, webrtc]) end.teardown(() => program.stop());
    await publisher.ask('start', { port: ports.balancer.rtmp, clip, streams: [STREAM] });
    for (const [index, { http }] of ports.nodes.entries()) {
      await llhls.ask('start', {
        port: http,
        master: `/app/${STREAM}/llhls.m3u8`,
        hints: true,
        count: LLHLS_VIEWERS / NODES,
      });
      const count = Math.floor((WEBRTC_VIEWERS * (index + 1)) / NODES) - Math.floor((WEBRTC_VIEWERS * index) / NODES);
      await webrtc.ask('start', { url: `http://127.0.0.1:${http}/app/${STREAM}?direction=whep`, count });
    }
    await delay(WARM_UP_MS);
    await Promise.all([llhls.ask('reset', undefined), webrtc.ask('reset', undefined)]);
    const used = (): number =>
      cluster.pids.reduce<number>((sum, pid) => sum + (pid === undefined ? 0 : cpuSeconds(pid)), 0);
    const [before, begun] = [used(), performance.now()];
    await delay(minutes * 60_000);
    const cores = ((used() - before) * 1000) / (performance.now() - begun);
    const { frames, connected } = await publisher.ask('count', undefined);
    await delay(TAIL_MS);
    const [byLlhls, byWebrtc] = await Promise.all([
      llhls.ask('report', { lastFrame: frames - 1 }),
      webrtc.ask('report', { lastFrame: frames - 1 }),
    ]);
    const shares = { llhls: worstShare(byLlhls.frames), webrtc: worstShare(byWebrtc.frames) };
    const gone = byLlhls.failures.length + byWebrtc.failed;
    for (const failure of byLlhls.failures.slice(0, 5)) print(`        ${failure}`);
    print(`${NODES} nodes, ${LLHLS_VIEWERS} LL-HLS and ${WEBRTC_VIEWERS} WebRTC viewers, ${minutes} min: ${gone} gone`);
    print(`frames at the worst viewer: LL-HLS ${percent(shares.llhls)}, WebRTC ${percent(shares.webrtc)}`);
    print(
      `behind the newest frame, median: LL-HLS ${byLlhls.p50.toFixed(0)} ms, WebRTC ${byWebrtc.p50.toFixed(0)} ms; all nodes together ${percent(cores)} of a core`,
    );
    return connected === 1 && gone === 0 && Math.min(shares.llhls, shares.webrtc) >= WANTED_SHARE;
  } finally {
    await end.run();
  }
}

import { setTimeout as delay } from 'node:timers/promises';
import { Kiln } from '../support/kiln.ts';
import { encodeClip } from '../support/load/clip.ts';
import type { FrameCounts } from '../support/load/frame-log.ts';
import { Program } from '../support/load/program.ts';
import type { PublishCommands } from '../support/load/programs/publish.ts';
import type { LlhlsCommands } from '../support/load/programs/watch-llhls.ts';
import type { WebrtcCommands } from '../support/load/programs/watch-webrtc.ts';
import { cpuSeconds, residentBytes } from '../support/load/usage.ts';

const PUBLISHERS = 20;
const KBIT = 1000;
const WEBRTC_VIEWERS = 50;
const LLHLS_VIEWERS = 100;
const WARM_UP_MS = 10_000;
const RUN_MS = 60_000;
/** What was sent when counting ends needs so long to be at LL-HLS players: two parts, and a loaded machine. */
const TAIL_MS = 4000;
const WANTED_SHARE = 0.999;
const GROWTH = 1.1;
const MIB = 1024 * 1024;

/**
 * Publishers and viewers for a minute.
 * @param clip file to encode into
 * @returns whether every viewer got its frames and memory stayed where it was
 */
export async function load(clip: string, print: (text: string) => void): Promise<boolean> {
  await encodeClip(clip, { size: '1280x720', kbit: KBIT });
  const kiln = await Kiln.start();
  const crowd = new Program<PublishCommands>('publish.ts');
  const star = new Program<PublishCommands>('publish.ts');
  const webrtc = new Program<WebrtcCommands>('watch-webrtc.ts');
  const llhls = new Program<LlhlsCommands>('watch-llhls.ts');
  try {
    const port = kiln.ports.rtmp;
    await star.ask('start', { port, clip, streams: ['live'] });
    await crowd.ask('start', { port, clip, streams: Array.from({ length: PUBLISHERS - 1 }, (_, i) => `other${i}`) });
    await kiln.liveStream('live');
    await webrtc.ask('start', { url: kiln.httpUrl('/app/live?direction=whep'), count: WEBRTC_VIEWERS });
    await llhls.ask('start', { port: kiln.ports.http, master: '/app/live/llhls.m3u8', hints: true, count: LLHLS_VIEWERS });
    print(`${PUBLISHERS} publishers of ${KBIT / 1000} Mbit/s, ${WEBRTC_VIEWERS} WebRTC and ${LLHLS_VIEWERS} LL-HLS viewers of one`);
    await delay(WARM_UP_MS);
    const before = residentBytes(kiln.pid);
    const cpu = cpuSeconds(kiln.pid);
    await delay(RUN_MS);
    const cores = (cpuSeconds(kiln.pid) - cpu) / (RUN_MS / 1000);
    const { frames } = await star.ask('count', undefined);
    await delay(TAIL_MS);
    const after = residentBytes(kiln.pid);
    const byWebrtc = await webrtc.ask('report', { lastFrame: frames - 1 });
    const byLlhls = await llhls.ask('report', { lastFrame: frames - 1 });
    const publishing = (await crowd.ask('count', undefined)).connected + (await star.ask('count', undefined)).connected;
    const shares = { webrtc: worst(byWebrtc.frames), llhls: worst(byLlhls.frames) };
    print(`WebRTC: ${percent(shares.webrtc)} of frames at the worst viewer, ${byWebrtc.lost} packets lost, ${byWebrtc.failed} viewers gone, delay p50 ${byWebrtc.p50.toFixed(1)} ms, p99 ${byWebrtc.p99.toFixed(1)} ms`);
    print(`LL-HLS: ${percent(shares.llhls)} of frames at the worst viewer, ${byLlhls.failures.length} viewers gone, delay p50 ${byLlhls.p50.toFixed(1)} ms, p99 ${byLlhls.p99.toFixed(1)} ms`);
    for (const failure of byLlhls.failures.slice(0, 3)) print(`        ${failure}`);
    print(`server: ${cores.toFixed(2)} cores, ${(before / MIB).toFixed(1)} MiB after the first ten seconds, ${(after / MIB).toFixed(1)} MiB at the end, ${publishing} publishers still there`);
    const carried = Math.min(shares.webrtc, shares.llhls) >= WANTED_SHARE && after <= before * GROWTH && publishing === PUBLISHERS;
    print(carried ? 'carried' : 'NOT carried');
    return carried;
  } finally {
    await Promise.all([crowd, star, webrtc, llhls].map((program) => program.stop()));
    await kiln.stop();
  }
}

function worst(viewers: readonly FrameCounts[]): number {
  return Math.min(...viewers.map(({ seen, due }) => (due === 0 ? 0 : seen / due)));
}

function percent(share: number): string {
  return `${(share * 100).toFixed(2)} %`;
}

import { setTimeout as delay } from 'node:timers/promises';
import { Kiln } from '../support/server/kiln.ts';
import { encodeClip } from '../support/load/clip.ts';
import { worstShare } from '../support/load/frame-log.ts';
import { Program } from '../support/load/program.ts';
import type { PublishCommands } from '../support/load/programs/publish.ts';
import type { LlhlsCommands } from '../support/load/programs/watch-llhls.ts';
import type { WebrtcCommands } from '../support/load/programs/watch-webrtc.ts';
import { percent } from '../support/load/statistics.ts';
import { cpuSeconds, residentBytesOfEach } from '../support/load/usage.ts';

const PUBLISHERS = 20;
const KBIT = 1000;
const WEBRTC_VIEWERS = 50;
const LLHLS_VIEWERS = 100;
/** As in the sample configuration: each stream keeps ten segments of two seconds, and what has just left them. */
const LLHLS = '<ChunkDuration>0.5</ChunkDuration><SegmentDuration>2</SegmentDuration><SegmentCount>10</SegmentCount>';
const WINDOW_MS = 25_000;
const WARM_UP_MS = 10_000;
const RUN_MS = 60_000;
const LOOKS = 6;
/** What was sent when counting ends needs so long to be at LL-HLS players: two parts, and a loaded machine. */
const TAIL_MS = 4000;
const WANTED_SHARE = 0.999;
const GROWTH = 1.1;
const MIB = 1024 * 1024;

/**
 * Publishers and viewers for a minute, once the publishers' windows are full.
 * @param clip file to encode into
 * @returns whether every viewer got its frames and memory stayed where it was
 */
export async function load(clip: string, print: (text: string) => void): Promise<boolean> {
  await encodeClip(clip, { size: '1280x720', kbit: KBIT });
  const kiln = await Kiln.start({ llhls: LLHLS });
  const crowd = new Program<PublishCommands>('publish.ts');
  const star = new Program<PublishCommands>('publish.ts');
  const webrtc = new Program<WebrtcCommands>('watch-webrtc.ts');
  const llhls = new Program<LlhlsCommands>('watch-llhls.ts');
  try {
    const port = kiln.ports.rtmp;
    await star.ask('start', { port, clip, streams: ['live'] });
    await crowd.ask('start', { port, clip, streams: Array.from({ length: PUBLISHERS - 1 }, (_, i) => `other${i}`) });
    await kiln.liveStream('live');
    await delay(WINDOW_MS);
    print(`${PUBLISHERS} publishers of ${KBIT / 1000} Mbit/s: ${memory(kiln).text}`);
    await webrtc.ask('start', { url: kiln.httpUrl('/app/live?direction=whep'), count: WEBRTC_VIEWERS });
    const player = { port: kiln.ports.http, master: '/app/live/llhls.m3u8', hints: true };
    await llhls.ask('start', { ...player, count: LLHLS_VIEWERS });
    await delay(WARM_UP_MS);
    const before = memory(kiln);
    print(`and ${WEBRTC_VIEWERS} WebRTC and ${LLHLS_VIEWERS} LL-HLS viewers of one: ${before.text}`);
    const cpu = cpuSeconds(kiln.pid);
    for (let look = 1; look <= LOOKS; look++) {
      await delay(RUN_MS / LOOKS);
      print(`${String((look * RUN_MS) / LOOKS / 1000).padStart(5)} s later: ${memory(kiln).text}`);
    }
    const cores = (cpuSeconds(kiln.pid) - cpu) / (RUN_MS / 1000);
    const { frames } = await star.ask('count', undefined);
    await delay(TAIL_MS);
    const after = memory(kiln);
    const byWebrtc = await webrtc.ask('report', { lastFrame: frames - 1 });
    const byLlhls = await llhls.ask('report', { lastFrame: frames - 1 });
    const publishing = (await crowd.ask('count', undefined)).connected + (await star.ask('count', undefined)).connected;
    const shares = { webrtc: worstShare(byWebrtc.frames), llhls: worstShare(byLlhls.frames) };
    print(`WebRTC: ${byWebrtc.lost} packets lost, ${byWebrtc.failed} viewers gone, ${told(shares.webrtc, byWebrtc)}`);
    print(`LL-HLS: ${byLlhls.failures.length} viewers gone, ${told(shares.llhls, byLlhls)}`);
    for (const failure of byLlhls.failures.slice(0, 3)) print(`        ${failure}`);
    const growth = percent(after.bytes / before.bytes);
    print(`server: ${cores.toFixed(2)} cores, memory ${growth} of what it was, ${publishing} publishers still there`);
    const whole = Math.min(shares.webrtc, shares.llhls) >= WANTED_SHARE;
    const carried = whole && after.bytes <= before.bytes * GROWTH && publishing === PUBLISHERS;
    print(carried ? 'carried' : 'NOT carried');
    return carried;
  } finally {
    await Promise.all([crowd, star, webrtc, llhls].map((program) => program.stop()));
    await kiln.stop();
  }
}

/** Of the server and of its media workers. */
function memory({ pid }: Kiln): { bytes: number; text: string } {
  const each = residentBytesOfEach(pid);
  const bytes = each.reduce((sum, one) => sum + one, 0);
  const mebibytes = (value: number) => (value / MIB).toFixed(1);
  return { bytes, text: `${mebibytes(bytes)} MiB (${each.map(mebibytes).join(' + ')})` };
}

function told(share: number, { p50, p99 }: { p50: number; p99: number }): string {
  return `${percent(share)} of frames at the worst viewer, delay p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`;
}

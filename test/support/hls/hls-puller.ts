import type { ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { Packet } from '../../../src/core/packet.ts';
import { toSeconds } from '../../../src/core/timebase.ts';
import type { Track } from '../../../src/core/track.ts';
import { HlsPulls } from '../../../src/providers/hls-pull/open.ts';
import { LocalClock } from '../../../src/providers/intake/local-clock.ts';
import { openGuard } from '../rtsp/rtsp-player.ts';

export interface PulledHls {
  readonly tracks: (readonly Track[])[];
  readonly packets: Packet[];
  readonly lines: string[];
  /** Why it ended. */
  readonly ended: Promise<string>;
  readonly of: (type: Track['type']) => Packet[];
}

/** Pulls a stream of HLS, in this process. @throws Error */
export async function pullHls(t: ExecutionContext, url: string, silenceMs?: number): Promise<PulledHls> {
  const lines: string[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
  const { signal } = new AbortController();
  const options = { log, clock: new LocalClock(), silenceMs, ignoresReports: false, signal };
  const source = await new HlsPulls(openGuard()).open(new URL(url), options);
  t.teardown(() => source.close());
  const tracks: (readonly Track[])[] = [];
  const packets: Packet[] = [];
  const { promise: ended, resolve } = Promise.withResolvers<string>();
  await source.play({
    tracks: (all) => void tracks.push(all),
    packet: (packet) => void packets.push(packet),
    received: () => undefined,
    lost: () => undefined,
    trouble: () => undefined,
    end: resolve,
  });
  return { tracks, packets, lines, ended, of: (type) => packets.filter(({ track }) => track.type === type) };
}

/** When the last packet of a kind is shown, in seconds. */
export function lastOf(pulled: PulledHls, type: Track['type']): number {
  return Math.max(...pulled.of(type).map(({ pts, track }) => toSeconds(pts, track.timebase)));
}

/** The longest distance of two packets of a kind, in seconds. */
export function longestStep(pulled: PulledHls, type: Track['type']): number {
  const times = pulled.of(type).map(({ dts, track }) => toSeconds(dts, track.timebase));
  return Math.max(...times.slice(1).map((time, at) => time - (times[at] as number)));
}

import { pino } from 'pino';
import type { Packet } from '../../../src/core/packet.ts';
import type { InputStream } from '../../../src/core/input-stream.ts';
import { CodecInventory } from '../../../src/transcode/codecs.ts';
import { Transcoder } from '../../../src/transcode/transcoder.ts';
import { until } from '../../support/time/until.ts';
import { openInput, secondsOf, type Clip, type Taken } from './sources.ts';

const inventory = new CodecInventory({ log: pino({ level: 'silent' }) });

/** A transcoder on a live input. */
export function openTranscoder(
  clip: Clip,
  { hangMs, codecs = inventory }: { hangMs?: number; codecs?: CodecInventory } = {},
) {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const input = openInput(clip);
  const decodes = { threadCount: 1, onlyKeyframes: false };
  return { input, transcoder: new Transcoder(input, { inventory: codecs, decodes, log, hangMs }), lines };
}

/** Writes packets, never further ahead of what comes out than some seconds. */
export async function feed(
  input: InputStream,
  packets: Iterable<Packet>,
  takers: readonly Taken[],
  ahead = 6,
): Promise<void> {
  for (const packet of packets) {
    const at = secondsOf(packet);
    const isFar = () => takers.some(({ reached }) => at - reached > ahead);
    if (isFar()) await until(`what was fed comes out, at ${at}`, () => !isFar(), 60_000);
    input.write(packet);
  }
}

/** What is wrong with pictures of which each that was fed is to come out once, up to the last one that did. */
export function pictureFaults({ job, packets }: Taken, fed: readonly Packet[]): string[] {
  const got = new Map<number, number>();
  for (const { pts } of packets) got.set(pts, (got.get(pts) ?? 0) + 1);
  const last = Math.max(...got.keys());
  const wanted = new Set<number>();
  for (const { pts, track } of fed) if (track.id === job.from.id && pts <= last) wanted.add(pts);
  return [
    ...[...wanted].filter((pts) => !got.has(pts)).map((pts) => `${pts} is missing`),
    ...[...got].flatMap(([pts, count]) => (count === 1 && wanted.has(pts) ? [] : `${pts} came ${count} times`)),
    ...orderFaults(packets),
  ];
}

/** What is wrong with sound that is to be without a gap; the first packet would begin before the beginning. */
export function soundFaults({ packets: [, ...packets] }: Taken): string[] {
  const gaps = packets.flatMap(({ pts, duration }, i) => {
    const next = packets[i + 1]?.pts ?? pts + duration;
    return next === pts + duration ? [] : `${next - pts - duration} samples between ${pts} and ${next}`;
  });
  return [...gaps, ...orderFaults(packets)];
}

export function orderFaults(packets: readonly { readonly dts: number; readonly pts: number }[]): string[] {
  return packets.flatMap(({ dts, pts }, i) => {
    const before = packets[i - 1]?.dts ?? -1;
    return dts > before && dts <= pts ? [] : `${dts}/${pts} behind ${before}`;
  });
}

import type { ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { Packet } from '../../../src/core/packet.ts';
import type { Track } from '../../../src/core/track.ts';
import { LocalClock } from '../../../src/providers/intake/local-clock.ts';
import { OutboundGuard } from '../../../src/protocols/outbound/guard.ts';
import { PULLING } from '../pushing/outbound.ts';
import type { PullSource, SourceOptions } from '../../../src/providers/pull/source.ts';
import { rtspSource } from '../../../src/providers/rtsp-pull/source.ts';

/** What a pulled stream told. */
export interface Played {
  readonly source: PullSource;
  readonly told: (readonly Track[])[];
  readonly packets: Packet[];
  readonly ends: string[];
  readonly bytes: () => number;
  readonly of: (type: Track['type']) => Packet[];
}

/** @param closed UDP ports that nothing is to be sent to */
export function openGuard(closed: readonly number[] = []): OutboundGuard {
  return new OutboundGuard({
    ...PULLING,
    nodes: () => [],
    ports: { tcp: new Set(), udp: new Set(closed) },
    stores: () => [],
  });
}

/** Pulls a stream of an RTSP server, in this process. @throws Error */
export async function playRtsp(
  t: ExecutionContext,
  url: string,
  options: Partial<SourceOptions> = {},
  guard = openGuard(),
): Promise<Played> {
  const source = await rtspSource(guard)(url, {
    log: pino({ level: 'silent' }),
    clock: new LocalClock(),
    silenceMs: undefined,
    ignoresReports: false,
    signal: new AbortController().signal,
    ...options,
  });
  t.teardown(() => source.close());
  const told: (readonly Track[])[] = [];
  const packets: Packet[] = [];
  const ends: string[] = [];
  let bytes = 0;
  await source.play({
    tracks: (tracks) => told.push(tracks),
    packet: (packet) => packets.push(packet),
    received: (count) => {
      bytes += count;
    },
    lost: () => {},
    trouble: () => {},
    end: (reason) => ends.push(reason),
  });
  return {
    source,
    told,
    packets,
    ends,
    bytes: () => bytes,
    of: (type) => packets.filter(({ track }) => track.type === type),
  };
}

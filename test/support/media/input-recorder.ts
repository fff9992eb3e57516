import type { ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { Continuity } from '../../../src/core/continuity.ts';
import { Counters } from '../../../src/core/counters.ts';
import type { Packet } from '../../../src/core/packet.ts';
import type { Source } from '../../../src/core/source.ts';
import { InputStream } from '../../../src/core/input-stream.ts';
import type { Track } from '../../../src/core/track.ts';
import { FaultLog } from '../../../src/log/log.ts';

/**
 * An input stream by itself, with all that is written into it, and a log with what is said to it.
 * @param continuity of a stream that continues another one
 */
export function recordInput(t: ExecutionContext, source: Source, continuity?: Continuity) {
  const input = new InputStream('live', source, new Counters(), { ...(continuity && { continuity }) });
  const tracks: (readonly Track[])[] = [];
  const packets: Packet[] = [];
  input.on('tracks', (set) => tracks.push(set));
  input.read({ packet: (packet) => void packets.push(packet) });
  const { log, lines } = recordLog();
  const faults = new FaultLog(log);
  t.teardown(() => faults.close());
  return { input, tracks, packets, log, lines, faults };
}

/** A log, and the messages in it. */
export function recordLog() {
  const lines: string[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(String(JSON.parse(line).msg)) });
  return { log, lines };
}

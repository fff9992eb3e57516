import type { ExecutionContext } from 'ava';
import { pino } from 'pino';
import { Counters } from '../../src/core/counters.ts';
import type { Packet } from '../../src/core/packet.ts';
import type { Source } from '../../src/core/source.ts';
import { InputStream } from '../../src/core/stream.ts';
import type { Track } from '../../src/core/track.ts';
import { FaultLog } from '../../src/log.ts';

/** An input stream by itself, with all that is written into it, and a log with what is said to it. */
export function recordInput(t: ExecutionContext, source: Source) {
  const input = new InputStream('live', source, new Counters());
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

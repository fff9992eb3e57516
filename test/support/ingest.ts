import type { ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { RtmpProviderConfig } from '../../src/config/model.ts';
import { Counters } from '../../src/core/counters.ts';
import type { Packet } from '../../src/core/packet.ts';
import { InputStream } from '../../src/core/stream.ts';
import type { Track } from '../../src/core/track.ts';
import { FaultLog } from '../../src/log.ts';
import { Ingest } from '../../src/providers/rtmp/ingest.ts';

/** The media of an RTMP publisher on their way into a stream, without the connection. */
export function setUpIngest(t: ExecutionContext, rtmp: Partial<RtmpProviderConfig> = {}) {
  const input = new InputStream('live', { type: 'Rtmp', kind: 'rtmp' }, new Counters());
  const tracks: (readonly Track[])[] = [];
  const packets: Packet[] = [];
  const failures: string[] = [];
  input.on('tracks', (set) => tracks.push(set));
  input.read({ packet: (packet) => void packets.push(packet) });
  const lines: string[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(String(JSON.parse(line).msg)) });
  const faults = new FaultLog(log);
  const ingest = new Ingest(input, {
    config: {
      timestampMode: 'Auto', packetSilenceTimeoutMs: 0, firstMediaWaitTimeoutMs: 0, ...rtmp,
    } as RtmpProviderConfig,
    extended: true,
    log,
    faults,
    onFailure: (reason) => failures.push(reason),
  });
  t.teardown(() => {
    ingest.close();
    faults.close();
  });
  return { input, ingest, tracks, packets, failures, faults, lines };
}

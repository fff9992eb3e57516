import type { ExecutionContext } from 'ava';
import type { RtmpProviderConfig } from '../../../src/config/model.ts';
import type { Continuity } from '../../../src/core/continuity.ts';
import { Ingest } from '../../../src/providers/rtmp/ingest.ts';
import { recordInput } from '../media/input-recorder.ts';

/** The media of an RTMP publisher on their way into a stream, without the connection. */
export function setUpIngest(t: ExecutionContext, rtmp: Partial<RtmpProviderConfig> = {}, continuity?: Continuity) {
  const { log, ...recorded } = recordInput(t, { type: 'Rtmp', kind: 'rtmp' }, continuity);
  const failures: string[] = [];
  const config = {
    timestampMode: 'Auto',
    packetSilenceTimeoutMs: 0,
    firstMediaWaitTimeoutMs: 0,
    ...rtmp,
  } as RtmpProviderConfig;
  const ingest = new Ingest(recorded.input, {
    config,
    extended: true,
    log,
    faults: recorded.faults,
    onFailure: (reason) => failures.push(reason),
  });
  t.teardown(() => ingest.close());
  return { ...recorded, ingest, failures };
}

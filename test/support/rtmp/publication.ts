import type { ExecutionContext } from 'ava';
import type { RtmpProviderConfig } from '../../../src/config/model.ts';
import type { Continuity } from '../../../src/core/continuity.ts';
import { RtmpPublication } from '../../../src/providers/rtmp/publication.ts';
import { recordInput } from '../media/input-recorder.ts';

/** A stream that an RTMP client publishes, without the connection. */
export function setUpPublication(t: ExecutionContext, rtmp: Partial<RtmpProviderConfig> = {}, continuity?: Continuity) {
  const { log, ...recorded } = recordInput(t, { type: 'Rtmp', kind: 'rtmp' }, continuity);
  const failures: string[] = [];
  const config = {
    timestampMode: 'Auto',
    packetSilenceTimeoutMs: 0,
    firstMediaWaitTimeoutMs: 0,
    ...rtmp,
  } as RtmpProviderConfig;
  const onFailure = (reason: string): void => void failures.push(reason);
  const publication = new RtmpPublication(recorded.input, { config, extended: true, log, onFailure });
  t.teardown(() => publication.end('the test is over'));
  return { ...recorded, publication, failures };
}

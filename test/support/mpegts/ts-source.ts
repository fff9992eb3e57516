import type { ExecutionContext } from 'ava';
import { TsSource, type TsSourceOptions } from '../../../src/providers/mpegts-intake/source.ts';
import { recordInput } from '../media/input-recorder.ts';

/** MPEG-TS on its way into a stream, without what it came over. */
export function setUpTsSource(t: ExecutionContext, config: Partial<TsSourceOptions['config']> = {}) {
  const { log, ...recorded } = recordInput(t, { type: 'MPEGTS', kind: 'mpegts' });
  const failures: string[] = [];
  const source = new TsSource({
    sink: recorded.input,
    config: { timestampMode: 'Auto', packetSilenceTimeoutMs: 0, audioMap: [], ...config },
    log,
    faults: recorded.faults,
    onFailure: (reason) => failures.push(reason),
  });
  t.teardown(() => source.close());
  return { ...recorded, source, failures };
}

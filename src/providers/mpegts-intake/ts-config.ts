import type { LocalClock } from '../intake/local-clock.ts';
import type { TsSourceOptions } from './source.ts';

/** Settings for a transport stream without an element of its own in Server.xml. @param silenceMs silence after which it ends; 0: never */
export function tsConfig({ keepsTimes }: LocalClock, silenceMs: number): TsSourceOptions['config'] {
  return { timestampMode: keepsTimes ? 'Original' : 'ZeroBased', packetSilenceTimeoutMs: silenceMs, audioMap: [] };
}

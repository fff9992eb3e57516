import { setLogEventListeners } from 'mediasoup';
import type { Logger } from '../log.ts';

/** Sends what mediasoup and its workers have to say to the log. It has one set of listeners per process. */
export function listenToMediasoup(log: Logger): void {
  setLogEventListeners({
    ondebug: undefined,
    onwarn: (namespace, text) => log.debug({ namespace }, text),
    onerror: (namespace, text, error) => log.warn({ namespace, err: error }, text),
  });
}

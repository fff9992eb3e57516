import { setLogEventListeners } from 'mediasoup';
import type { Logger } from '../log.ts';

/** Begins what libwebrtc's estimator says, which calls bounds that a viewer's choice of a rendition sets wrong. */
const ESTIMATOR = 'webrtc::';

/** Sends what mediasoup and its workers have to say to the log. It has one set of listeners per process. */
export function listenToMediasoup(log: Logger): void {
  setLogEventListeners({
    ondebug: undefined,
    onwarn: (namespace, text) => log.debug({ namespace }, text),
    onerror: (namespace, text, error) => {
      if (text.includes(ESTIMATOR)) log.debug({ namespace }, text);
      else log.warn({ namespace, err: error }, text);
    },
  });
}

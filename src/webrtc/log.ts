import { setLogEventListeners } from 'mediasoup';
import type { Logger } from '../log/log.ts';

/**
 * No cause for a warning: libwebrtc's estimator calls bounds wrong that a viewer's choice of a rendition sets, and Kiln
 * itself logs a call that failed and a worker that died. One that is told to end may still have something to say.
 */
const NO_NEWS =
  /webrtc::|throwing MediaSoup|worker process (?:died|failed)|Channel error|uv_try_write\(\) failed, trying uv_write\(\): broken pipe/;

/** Sends what mediasoup and its workers have to say to the log. It has one set of listeners per process. */
export function listenToMediasoup(log: Logger): void {
  setLogEventListeners({
    ondebug: undefined,
    onwarn: (namespace, text) => log.debug({ namespace }, text),
    onerror: (namespace, text, error) => {
      if (NO_NEWS.test(text)) log.debug({ namespace }, text);
      else log.warn({ namespace, err: error }, text);
    },
  });
}

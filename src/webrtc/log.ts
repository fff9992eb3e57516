import { setLogEventListeners } from 'mediasoup';
import type { Logger } from '../log/log.ts';

/**
 * Messages that need no warning: libwebrtc's estimator complains of bounds that a viewer's choice of a rendition sets, Kiln
 * itself logs failed calls and dead workers, and a worker that is being closed may still write to its pipe.
 */
const NO_NEWS =
  /webrtc::|throwing MediaSoup|worker process (?:died|failed)|Channel error|uv_try_write\(\) failed, trying uv_write\(\): broken pipe/;

/** Sends messages of mediasoup and its workers to the log. mediasoup has one set of listeners per process. */
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

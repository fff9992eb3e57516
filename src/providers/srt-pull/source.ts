import { shownUrl } from '../../protocols/outbound/shown.ts';
import { parseSrtCallUrl, type SrtCallUrl } from '../../protocols/srt/call-url.ts';
import type { SrtCalls } from '../../protocols/srt/calls.ts';
import type { SrtConnection } from '../../protocols/srt/connection.ts';
import { SrtError } from '../../protocols/srt/error.ts';
import { SrtLink } from '../../protocols/srt/link.ts';
import { PullError } from '../pull/error.ts';
import { PulledTs } from '../pull/pulled-ts.ts';
import { FIRST_MEDIA_MS, type OpenSource, type SourceOptions } from '../pull/source.ts';

/** Receives MPEG-TS from SRT listeners, or from a caller on a port of this machine. */
export function srtSource(calls: SrtCalls): OpenSource {
  return async (target, options) => {
    const url = parsed(target);
    try {
      const target = { ...url, signal: AbortSignal.any([options.signal, AbortSignal.timeout(FIRST_MEDIA_MS)]) };
      return opened(await (url.mode === 'listener' ? calls.next(target) : calls.call(target)), options);
    } catch (error) {
      throw error instanceof SrtError ? new PullError(error.message) : error;
    }
  };
}

function parsed(target: string): SrtCallUrl {
  try {
    return parseSrtCallUrl(target);
  } catch (error) {
    if (!(error instanceof SrtError)) throw error;
    throw new PullError(`not a URL of SRT: ${shownUrl(target)} (${error.message})`);
  }
}

/** Until it plays, libsrt holds what the listener sends. */
function opened(connection: SrtConnection, options: SourceOptions): PulledTs {
  const { address: remoteAddress, port: remotePort } = connection.peer;
  const link = new SrtLink('received', options.log);
  const source = new PulledTs(
    {
      connection: { transport: 'SRT', protocol: 'SRT', remoteAddress, remotePort },
      link,
      read: () => connection.read(),
      close: () => connection.close((srt) => options.log.debug({ srt }, 'SRT connection closed')),
    },
    options,
  );
  connection.handlers = {
    counted: (statistics) => link.counted(statistics),
    data: (bytes) => source.push(bytes),
    lost: (messages) => source.lost(messages),
    close: () => source.end('the other side closed the connection'),
  };
  return source;
}

import { mediaType } from '../../lib/media-type.ts';
import { connectionOf } from '../../protocols/outbound/dial.ts';
import { cutsCredentials, FRAGMENT_FAULT } from '../../protocols/outbound/fragment.ts';
import type { OutboundGuard } from '../../protocols/outbound/guard.ts';
import { httpGet, parseHttpUrl, type HttpAnswer } from '../../protocols/outbound/http-get.ts';
import { shownUrl } from '../../protocols/outbound/shown.ts';
import { PullError } from '../pull/error.ts';
import { PulledTs } from '../pull/pulled-ts.ts';
import type { OpenSource, SourceOptions } from '../pull/source.ts';

const ACCEPT = 'video/mp2t, application/octet-stream;q=0.9, */*;q=0.1';
/** Types of answers that are no transport stream (RFC 8216 section 10, RFC 9110 section 8.3). */
const OTHERS =
  /^(?:text\/|image\/|application\/(?:json|xml|x-mpegurl|vnd\.apple\.mpegurl|dash\+xml)$|audio\/(?:x-)?mpegurl$)/;

/** Receives MPEG-TS from HTTP servers that the guard allows: an answer without an end. */
export function httpSource(guard: OutboundGuard): OpenSource {
  return async (target, options) => {
    const url = parseHttpUrl(target);
    if (url === undefined || url.hash !== '' || cutsCredentials(target)) {
      const why = target.includes('#') ? ` (${FRAGMENT_FAULT})` : '';
      throw new PullError(`not a URL of HTTP: ${shownUrl(target)}${why}`);
    }
    const answer = await httpGet(guard, url, ACCEPT);
    const fault = faultOf(answer);
    if (fault === undefined) return opened(answer, options);
    answer.socket.destroy();
    throw new PullError(fault);
  };
}

/** The answer waits in the socket until it plays. */
function opened({ response, socket }: HttpAnswer, options: SourceOptions): PulledTs {
  const source = new PulledTs(
    {
      connection: connectionOf(socket),
      read: () => response.on('data', (bytes: Buffer) => source.push(bytes)),
      close: () => socket.destroy(),
    },
    options,
  );
  response.on('error', (error) => source.end(`the connection failed: ${error.message}`));
  response.on('end', () => source.end('the server ended its answer'));
  response.on('close', () => source.end('the server closed the connection'));
  return source;
}

function faultOf({ response: { statusCode, headers } }: HttpAnswer): string | undefined {
  if (statusCode !== 200) return `the server answered with ${statusCode}`;
  const type = mediaType(headers['content-type'] ?? '');
  return OTHERS.test(type) ? `the server answered with ${type}, which is no transport stream` : undefined;
}

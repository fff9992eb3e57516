import { mediaType } from '../../lib/media-type.ts';
import { connectionOf } from '../../protocols/outbound/dial.ts';
import { cutsCredentials, FRAGMENT_FAULT } from '../../protocols/outbound/fragment.ts';
import type { OutboundGuard } from '../../protocols/outbound/guard.ts';
import { httpRequest, parseHttpUrl, type HttpAnswer } from '../../protocols/outbound/http-request.ts';
import { shownUrl } from '../../protocols/outbound/shown.ts';
import { HlsPulls } from '../hls-pull/open.ts';
import { PullError } from '../pull/error.ts';
import { PulledTs } from '../pull/pulled-ts.ts';
import { namesPlaylist } from '../pull/schemes.ts';
import type { OpenSource, SourceOptions } from '../pull/source.ts';

const ACCEPT = 'video/mp2t, application/octet-stream;q=0.9, */*;q=0.1';
/** Types of playlists of HLS (RFC 8216 section 4, and what servers send besides). */
const PLAYLISTS = /^(?:application\/(?:x-mpegurl|vnd\.apple\.mpegurl)|audio\/(?:x-)?mpegurl)$/;
/** Types of answers that are no transport stream (RFC 9110 section 8.3). */
const OTHERS = /^(?:text\/|image\/|application\/(?:json|xml|dash\+xml)$)/;

/**
 * Receives streams from HTTP servers that the guard allows: HLS, where the path ends in `.m3u8` or the answer is a playlist, or
 * MPEG-TS as an answer without an end.
 */
export function httpSource(guard: OutboundGuard): OpenSource {
  const hls = new HlsPulls(guard);
  return async (target, options) => {
    const url = parseHttpUrl(target);
    if (url === undefined || url.hash !== '' || cutsCredentials(target)) {
      const why = target.includes('#') ? ` (${FRAGMENT_FAULT})` : '';
      throw new PullError(`not a URL of HTTP: ${shownUrl(target)}${why}`);
    }
    if (namesPlaylist(url.href)) return await hls.open(url, options);
    const answer = await httpRequest(guard, url, { accept: ACCEPT, signal: options.signal });
    const { statusCode, headers } = answer.response;
    const type = mediaType(headers['content-type'] ?? '');
    if (statusCode === 200 && !OTHERS.test(type) && !PLAYLISTS.test(type)) return opened(answer, options);
    answer.socket.destroy();
    if (statusCode !== 200) throw new PullError(`the server answered with ${statusCode}`);
    if (PLAYLISTS.test(type)) return await hls.open(url, options);
    throw new PullError(`the server answered with ${type}, which is no transport stream`);
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

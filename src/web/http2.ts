import type { RequestListener } from 'node:http';
import { constants, createServer, type Http2ServerRequest, type ServerHttp2Session } from 'node:http2';
import type { Duplex } from 'node:stream';
import type { Logger } from '../log.ts';
import { HTTP2_LIMITS, LIMITS } from './limits.ts';

export interface Http2Side {
  /** Speaks HTTP/2 (RFC 9113) on a connection that agreed on it. */
  serve(socket: Duplex): void;
  /** Takes no new requests; connections end with the last of theirs. Idempotent. */
  close(): void;
}

/**
 * HTTP/2 for the connections of a port that is not its own, with the limits that HTTP/1.1 has there.
 * @param handler the port's own, which gets requests of the compatibility API
 */
export function createHttp2Side(handler: RequestListener, log: Logger): Http2Side {
  const sessions = new Set<ServerHttp2Session>();
  const server = createServer({
    maxHeaderListPairs: LIMITS.headers,
    maxSessionMemory: HTTP2_LIMITS.sessionMemory,
    maxSessionInvalidFrames: HTTP2_LIMITS.invalidFrames,
    maxSessionRejectedStreams: HTTP2_LIMITS.rejectedStreams,
    maxOutstandingPings: HTTP2_LIMITS.outstandingPings,
    maxSettings: HTTP2_LIMITS.settings,
    streamResetBurst: HTTP2_LIMITS.resetBurst,
    streamResetRate: HTTP2_LIMITS.resetRate,
    settings: { maxConcurrentStreams: HTTP2_LIMITS.streams, maxHeaderListSize: LIMITS.headerBytes },
  }, (request, response) => {
    limitTimes(request);
    handler(...([request, response] as unknown as Parameters<RequestListener>));
  });
  server.setTimeout(LIMITS.idleMs);
  server.on('session', (session) => {
    sessions.add(session);
    session.once('close', () => sessions.delete(session));
    closeWhenIdle(session);
  });
  server.on('sessionError', (error) => log.debug({ err: error }, 'an HTTP/2 connection failed'));

  return {
    serve: (socket) => void server.emit('connection', socket),
    close: () => sessions.forEach((session) => session.close()),
  };
}

/** A client that opens nothing is no client, however often it pings. */
function closeWhenIdle(session: ServerHttp2Session): void {
  let open = 0;
  const timer = setTimeout(() => {
    if (open === 0) session.close();
  }, LIMITS.keepAliveMs);
  session.on('stream', (stream) => {
    open++;
    stream.once('close', () => {
      if (--open === 0 && !session.destroyed) timer.refresh();
    });
  });
  session.once('close', () => clearTimeout(timer));
}

/** Takes back a request whose body does not come to its end in time, and one whose answer nobody reads. */
function limitTimes(request: Http2ServerRequest): void {
  const { stream } = request;
  const takeBack = (): void => stream.close(constants.NGHTTP2_CANCEL);
  stream.setTimeout(LIMITS.idleMs, takeBack);
  if (stream.endAfterHeaders) return;
  const timer = setTimeout(takeBack, LIMITS.requestMs);
  const stop = (): void => clearTimeout(timer);
  request.once('end', stop);
  stream.once('close', stop);
}

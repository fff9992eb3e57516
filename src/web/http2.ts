import type { RequestListener } from 'node:http';
import {
  constants,
  createServer,
  type Http2ServerRequest,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Duplex } from 'node:stream';
import type { Logger } from '../log/log.ts';
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
  const server = createServer(
    {
      maxHeaderListPairs: LIMITS.headers,
      maxSessionMemory: HTTP2_LIMITS.sessionMemory,
      maxSessionInvalidFrames: HTTP2_LIMITS.invalidFrames,
      maxSessionRejectedStreams: HTTP2_LIMITS.rejectedStreams,
      maxOutstandingPings: HTTP2_LIMITS.outstandingPings,
      maxSettings: HTTP2_LIMITS.settings,
      streamResetBurst: HTTP2_LIMITS.resetBurst,
      streamResetRate: HTTP2_LIMITS.resetRate,
      settings: { maxConcurrentStreams: HTTP2_LIMITS.streams, maxHeaderListSize: LIMITS.headerBytes },
    },
    (request, response) => {
      limitBodyTime(request);
      handler(...([request, response] as unknown as Parameters<RequestListener>));
    },
  );
  server.setTimeout(LIMITS.idleMs);
  server.on('session', (session) => {
    sessions.add(session);
    session.once('close', () => sessions.delete(session));
    watch(session);
  });
  server.on('sessionError', (error) => log.debug({ err: error }, 'an HTTP/2 connection failed'));

  return {
    serve: (socket) => void server.emit('connection', socket),
    close: () => sessions.forEach((session) => session.close()),
  };
}

/** Closes a connection without streams, and resets streams whose answers are not read, however often the client pings. */
function watch(session: ServerHttp2Session): void {
  const open = new Map<ServerHttp2Stream, string>();
  const idle = setTimeout(() => {
    if (open.size === 0) session.close();
  }, LIMITS.keepAliveMs);
  const stalled = setInterval(() => {
    for (const [stream, seen] of open) {
      if (!stream.headersSent) continue;
      const progress = `${stream.writableLength} ${stream.state.localWindowSize}`;
      if (progress === seen) takeBack(stream);
      else open.set(stream, progress);
    }
  }, LIMITS.idleMs / 2);
  session.on('stream', (stream) => {
    open.set(stream, '');
    stream.once('close', () => {
      open.delete(stream);
      if (open.size === 0 && !session.destroyed) idle.refresh();
    });
  });
  session.once('close', () => {
    clearTimeout(idle);
    clearInterval(stalled);
  });
}

/** Takes back a request whose body does not come to its end in time. */
function limitBodyTime(request: Http2ServerRequest): void {
  const { stream } = request;
  if (stream.endAfterHeaders) return;
  const timer = setTimeout(() => takeBack(stream), LIMITS.requestMs);
  const stop = (): void => clearTimeout(timer);
  request.once('end', stop);
  stream.once('close', stop);
}

function takeBack(stream: ServerHttp2Stream): void {
  stream.close(constants.NGHTTP2_CANCEL);
}

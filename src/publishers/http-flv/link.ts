import type { Socket } from 'node:net';
import type { Exchange } from '../hls/answer/exchange.ts';
import type { Framing } from './framing.ts';

/** The way to a viewer. */
export interface MediaLink {
  readonly framing: Framing;
  /** Bytes that wait to be sent. */
  readonly unsent: number;
  /** @param writable called whenever all that was sent is out */
  begin(writable: () => void): void;
  /** Sends bytes in the framing of the link. */
  send(data: Buffer): void;
  /** Ends the media; what was sent goes out. */
  end(reason: string): void;
  /** Ends the connection at once. */
  destroy(): void;
}

/** Parts of a response of `node:http` and `node:http2` that a link writes to. */
interface Response {
  readonly socket: Socket | null;
  readonly writableLength: number;
  flushHeaders(): void;
  on(event: 'drain', listener: () => void): unknown;
}

/**
 * A response that goes on as long as the stream. Media of HTTP/1 is written to the socket behind the head of the response, in chunks
 * that are made once for all viewers; a response that has to wait for the one before it, and HTTP/2, take it as it is.
 * @param exchange with `node:http` or `node:http2`
 */
export function responseLink(exchange: Exchange, type: string): MediaLink {
  const response = exchange.response as Exchange['response'] & Response;
  const { httpVersion } = exchange.request as { readonly httpVersion?: string };
  const socket = httpVersion?.startsWith('1.') === true ? response.socket : null;
  const begin = (): void => {
    response.writeHead(200, { ...exchange.headers, 'content-type': type });
    response.flushHeaders();
  };
  const end = (): void => void response.end();
  const destroy = (): void => void response.destroy();
  if (socket === null)
    return {
      framing: 'plain',
      get unsent() {
        return response.writableLength;
      },
      begin: (writable) => {
        begin();
        response.on('drain', writable);
      },
      send: (data) => void response.write(data),
      end,
      destroy,
    };
  let writableAgain: (() => void) | undefined;
  return {
    framing: httpVersion === '1.1' ? 'chunked' : 'plain',
    get unsent() {
      return socket.writableLength;
    },
    begin: (writable) => {
      begin();
      writableAgain = writable;
      socket.on('drain', writable);
      // the connection may serve other requests after this one
      response.once('close', () => socket.off('drain', writable));
    },
    send: (data) => {
      // a client that has closed its side gets no more
      if (socket.writable) socket.write(data);
      else response.destroy();
    },
    end: () => {
      if (writableAgain !== undefined) socket.off('drain', writableAgain);
      end();
    },
    destroy,
  };
}

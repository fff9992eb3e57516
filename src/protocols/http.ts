import type { IncomingHttpHeaders } from 'node:http';

/** Parts of a request over HTTP that answers from memory depend on, common to `node:http`, `node:http2` and our own reader. */
export interface HttpRequest {
  readonly method?: string;
  readonly url?: string;
  readonly headers: { readonly [Name in HeaderRead]?: IncomingHttpHeaders[Name] };
  /** Identifies the connection. */
  readonly socket: object;
}

type HeaderRead =
  | ':authority'
  | 'accept-encoding'
  | 'access-control-request-headers'
  | 'cmcd-object'
  | 'cmcd-request'
  | 'cmcd-session'
  | 'cmcd-status'
  | 'host'
  | 'origin'
  | 'range'
  | 'x-forwarded-host';

/** Parts of a response over HTTP that writing an answer from memory takes, common to the same. */
export interface HttpResponse {
  readonly headersSent: boolean;
  /** Whether the response was sent or its client has left. */
  readonly destroyed: boolean;
  /** Bytes that are not handed to the operating system yet. */
  readonly writableLength: number;
  writeHead(status: number, headers: Readonly<Record<string, string | number>>): HttpResponse;
  cork(): void;
  write(chunk: Buffer): unknown;
  end(chunk?: Buffer): unknown;
  uncork(): void;
  /** `finish`: all bytes are handed to the operating system. `close`: the response is over, sent or not. */
  once(event: 'finish' | 'close', listener: () => void): unknown;
  /** Ends the connection. */
  destroy(): unknown;
}

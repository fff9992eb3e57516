import type { Socket } from 'node:net';
import { endedBy } from '../../lib/ended-by.ts';
import { unauthorized } from './authorization.ts';
import { RtspConnection } from './connection.ts';
import { baseUrl } from './control.ts';
import { readDescription, type RtspDescription } from './description.ts';
import { RtspError } from './error.ts';
import { header, type RtspResponse } from './message.ts';
import { checkMoved, type RtspTarget } from './redirect.ts';
import type { RtspUrl } from './url.ts';

/** Connects to a server, unless a signal aborts. @throws Error when that is not allowed, or fails */
export type Dial = (host: string, port: number, signal?: AbortSignal) => Promise<Socket>;

/** A server that has described a stream. */
export interface Described {
  readonly connection: RtspConnection;
  readonly socket: Socket;
  readonly url: RtspUrl;
  readonly description: RtspDescription;
  /** Base of relative URLs in the description. */
  readonly base: string;
  /** Methods that the server announced. */
  readonly methods: ReadonlySet<string>;
}

const OK = 200;
const UNAUTHORIZED = 401;

/**
 * Requests the description of a stream, follows redirects, and reconnects where a server wants that.
 * @throws RtspError for invalid or rejecting answers, or when the signal aborts, any error of `dial`; nothing is left open then
 */
export async function describe(target: RtspTarget, dial: Dial, signal: AbortSignal): Promise<Described> {
  for (;;) {
    try {
      return await describeAt(target, dial, signal);
    } catch (error) {
      target.follow(error);
    }
  }
}

async function describeAt(target: RtspTarget, dial: Dial, signal: AbortSignal): Promise<Described> {
  const socket = await dial(target.url.host, target.url.port, signal);
  return await endedBy(signal, () => socket.destroy(), describeOver(socket, target));
}

async function describeOver(socket: Socket, { url, authorization }: RtspTarget): Promise<Described> {
  const connection = new RtspConnection(socket, authorization);
  try {
    const options = await connection.ask('OPTIONS', url.href);
    const response = await connection
      .ask('DESCRIBE', url.href, { Accept: 'application/sdp' })
      .catch((error: unknown) => {
        // some close the connection on which they rejected a request
        throw options.status === UNAUTHORIZED ? new RtspError(unauthorized(authorization), UNAUTHORIZED) : error;
      });
    checkMoved(response);
    const { status, reason, headers, body } = response;
    if (status === UNAUTHORIZED) throw new RtspError(unauthorized(authorization), status);
    if (status !== OK) throw new RtspError(`the server refused (${status}): ${reason}`, status);
    const base = baseUrl(url.href, header(headers, 'content-base'), header(headers, 'content-location'));
    return {
      connection,
      socket,
      url,
      methods: methodsOf(options),
      base,
      description: readDescription(body.toString('utf8')),
    };
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** Methods of the answer to OPTIONS. */
export function methodsOf({ headers }: RtspResponse): Set<string> {
  return new Set(
    (headers.get('public') ?? []).flatMap((field) => field.split(',')).map((method) => method.trim().toUpperCase()),
  );
}

import { once } from 'node:events';
import { connect as connectHttp2, type ClientHttp2Session, type IncomingHttpHeaders, type Settings } from 'node:http2';
import { Agent, request } from 'node:https';
import type { IncomingMessage } from 'node:http';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type { ExecutionContext } from 'ava';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface Call {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

/** A client's connection over TLS that carries call after call. It takes any certificate: tests look at it. */
export interface Client {
  readonly protocol: 'h1' | 'h2';
  readonly socket: TLSSocket;
  call(path: string, call?: Call): Promise<Answer>;
}

export const PROTOCOLS = ['h1', 'h2'] as const;

/** Opens a connection for one of the versions of HTTP; ends with the test. */
export async function openClient(
  t: Pick<ExecutionContext, 'teardown'>,
  protocol: 'h1' | 'h2',
  port: number,
  servername = 'localhost',
): Promise<Client> {
  const socket = await openTls(t, port, { servername, ALPNProtocols: [protocol === 'h2' ? 'h2' : 'http/1.1'] });
  return protocol === 'h2' ? http2Client(t, socket, servername) : http1Client(t, socket, servername);
}

/** A TLS connection with the handshake done. */
export async function openTls(
  t: Pick<ExecutionContext, 'teardown'>,
  port: number,
  options: { servername?: string; ALPNProtocols?: string[]; session?: Buffer } = {},
): Promise<TLSSocket> {
  const socket = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false, ...options });
  t.teardown(() => socket.destroy());
  await once(socket, 'secureConnect');
  socket.on('error', () => {});
  return socket;
}

/** Common name of the certificate that the server showed. */
export function shownName(socket: TLSSocket): string {
  return socket.getPeerCertificate().subject.CN as string;
}

function http1Client(t: Pick<ExecutionContext, 'teardown'>, socket: TLSSocket, host: string): Client {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  agent.createConnection = () => socket;
  t.teardown(() => agent.destroy());
  return {
    protocol: 'h1',
    socket,
    call: async (path, { method = 'GET', headers, body } = {}) => {
      const outgoing = request({ agent, path, method, host: '127.0.0.1', headers: { host, ...headers } }).end(body);
      const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
      return { status: response.statusCode as number, headers: response.headers, body: await read(response) };
    },
  };
}

function http2Client(t: Pick<ExecutionContext, 'teardown'>, socket: TLSSocket, host: string): Client {
  const session = openSession(t, socket, host);
  return {
    protocol: 'h2',
    socket,
    call: async (path, { method = 'GET', headers, body } = {}) => {
      const stream = session.request(
        { ':path': path, ':method': method, ...headers },
        { endStream: body === undefined },
      );
      if (body !== undefined) stream.end(body);
      // a stream may close without an error
      const closed = new AbortController();
      stream.once('close', () => closed.abort(new Error('the stream was closed without an answer')));
      const [response] = (await once(stream, 'response', { signal: closed.signal })) as [
        IncomingHttpHeaders & { ':status': number },
      ];
      return { status: response[':status'], headers: response, body: await read(stream) };
    },
  };
}

/** HTTP/2 on a connection that agreed on it. */
export function openSession(
  t: Pick<ExecutionContext, 'teardown'>,
  socket: TLSSocket,
  host = 'localhost',
  settings: Settings = {},
): ClientHttp2Session {
  const session = connectHttp2(`https://${host}`, { createConnection: () => socket, settings });
  t.teardown(() => session.destroy());
  session.on('error', () => {});
  return session;
}

async function read(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

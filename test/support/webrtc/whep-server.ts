import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { ExecutionContext } from 'ava';

export interface Asked {
  readonly method: string;
  readonly url: string;
  readonly authorization: string | undefined;
  readonly body: string;
}

export type SignallingAnswer = (request: Asked, response: ServerResponse) => void | Promise<void>;

/** An HTTP server that answers as an endpoint of WHIP or WHEP should, or should not. */
export async function serveSignalling(t: Pick<ExecutionContext, 'teardown'>, answer: SignallingAnswer) {
  const asked: Asked[] = [];
  const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks = await request.toArray();
    const { method = '', url = '', headers } = request;
    const one = { method, url, authorization: headers.authorization, body: Buffer.concat(chunks).toString() };
    asked.push(one);
    await answer(one, response);
  };
  const server = createServer((request, response) => void take(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return { host: `127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

/** Answers an offer with SDP. */
export function accept(response: ServerResponse, sdp: string, location = '/session'): void {
  response.writeHead(201, { 'Content-Type': 'application/sdp', Location: location }).end(sdp);
}

/** An answer that names the certificate of somebody else. */
export function withOtherFingerprint(sdp: string): string {
  return sdp.replaceAll(/(a=fingerprint:sha-256 )(..):(..)/g, (_, before: string, one: string, other: string) => {
    return `${before}${one === '00' ? '01' : '00'}:${other}`;
  });
}

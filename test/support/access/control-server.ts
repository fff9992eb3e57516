import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ExecutionContext } from 'ava';

/** What a control server was asked. */
export interface Question {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

type Answer = (response: ServerResponse, question: Question) => void;

/** Answers with a status and JSON. */
export function json(body: unknown, status = 200): (response: ServerResponse) => void {
  return (response) =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** An operator's server on loopback; `questions` fills as it is asked, and `connections` counts those that were made. */
export async function controlServer(
  t: Pick<ExecutionContext, 'teardown'>,
  answer: Answer,
): Promise<{ url: string; questions: Question[]; connections: () => number }> {
  const questions: Question[] = [];
  let connections = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request
      .on('data', (chunk: Buffer) => chunks.push(chunk))
      .on('end', () => {
        const { method, url, headers } = request;
        const question = { method, url, headers, body: Buffer.concat(chunks) };
        questions.push(question);
        answer(response, question);
      });
  });
  server.on('connection', () => connections++);
  await new Promise<void>((listening) => void server.listen(0, '127.0.0.1', listening));
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/profiles?for=kiln`,
    questions,
    connections: () => connections,
  };
}

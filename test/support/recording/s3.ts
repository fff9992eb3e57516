import { createHash } from 'node:crypto';
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ExecutionContext } from 'ava';
import { GetObjectCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import { startFauxqs } from 'fauxqs';

export interface S3Request {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  /** If-None-Match. */
  readonly condition: string | undefined;
}

/**
 * A storage with an empty bucket `records`, behind a proxy that checks each Content-MD5 and fails as it is told.
 * `refuse` answers a status for a request that does not reach the storage, 0 to end its connection, and undefined to pass it.
 */
export async function openS3(t: Pick<ExecutionContext, 'teardown'>) {
  const storage = await startFauxqs({ port: 0, host: '127.0.0.1', logger: false, init: { buckets: ['records'] } });
  const requests: S3Request[] = [];
  const proxy = { refuse: (_request: S3Request): number | undefined => undefined };
  const server = createServer(async (request, response) => {
    const { method = '', url = '', headers } = request;
    const body = await bodyOf(request).catch(() => undefined);
    // its node has stopped
    if (body === undefined) return;
    const asked = { method, url, condition: headers['if-none-match'] };
    requests.push(asked);
    const md5 = headers['content-md5'];
    const isDamaged = md5 !== undefined && md5 !== createHash('md5').update(body).digest('base64');
    const status = isDamaged ? 400 : proxy.refuse(asked);
    if (status === 0) return void request.socket.destroy();
    const code = status === 501 ? 'NotImplemented' : `Code${status}`;
    if (status !== undefined) return void response.writeHead(status).end(`<Error><Code>${code}</Code></Error>`);
    const onward = httpRequest({ host: '127.0.0.1', port: storage.port, method, path: url, headers, agent: false });
    onward.on('error', () => request.socket.destroy());
    onward.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    onward.end(body);
  });
  await new Promise<void>((listening) => void server.listen(0, '127.0.0.1', listening));
  const settings = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    region: 'us-east-1',
    bucket: 'records',
    accessKeyId: 'key',
    secretAccessKey: 'very secret',
    forcePathStyle: true,
  };
  const client = new S3Client({
    ...settings,
    credentials: settings,
    endpoint: `http://127.0.0.1:${storage.port}`,
  });
  t.teardown(async () => {
    client.destroy();
    server.close();
    server.closeAllConnections();
    await storage.stop();
  });
  return {
    settings,
    requests,
    proxy,
    keys: async (): Promise<string[]> => {
      const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket: 'records' }));
      return Contents.map(({ Key = '' }) => Key);
    },
    get: async (key: string): Promise<Buffer> => {
      const { Body } = await client.send(new GetObjectCommand({ Bucket: 'records', Key: key }));
      return Buffer.from((await Body?.transformToByteArray()) ?? []);
    },
  };
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

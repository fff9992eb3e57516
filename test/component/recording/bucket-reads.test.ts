import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { Buckets } from '../../../src/recording/delivery/buckets.ts';
import { BucketError } from '../../../src/recording/delivery/upload.ts';
import { openS3 } from '../../support/recording/s3.ts';
import { until } from '../../support/time/until.ts';

const MIB = 1024 * 1024;

function openBuckets(t: ExecutionContext): Buckets {
  const buckets = new Buckets();
  t.teardown(() => buckets.close());
  return buckets;
}

/** A storage with an uploaded object. */
async function openStored(t: ExecutionContext, size: number) {
  const s3 = await openS3(t);
  const buckets = openBuckets(t);
  const folder = mkdtempSync(join(tmpdir(), 'kiln-bucket-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const put = async (key: string, bytes: Buffer) => {
    const path = join(folder, 'file.mp4');
    writeFileSync(path, bytes);
    const { signal } = new AbortController();
    const stored = await buckets.upload({ id: key, path, key }, s3.settings, signal, () => undefined);
    return stored?.etag ?? '';
  };
  const bytes = randomBytes(size);
  const etag = await put('a b.mp4', bytes);
  s3.requests.length = 0;
  return { s3, buckets, put, bytes, etag, object: { key: 'a b.mp4', etag, size } };
}

/** A storage that answers as it is told. */
async function oddStorage(t: ExecutionContext, answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = createServer(answer);
  await new Promise<void>((listening) => void server.listen(0, '127.0.0.1', listening));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    ...{ endpoint: `http://127.0.0.1:${port}`, region: 'us-east-1', bucket: 'records', forcePathStyle: true },
    ...{ accessKeyId: 'key', secretAccessKey: 'very secret' },
  };
}

const RANGE = { key: 'k', etag: 'e', size: 100, start: 10, end: 20 };

test('parts of an object are read, of small and of large ones', async (t) => {
  const { buckets, s3, object, bytes, put } = await openStored(t, 9 * MIB);
  for (const [start, end] of [
    [0, 1],
    [100, MIB + 100],
    [9 * MIB - 10, 9 * MIB],
  ] as const) {
    const found = await buckets.read({ ...object, start, end }, s3.settings);
    t.true(Buffer.from(found.bytes).equals(bytes.subarray(start, end)));
    t.is(found.etag, object.etag);
  }
  t.deepEqual(
    s3.requests.map(({ method, url }) => [method, url.split('?')[0]]),
    Array.from({ length: 3 }, () => ['GET', '/records/a%20b.mp4']),
  );
  const etag = await put('small.mp4', Buffer.from('0123456789'));
  const small = await buckets.read({ key: 'small.mp4', etag, size: 10, start: 3, end: 7 }, s3.settings);
  t.is(Buffer.from(small.bytes).toString(), '3456');
});

test('objects that are gone, were replaced or have another size are told apart', async (t) => {
  const { buckets, s3, object } = await openStored(t, 1000);
  const fails = async (range: object, code: string) => {
    const asked = { ...object, start: 0, end: 10, ...range };
    await t.throwsAsync(buckets.read(asked, s3.settings), { instanceOf: BucketError, code });
  };
  await fails({ key: 'none.mp4' }, 'NoSuchKey');
  await fails({ etag: '0'.repeat(32) }, 'PreconditionFailed');
  await fails({ etag: undefined, size: 999 }, 'PreconditionFailed');
  await fails({ size: 2000, start: 1500, end: 1600 }, 'InvalidRange');
  const nowhere = { ...s3.settings, bucket: 'nowhere' };
  await t.throwsAsync(buckets.read({ ...object, start: 0, end: 10 }, nowhere), { code: 'NoSuchBucket' });
  const { bytes } = await buckets.read({ ...object, etag: undefined, start: 0, end: 10 }, s3.settings);
  t.is(bytes.byteLength, 10);
});

test('a storage that refuses a read for a moment is asked again', async (t) => {
  const { buckets, s3, object } = await openStored(t, 1000);
  let left = 2;
  s3.proxy.refuse = () => (left-- > 0 ? 503 : undefined);
  t.is((await buckets.read({ ...object, start: 0, end: 10 }, s3.settings)).bytes.byteLength, 10);
  t.is(s3.requests.length, 3);
  s3.proxy.refuse = () => 403;
  await t.throwsAsync(buckets.read({ ...object, start: 0, end: 10 }, s3.settings), { code: 'Code403' });
});

test('a storage that sends something else than was asked for is no source', async (t) => {
  let answer = (_response: ServerResponse): void => undefined;
  const settings = await oddStorage(t, (_request, response) => answer(response));
  const buckets = openBuckets(t);
  const head = { etag: '"e"', 'content-range': 'bytes 10-19/100' };
  const fails = async (code: string, write: typeof answer) => {
    answer = write;
    await t.throwsAsync(buckets.read(RANGE, settings), { instanceOf: BucketError, code });
  };
  await fails('PreconditionFailed', (response) => response.writeHead(200, { etag: '"e"' }).end('x'.repeat(100)));
  await fails('PreconditionFailed', (response) => response.writeHead(206, { ...head, etag: '"f"' }).end('0123456789'));
  await fails('PreconditionFailed', (response) =>
    response.writeHead(206, { ...head, 'content-range': 'bytes 0-9/100' }).end('0123456789'),
  );
  await fails('TooLong', (response) => response.writeHead(206, head).end('x'.repeat(11)));
  await fails('CutOff', (response) => response.writeHead(206, head).end('x'));
  await fails('CutOff', (response) => {
    response.writeHead(206, { ...head, 'content-length': 10 }).write('01234');
    setImmediate(() => response.destroy());
  });
  answer = (response) => response.writeHead(206, head).end('0123456789');
  t.is(Buffer.from((await buckets.read(RANGE, settings)).bytes).toString(), '0123456789');
});

test('a read that is aborted ends its request', async (t) => {
  const requests: ServerResponse[] = [];
  const settings = await oddStorage(t, (_request, response) => {
    requests.push(response);
    if (requests.length === 2)
      response.writeHead(206, { etag: '"e"', 'content-range': 'bytes 10-19/100', 'content-length': 10 }).write('012');
  });
  const buckets = openBuckets(t);
  for (const count of [1, 2]) {
    const gone = new AbortController();
    const read = buckets.read(RANGE, settings, gone.signal);
    await until('it is asked for', () => requests.length === count);
    gone.abort(new Error('the viewer left'));
    await t.throwsAsync(read, { message: 'the viewer left' });
    await until('its connection is closed', () => requests[count - 1]?.destroyed === true);
  }
  await t.throwsAsync(buckets.read(RANGE, settings, AbortSignal.abort(new Error('left before'))), {
    message: 'left before',
  });
});

test('a storage that does not answer is waited for in vain for a while, with few requests at a time', async (t) => {
  const requests: IncomingMessage[] = [];
  const settings = await oddStorage(t, (request) => void requests.push(request));
  const buckets = openBuckets(t);
  const gone = new AbortController();
  const reads = Array.from({ length: 32 + 256 }, (_, index) =>
    buckets.read(RANGE, settings, index === 0 ? undefined : gone.signal),
  );
  const failures = Promise.all(reads.map((read) => t.throwsAsync(read)));
  await t.throwsAsync(buckets.read(RANGE, settings), { instanceOf: BucketError, code: 'Busy' });
  await until('the first ones are asked for', () => requests.length >= 32);
  t.is(requests.length, 32);
  gone.abort(new Error('left'));
  const [late, ...left] = await failures;
  t.like(late, { code: 'Timeout' });
  t.true(left.every((error) => error?.message === 'left'));
});

test('buckets that are closed end what they read', async (t) => {
  const requests: IncomingMessage[] = [];
  const settings = await oddStorage(t, (request) => void requests.push(request));
  const buckets = openBuckets(t);
  const read = t.throwsAsync(buckets.read(RANGE, settings), { instanceOf: BucketError, code: 'Ended' });
  await until('it is asked for', () => requests.length > 0);
  await buckets.close();
  await read;
  await t.throwsAsync(buckets.read(RANGE, settings), { code: 'Closed' });
});

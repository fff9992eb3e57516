import test from 'ava';
import { SourceError } from '../../../src/playback/byte-source.ts';
import { StoredReads } from '../../../src/playback/stored-reads.ts';
import { BucketError } from '../../../src/recording/delivery/upload.ts';
import { memoryBucket } from '../../support/playback/stored.ts';

const NAMES = { vhost: 'v', app: 'a' };
const KIB = 1024;
const BLOCK = 512 * KIB;

function open(size: number, more: Parameters<typeof memoryBucket>[1] = {}) {
  const bucket = memoryBucket(size, more);
  const reads = new StoredReads(bucket.stored);
  return { ...bucket, storedReads: reads, source: reads.source(NAMES, 'id', bucket.file) };
}

test('pieces of any place and size are exactly the bytes that are there', async (t) => {
  const { source, bytes, storedReads } = open(3 * BLOCK + 5000);
  t.is(source.size, bytes.length);
  for (const [offset, length] of [
    [0, 10],
    [0, 0],
    [bytes.length, 0],
    [BLOCK - 5, 10],
    [BLOCK, BLOCK],
    [BLOCK - 1, BLOCK],
    [7, BLOCK + 1],
    [3 * BLOCK, 5000],
    [0, bytes.length],
  ] as const)
    t.true((await source.read(offset, length)).equals(bytes.subarray(offset, offset + length)), `${offset} ${length}`);
  for (const [offset, length] of [
    [-1, 2],
    [0, -1],
    [bytes.length, 1],
    [2 ** 40, 1],
  ] as const)
    await t.throwsAsync(source.read(offset, length), { instanceOf: SourceError });
  storedReads.close();
  storedReads.close();
});

test('small pieces that are near each other are one request, of which media make ranges of a MiB', async (t) => {
  const { source, reads } = open(8 * BLOCK);
  for (let at = 0; at < 100 * KIB; at += KIB) await source.read(at, KIB);
  t.deepEqual(reads, [{ start: 0, end: BLOCK, etag: 'one' }]);
  await Promise.all([1, 2, 3].map((at) => source.read(BLOCK + at, 10)));
  t.is(reads.length, 2);
  reads.length = 0;
  await source.read(100, 5 * BLOCK);
  t.deepEqual(
    reads.map(({ start, end }) => [start, end]),
    [
      [100, 100 + 2 * BLOCK],
      [100 + 2 * BLOCK, 100 + 4 * BLOCK],
      [100 + 4 * BLOCK, 100 + 5 * BLOCK],
    ],
  );
});

test("bytes that were read are the caller's own", async (t) => {
  const { source, bytes } = open(BLOCK);
  (await source.read(0, 100)).fill(0);
  (await source.read(0, BLOCK)).fill(0);
  t.deepEqual(await source.read(0, 100), bytes.subarray(0, 100));
});

test('only a limited number of blocks is kept, those that were used last', async (t) => {
  const { source, reads } = open(40 * BLOCK);
  for (let block = 0; block < 32; block++) await source.read(block * BLOCK, 1);
  await source.read(0, 1);
  t.is(reads.length, 32);
  await source.read(32 * BLOCK, 1);
  await source.read(0, 1);
  t.is(reads.length, 33);
  await source.read(BLOCK, 1);
  t.is(reads.length, 34);
});

test('a viewer that leaves ends its own wait, and a block that others wait for comes all the same', async (t) => {
  const { source, bytes, reads, state } = open(4 * BLOCK);
  const { promise, resolve } = Promise.withResolvers<void>();
  state.held = promise;
  const gone = new AbortController();
  const [left, stays] = [source.read(5, 10, gone.signal), source.read(6, 10)];
  const large = source.read(0, 3 * BLOCK, gone.signal);
  gone.abort(new Error('gone'));
  await t.throwsAsync(left, { message: 'gone' });
  resolve();
  await t.throwsAsync(large, { message: 'gone' });
  t.deepEqual(await stays, bytes.subarray(6, 16));
  t.is(reads.length, 2);
  await t.throwsAsync(source.read(0, 1, gone.signal), { message: 'gone' });
});

test('an object that was replaced is told, also where the tag of the upload is not known', async (t) => {
  const known = open(2 * BLOCK, { etag: 'other' });
  await t.throwsAsync(known.source.read(0, 1), {
    instanceOf: SourceError,
    message: 'it was replaced by another object: k in the bucket b',
  });
  const { bucket, key, url, size } = known.file;
  const unknown = memoryBucket(2 * BLOCK);
  const source = new StoredReads(unknown.stored).source(NAMES, 'id', { bucket, key, url, size });
  await source.read(0, 1);
  unknown.state.etag = 'two';
  t.is((await source.read(0, 1)).length, 1);
  await t.throwsAsync(source.read(BLOCK, 1), { instanceOf: SourceError, message: /replaced/ });
  t.deepEqual(
    unknown.reads.map(({ etag }) => etag),
    [undefined, 'one'],
  );
});

test('what fails is told, and read again by the next who asks', async (t) => {
  const { file, stored, bytes } = memoryBucket(2 * BLOCK);
  let failure: Error | undefined;
  const source = new StoredReads({
    read: async (...asked) => {
      if (failure !== undefined) throw failure;
      return await stored.read(...asked);
    },
  }).source(NAMES, 'id', file);
  const cases = [
    [new BucketError('NoSuchKey', 'NoSuchKey: x'), 'it is gone: k in the bucket b'],
    [new BucketError('404', '404: x'), 'it is gone: k in the bucket b'],
    [new BucketError('412', '412: x'), 'it was replaced by another object: k in the bucket b'],
    [new BucketError('AccessDenied', 'AccessDenied: no'), 'AccessDenied: no: k in the bucket b'],
  ] as const;
  for (const [error, message] of cases) {
    failure = error;
    await t.throwsAsync(source.read(0, 1), { instanceOf: SourceError, message });
    await t.throwsAsync(source.read(0, BLOCK + 1), { instanceOf: SourceError, message });
  }
  failure = new BucketError('Busy', 'too much');
  await t.throwsAsync(source.read(0, 1), { code: 'playbackBusy' });
  failure = undefined;
  t.deepEqual(await source.read(0, 1), bytes.subarray(0, 1));
});

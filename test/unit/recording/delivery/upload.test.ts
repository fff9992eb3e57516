import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import {
  BucketError,
  upload,
  type Bucket,
  type FileRange,
  type NewObject,
  type Progress,
  type Stored,
} from '../../../../src/recording/delivery/upload.ts';

const MIB = 1024 * 1024;
type Call = keyof Bucket;

/** A storage in memory that can be made to fail, before or after it has done what it was asked. */
class MemoryBucket implements Bucket {
  readonly place = 'memory/bucket';
  readonly objects = new Map<string, { id: string; data: Buffer; etag: string }>();
  readonly uploads = new Map<string, { object: NewObject; parts: Map<number, Buffer> }>();
  readonly calls: Call[] = [];
  /** The next calls of a kind fail so. */
  readonly failures: { call: Call; code: string; when: 'before' | 'after' }[] = [];
  etagOf = (data: Buffer): string => md5(data, 'hex');
  encrypted = false;
  mayHead = true;

  put({ key, id }: NewObject, range: FileRange, given: string): Promise<Stored> {
    return this.#do('put', () => {
      this.#refuseTaken(key);
      const data = read(range, given);
      const etag = this.etagOf(data);
      this.objects.set(key, { id, data, etag });
      return { etag: `"${etag}"`, encrypted: this.encrypted };
    });
  }

  create(object: NewObject): Promise<string> {
    return this.#do('create', () => {
      const id = `upload-${this.calls.length}`;
      this.uploads.set(id, { object, parts: new Map() });
      return id;
    });
  }

  putPart(key: string, uploadId: string, number: number, range: FileRange, given: string): Promise<Stored> {
    return this.#do('putPart', () => {
      const data = read(range, given);
      this.#upload(key, uploadId).parts.set(number, data);
      return { etag: `"${this.etagOf(data)}"`, encrypted: this.encrypted };
    });
  }

  complete(key: string, uploadId: string, etags: readonly string[]): Promise<string> {
    return this.#do('complete', () => {
      const { object, parts } = this.#upload(key, uploadId);
      const data = etags.map((etag, index) => {
        const part = parts.get(index + 1);
        if (part === undefined || `"${this.etagOf(part)}"` !== etag)
          throw new BucketError('InvalidPart', 'no such part');
        return part;
      });
      this.#refuseTaken(key);
      this.uploads.delete(uploadId);
      this.objects.set(key, { id: object.id, data: Buffer.concat(data), etag: 'whole' });
      return '"whole"';
    });
  }

  abort(key: string, uploadId: string): Promise<void> {
    return this.#do('abort', () => {
      this.#upload(key, uploadId);
      this.uploads.delete(uploadId);
    });
  }

  head(key: string): Promise<(Stored & { id: string }) | undefined> {
    return this.#do('head', () => {
      const found = this.objects.get(key);
      if (found === undefined || !this.mayHead) return undefined;
      return { id: found.id, etag: `"${found.etag}"`, encrypted: this.encrypted };
    });
  }

  async #do<T>(call: Call, step: () => T): Promise<T> {
    this.calls.push(call);
    const failure = this.failures[0]?.call === call ? this.failures.shift() : undefined;
    if (failure?.when === 'before') throw new BucketError(failure.code, failure.code);
    const answer = step();
    if (failure !== undefined) throw new BucketError(failure.code, failure.code);
    return answer;
  }

  #refuseTaken(key: string): void {
    if (this.objects.has(key)) throw new BucketError('PreconditionFailed', 'there is one');
  }

  #upload(key: string, uploadId: string) {
    const found = this.uploads.get(uploadId);
    if (found?.object.key !== key) throw new BucketError('NoSuchUpload', 'no such upload');
    return found;
  }
}

function md5(data: Buffer, encoding: 'hex' | 'base64'): string {
  return createHash('md5').update(data).digest(encoding);
}

function read({ path, start, end }: FileRange, given: string): Buffer {
  const data = readFileSync(path).subarray(start, end);
  if (md5(data, 'base64') !== given) throw new BucketError('BadDigest', 'other content');
  return data;
}

/** A file, a storage, and tries to bring the one into the other as a node does that remembers its progress. */
function scene(t: ExecutionContext, bytes: number) {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-upload-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'a.mp4');
  const data = randomBytes(bytes);
  writeFileSync(path, data);
  const bucket = new MemoryBucket();
  const task = { id: 'delivery', path, key: 'x/a.mp4' };
  let progress: Progress | undefined;
  return {
    data,
    path,
    bucket,
    progress: () => progress,
    attempt: () => upload({ ...task, progress }, bucket, (now) => (progress = now)),
    object: (key = 'x/a.mp4') => bucket.objects.get(key)?.data,
  };
}

for (const bytes of [0, 1, 8 * MIB]) {
  test(`a file of ${bytes} bytes is one request`, async (t) => {
    const { bucket, attempt, object, data } = scene(t, bytes);
    t.deepEqual(await attempt(), { key: 'x/a.mp4', etag: md5(data, 'hex'), verified: true });
    t.deepEqual(bucket.calls, ['put']);
    t.true(object()?.equals(data));
  });
}

test('a larger file goes in parts, and another try goes on after the last one that is there', async (t) => {
  const { bucket, attempt, object, data, progress } = scene(t, 25 * MIB);
  bucket.failures.push({ call: 'putPart', code: 'ECONNRESET', when: 'after' });
  await t.throwsAsync(attempt);
  t.is(progress()?.etags.length, 0);
  await t.throwsAsync(async () => {
    const all = attempt();
    bucket.failures.push({ call: 'complete', code: 'SlowDown', when: 'before' });
    await all;
  });
  t.is(progress()?.etags.length, 4);
  bucket.calls.length = 0;
  t.deepEqual(await attempt(), { key: 'x/a.mp4', etag: 'whole', verified: true });
  t.deepEqual(bucket.calls, ['complete']);
  t.true(object()?.equals(data));
});

test('an answer that was lost is found out: nothing is stored twice', async (t) => {
  for (const [bytes, call] of [
    [9 * MIB, 'complete'],
    [9, 'put'],
  ] as const) {
    const { bucket, attempt } = scene(t, bytes);
    bucket.failures.push({ call, code: 'ECONNRESET', when: 'after' });
    await t.throwsAsync(attempt);
    t.is((await attempt())?.key, 'x/a.mp4');
    t.deepEqual([...bucket.objects.keys()], ['x/a.mp4']);
    t.is(bucket.uploads.size, 0);
  }
});

for (const code of ['NoSuchUpload', 'InvalidPart']) {
  test(`parts that the storage has lost are uploaded again (${code})`, async (t) => {
    const { bucket, attempt, object, data, progress } = scene(t, 17 * MIB);
    bucket.failures.push({ call: 'complete', code: 'SlowDown', when: 'before' });
    await t.throwsAsync(attempt);
    if (code === 'NoSuchUpload') bucket.uploads.clear();
    else for (const { parts } of bucket.uploads.values()) parts.delete(2);
    await t.throwsAsync(attempt, { instanceOf: BucketError });
    t.is(progress(), undefined);
    await attempt();
    t.true(object()?.equals(data));
    t.is(bucket.uploads.size, 0);
  });
}

for (const bytes of [10, 9 * MIB]) {
  for (const mayHead of [true, false]) {
    test(`an object of others stays: ${bytes} bytes, HEAD ${mayHead ? 'allowed' : 'refused'}`, async (t) => {
      const { bucket, attempt, object, data } = scene(t, bytes);
      bucket.mayHead = mayHead;
      bucket.objects.set('x/a.mp4', { id: 'other', data: Buffer.from('other'), etag: 'other' });
      t.is((await attempt())?.key, 'x/a_1.mp4');
      t.is(object()?.toString(), 'other');
      t.true(object('x/a_1.mp4')?.equals(data));
      t.is(bucket.uploads.size, 0);
    });
  }
}

test('a storage that has something else is an error, and one that does not say leaves it open', async (t) => {
  const { bucket, attempt } = scene(t, 10);
  bucket.etagOf = () => '0'.repeat(32);
  await t.throwsAsync(attempt, { message: /other content/ });
  bucket.objects.clear();
  bucket.etagOf = () => 'opaque';
  t.false((await attempt())?.verified);
  bucket.objects.clear();
  bucket.encrypted = true;
  bucket.etagOf = () => '0'.repeat(32);
  t.true((await attempt())?.verified);
});

test('a file that is another one by now begins anew, and one that is gone is left', async (t) => {
  const { bucket, attempt, object, data, path, progress } = scene(t, 20 * MIB);
  bucket.failures.push({ call: 'complete', code: 'SlowDown', when: 'before' });
  await t.throwsAsync(attempt);
  truncateSync(path, 12 * MIB);
  bucket.failures.push({ call: 'complete', code: 'SlowDown', when: 'before' });
  await t.throwsAsync(attempt);
  t.is(bucket.uploads.size, 1);
  rmSync(path);
  t.is(await attempt(), undefined);
  t.is(bucket.uploads.size, 0);
  t.is(progress(), undefined);
  writeFileSync(path, data);
  await attempt();
  t.true(object()?.equals(data));
});

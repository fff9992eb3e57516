import type { FileHandle } from 'node:fs/promises';
import test from 'ava';
import { DiskCalls } from '../../../src/core/disk-calls.ts';
import { Disks } from '../../../src/core/disks.ts';
import { FileWriter } from '../../../src/recording/file-writer.ts';

const MIB = 1024 * 1024;
const NOT_EXPECTED = (error: Error): void => {
  throw error;
};

/** A file in memory, whose calls wait until they are let go. */
class FakeFile {
  readonly calls: string[] = [];
  bytes = Buffer.alloc(0);
  isClosed = false;
  /** Of a write: how many of the bytes are taken. */
  room = Infinity;
  held = false;
  readonly #waiting: (() => void)[] = [];

  get waiting(): number {
    return this.#waiting.length;
  }

  letGo(): void {
    this.held = false;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  writev(pieces: readonly Buffer[], at: number) {
    return this.#call('writev', () => this.#put(Buffer.concat(pieces), at));
  }

  write(data: Buffer, from: number, length: number, at: number) {
    return this.#call('write', () => this.#put(data.subarray(from, from + length), at));
  }

  datasync() {
    return this.#call('datasync', () => undefined);
  }

  sync() {
    return this.#call('sync', () => undefined);
  }

  close() {
    this.isClosed = true;
    return Promise.resolve();
  }

  #put(data: Buffer, at: number) {
    const taken = data.subarray(0, this.room);
    const size = Math.max(this.bytes.length, at + taken.length);
    this.bytes = Buffer.concat([this.bytes, Buffer.alloc(size - this.bytes.length)]);
    taken.copy(this.bytes, at);
    return { bytesWritten: taken.length };
  }

  async #call<T>(name: string, effect: () => T): Promise<T> {
    this.calls.push(name);
    if (this.held) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return effect();
  }
}

function opened(file: FakeFile): Promise<FileHandle> {
  return Promise.resolve(file as unknown as FileHandle);
}

async function ticks(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await Promise.resolve();
}

test('data that comes while a write ends is written, too, whenever it comes', async (t) => {
  for (let delay = 0; delay < 40; delay++) {
    const file = new FakeFile();
    const writer = new FileWriter(opened(file), new Disks(new DiskCalls()).open('/'), {
      waitMs: 0,
      onFailure: NOT_EXPECTED,
    });
    writer.append([Buffer.from('a')]);
    await ticks(delay);
    writer.append([Buffer.from('b')]);
    await ticks(40);
    t.is(file.bytes.toString(), 'ab', `${delay}`);
    await writer.end([]);
    t.true(file.isClosed);
  }
});

test('a fragment is written at once, small pieces together', async (t) => {
  for (const [waitMs, calls] of [
    [0, 2],
    [60_000, 1],
  ] as const) {
    const file = new FakeFile();
    const writer = new FileWriter(opened(file), new Disks(new DiskCalls()).open('/'), {
      waitMs,
      onFailure: NOT_EXPECTED,
    });
    writer.append([Buffer.from('a')]);
    await ticks(20);
    writer.append([Buffer.from('b')]);
    await ticks(20);
    await writer.end([]);
    t.is(file.calls.filter((call) => call === 'writev').length, calls);
  }
});

test('a disk that takes parts gets the rest, of patches, too', async (t) => {
  const file = new FakeFile();
  file.room = 3;
  const writer = new FileWriter(opened(file), new Disks(new DiskCalls()).open('/'), {
    waitMs: 0,
    onFailure: NOT_EXPECTED,
  });
  writer.append([Buffer.from('01'), Buffer.from('2345'), Buffer.alloc(0), Buffer.from('6789')]);
  await writer.end([{ at: 1, data: Buffer.from('abcdefg') }]);
  t.is(file.bytes.toString(), '0abcdefg89');
});

test('the index is on the disk before what leads to it', async (t) => {
  const file = new FakeFile();
  const writer = new FileWriter(opened(file), new Disks(new DiskCalls()).open('/'), {
    waitMs: 0,
    onFailure: NOT_EXPECTED,
  });
  writer.append([Buffer.from('0123')]);
  await writer.end([{ at: 1, data: Buffer.from('x') }]);
  t.deepEqual(file.calls, ['writev', 'datasync', 'write', 'sync']);
});

test('files of one recording have one limit together, and what has failed holds no memory', async (t) => {
  const disk = new Disks(new DiskCalls()).open('/');
  const failures: string[] = [];
  const file = new FakeFile();
  file.held = true;
  const writers = Array.from(
    { length: 10 },
    () => new FileWriter(opened(file), disk, { waitMs: 0, onFailure: (error) => failures.push(error.message) }),
  );
  const piece = Buffer.alloc(MIB);
  for (let i = 0; i < 6; i++) for (const writer of writers) writer.append([piece]);
  t.deepEqual(failures, []);
  for (const writer of writers) writer.append([piece]);
  t.deepEqual([...new Set(failures)], ['the disk is too slow']);
  t.true(disk.queued <= 64 * MIB);
  for (const writer of writers) await ended(writer, file).catch(() => undefined);
  t.is(disk.queued, 0);
});

test('bytes on the disk are counted after a failure, too', async (t) => {
  const file = new FakeFile();
  file.held = true;
  const disk = new Disks(new DiskCalls()).open('/');
  const writer = new FileWriter(opened(file), disk, { waitMs: 0, onFailure: () => undefined });
  writer.append([Buffer.alloc(10)]);
  await ticks(20);
  writer.append([Buffer.alloc(65 * MIB)]);
  await t.throwsAsync(ended(writer, file), { message: 'the disk is too slow' });
  t.is(file.bytes.length, 10);
  t.is(writer.bytes, 10);
  t.is(disk.queued, 0);
});

test('all recordings together have a limit, which costs those that have most of it', async (t) => {
  const disks = new Disks(new DiskCalls());
  const slow = new FakeFile();
  slow.held = true;
  const failed = new Set<number>();
  const slowOnes = Array.from(
    { length: 20 },
    (_, index) => new FileWriter(opened(slow), disks.open('/slow'), { waitMs: 0, onFailure: () => failed.add(index) }),
  );
  const fine = new FileWriter(opened(new FakeFile()), disks.open('/fine'), { waitMs: 0, onFailure: NOT_EXPECTED });
  const piece = Buffer.alloc(MIB);
  for (let i = 0; i < 40; i++) {
    for (const writer of slowOnes) writer.append([piece]);
    fine.append([Buffer.of(1)]);
    await ticks(20);
  }
  t.true(failed.size > 0);
  t.true(slowOnes.reduce((sum, { bytes }) => sum + bytes, 0) <= 512 * MIB);
  t.is(fine.bytes, 40);
  await fine.end([]);
});

test('a disk that hangs takes two calls at a time', async (t) => {
  const disks = new Disks(new DiskCalls());
  const file = new FakeFile();
  file.held = true;
  const writers = Array.from(
    { length: 5 },
    () => new FileWriter(opened(file), disks.open('/'), { waitMs: 0, onFailure: NOT_EXPECTED }),
  );
  for (const writer of writers) writer.append([Buffer.from('a')]);
  await ticks(50);
  t.is(file.waiting, 2);
  await Promise.all(writers.map((writer) => ended(writer, file)));
  t.is(file.calls.filter((call) => call === 'writev').length, 5);
});

test('a file that cannot be opened is reported once, and at its end', async (t) => {
  const failures: string[] = [];
  const writer = new FileWriter(Promise.reject(new Error('no')), new Disks(new DiskCalls()).open('/'), {
    waitMs: 0,
    onFailure: ({ message }) => failures.push(message),
  });
  writer.append([Buffer.from('a')]);
  await t.throwsAsync(writer.end([]), { message: 'no' });
  t.deepEqual(failures, ['no']);
});

/** Its end, with all calls let go. */
function ended(writer: FileWriter, file: FakeFile): Promise<void> {
  file.letGo();
  return writer.end([]);
}

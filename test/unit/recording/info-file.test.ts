import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { appendInfo, appendInfoOnce, removeInfo } from '../../../src/recording/info-file.ts';
import { entriesOf, infoOf } from '../../support/recording/info.ts';

function infoFile(t: ExecutionContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-info-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  return join(folder, 'info.xml');
}

const sequences = (text: string): number[] => entriesOf(text).map(({ sequence }) => Number(sequence));

test('entries follow each other, and few of them cost a file written anew', async (t) => {
  const path = infoFile(t);
  const files = new Set<number>();
  for (let sequence = 0; sequence < 30; sequence++) {
    await appendInfo(path, infoOf(sequence, { metadata: 'm'.repeat((sequence * 37) % 300) }));
    files.add(statSync(path).ino);
    t.is(entriesOf(readFileSync(path, 'utf8')).length, sequence + 1);
  }
  t.deepEqual(
    sequences(readFileSync(path, 'utf8')),
    Array.from({ length: 30 }, (_, sequence) => sequence),
  );
  t.true(files.size < 12, `${files.size} files`);
  t.deepEqual(readdirSync(join(path, '..')), ['info.xml']);
});

test('an info file is XML with the original texts, whatever names and metadata hold', async (t) => {
  const path = infoFile(t);
  const nasty = ['</files>\n<?room ?>\n', ']]>', '?>', 'a</b>]]></files>', '<![CDATA[', '&amp;<x>', 'ü\u{1F600}'];
  for (const [sequence, text] of nasty.entries()) {
    await appendInfo(path, infoOf(sequence, { filePath: `/${text}.mp4`, metadata: text, stream: text }));
  }
  const entries = entriesOf(readFileSync(path, 'utf8'));
  t.deepEqual(
    entries.map(({ filePath, metadata }) => [filePath, metadata]),
    nasty.map((text) => [`/${text}.mp4`, text]),
  );
  await appendInfo(path, infoOf(9, { metadata: 'a\u0000\u001B\uD800' }));
  t.is(entriesOf(readFileSync(path, 'utf8')).at(-1)?.metadata, 'a\uFFFD\uFFFD\uFFFD');
});

test('an info file is whole wherever a crash stops an entry, and the next entry goes on from there', async (t) => {
  const path = infoFile(t);
  for (let sequence = 0; sequence < 3; sequence++) await appendInfo(path, infoOf(sequence));
  const before = readFileSync(path);
  await appendInfo(path, infoOf(3, { metadata: '?>]]>' }));
  const after = readFileSync(path);
  t.is(after.length, before.length);
  const turn = before.indexOf('</files>');
  const turned = [...before.keys()].filter((at) => at < turn + 64 && before[at] !== after[at]);
  // one write within a sector
  t.is(turned[0], turn);
  const last = turn + '</files>\n<?room '.length;
  t.is(Math.floor(turn / 512), Math.floor((last - 1) / 512));
  const steps: Buffer[] = [];
  for (let written = last; written <= before.length; written += 301) {
    steps.push(Buffer.concat([before.subarray(0, last), after.subarray(last, written), before.subarray(written)]));
  }
  steps.push(Buffer.concat([before.subarray(0, last), after.subarray(last)]));
  for (const step of steps) {
    t.deepEqual(sequences(step.toString()), [0, 1, 2]);
    writeFileSync(path, step);
    await appendInfo(path, infoOf(4));
    t.deepEqual(sequences(readFileSync(path, 'utf8')), [0, 1, 2, 4]);
  }
});

test.serial('a disk that takes a part of a write gets the rest', async (t) => {
  const path = infoFile(t);
  const file = await open(join(path, '..', 'any'), 'w');
  const handles = Object.getPrototypeOf(file) as FileHandle;
  await file.close();
  const { write } = handles;
  t.teardown(() => Object.assign(handles, { write }));
  Object.assign(handles, {
    write(this: FileHandle, data: Buffer, from: number, length: number, at: number) {
      return Reflect.apply(write, this, [data, from, Math.min(length, 50), at]);
    },
  });
  for (const sequence of [0, 1, 2]) {
    await appendInfo(path, infoOf(sequence));
    t.deepEqual(sequences(readFileSync(path, 'utf8')), [0, 1, 2].slice(0, sequence + 1));
  }
});

test('an entry that is there already is not added again', async (t) => {
  const path = infoFile(t);
  const strange = infoOf(1, { filePath: '/a</files>?>]]>.mp4' });
  for (const info of [infoOf(0), strange, strange, infoOf(0)]) await appendInfoOnce(path, info);
  t.deepEqual(sequences(readFileSync(path, 'utf8')), [0, 1]);
});

test('a file without room goes on, and one that is no info file stays as it is', async (t) => {
  const path = infoFile(t);
  writeFileSync(path, '<?xml version="1.0"?><files><file><sequence>7</sequence></file></files>');
  await appendInfo(path, infoOf(8));
  t.deepEqual(sequences(readFileSync(path, 'utf8')), [7, 8]);
  writeFileSync(path, 'my notes');
  await t.throwsAsync(() => appendInfo(path, infoOf(9)), { message: /is another file/ });
  t.is(readFileSync(path, 'utf8'), 'my notes');
});

test('an info file may have as long a name as a file can', async (t) => {
  const path = `${infoFile(t).slice(0, -'info.xml'.length)}${'ü'.repeat(125)}x.xml`;
  t.is(Buffer.byteLength(basename(path)), 255);
  await appendInfo(path, infoOf(0));
  t.deepEqual(readdirSync(dirname(path)), [basename(path)]);
  await appendInfo(path, infoOf(1));
  t.deepEqual(sequences(readFileSync(path, 'utf8')), [0, 1]);
});

test('entries are removed in any order, and others added between', async (t) => {
  const path = infoFile(t);
  let left: number[] = [];
  let next = 0;
  for (let round = 0; round < 60; round++) {
    if (round % 3 < 2) {
      await appendInfo(path, infoOf(next, { metadata: 'm'.repeat((next * 37) % 700) }));
      left.push(next++);
    } else {
      const gone = left[(round * 7) % left.length] as number;
      left = left.filter((sequence) => sequence !== gone);
      await removeInfo(path, `/records/${gone}.mp4`);
    }
    t.deepEqual(sequences(readFileSync(path, 'utf8')), left);
  }
  await removeInfo(path, '/records/none.mp4');
  t.deepEqual(sequences(readFileSync(path, 'utf8')), left);
  const { length } = readFileSync(path);
  for (const sequence of left) await removeInfo(path, `/records/${sequence}.mp4`);
  t.deepEqual(readdirSync(dirname(path)), []);
  t.true(length < 64 * 1024, `${length} bytes`);
  await removeInfo(path, '/records/0.mp4');
});

import { mkdtemp, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { StreamMaps } from '../../../../src/tasks/configured/stream-maps.ts';
import { recordMap } from '../../../../src/recording/stream-map.ts';
import { until } from '../../../support/time/until.ts';

const xml = (...streams: readonly string[]): string =>
  `<RecordInfo>${streams.map((name) => `<Record><Enable>true</Enable><StreamName>${name}</StreamName></Record>`).join('')}</RecordInfo>`;

/** A folder, and the entries of `map.xml` in it. */
async function open(t: ExecutionContext) {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-maps-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const lines: string[] = [];
  const log = pino({ level: 'info' }, { write: (line) => void lines.push(line) });
  const maps = new StreamMaps({ format: recordMap('/var/kiln'), folder, env: {}, log });
  const entries = () => maps.entries({ enable: true, path: 'map.xml' });
  const file = join(folder, 'map.xml');
  /** Waits until there are so many. */
  const count = (wanted: number) => until(`${wanted} entries`, async () => (await entries()).length === wanted);
  const warned = () => lines.filter((line) => line.includes('"level":40'));
  /** Waits until the file was looked at again. */
  const looked = async (): Promise<void> => {
    const end = performance.now() + 1200;
    await until('it is looked at', async () => {
      await entries();
      return performance.now() > end;
    });
  };
  return { maps, entries, file, count, lines, warned, looked };
}

test('a file that appears is read, also one that was missing, and each change once', async (t) => {
  const { entries, file, count, lines, warned, looked } = await open(t);
  t.deepEqual(await entries(), []);
  await looked();
  t.is(warned().length, 1);
  t.regex(warned()[0] ?? '', /does not exist: it is read as soon as it does/);
  await writeFile(file, xml('a'));
  await count(1);
  const before = await entries();
  await looked();
  t.is(await entries(), before, 'nothing has changed');
  await writeFile(`${file}.new`, xml('a', 'b'));
  await rename(`${file}.new`, file);
  await count(2);
  t.is((await entries())[0]?.key, before[0]?.key);
  t.is(lines.filter((line) => line.includes('the stream map was read')).length, 2);
  t.is(warned().length, 1);
});

test('a file that is broken or gone leaves its entries in use, with one warning for each change', async (t) => {
  const { entries, file, count, warned, looked } = await open(t);
  await writeFile(file, xml('a'));
  await count(1);
  await writeFile(file, '<RecordInfo>\n<Record>');
  await until('it is told', () => entries().then(() => warned().length === 1));
  await looked();
  t.is(warned().length, 1);
  t.regex(warned()[0] ?? '', /map\.xml:\d+: .*"entries":1,.*its previous entries remain in use/);
  t.is((await entries()).length, 1);
  await writeFile(file, Buffer.of(0xff, 0xfe, 0xfd));
  await until('it is told again', () => entries().then(() => warned().length === 2));
  await rm(file);
  await until('that it is gone, too', () => entries().then(() => warned().length === 3));
  t.is((await entries()).length, 1);
  await writeFile(file, xml('b', 'c'));
  await count(2);
  t.is(warned().length, 3);
});

test('a change that leaves size and time of the file as they were is noticed while the file is new', async (t) => {
  const { entries, file, count } = await open(t);
  await writeFile(file, xml('a'));
  const now = new Date();
  await utimes(file, now, now);
  await count(1);
  const [before] = await entries();
  await writeFile(file, xml('b'));
  await utimes(file, now, now);
  const after = await until('it is another', async () => {
    const [entry] = await entries();
    return entry !== undefined && entry.key !== before?.key && entry;
  });
  t.deepEqual([after.place], [before?.place], 'the same place has another entry');
});

test('a file of more than a megabyte, a folder and a map that is off have no entries', async (t) => {
  const { maps, entries, file, warned } = await open(t);
  await writeFile(file, xml('a') + ' '.repeat(1024 * 1024));
  t.deepEqual(await entries(), []);
  t.regex(warned()[0] ?? '', /larger than 1048576 bytes/);
  t.deepEqual(await maps.entries({ enable: true, path: '' }), []);
  t.regex(warned()[1] ?? '', /not a regular file/);
  t.deepEqual(await maps.entries({ enable: false, path: 'map.xml' }), []);
  t.deepEqual(await maps.entries(undefined), []);
});

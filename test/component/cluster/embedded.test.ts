import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { ConflictError, joinKey, openEmbedded, splitKey, StorageError, type Cluster, type Json } from '#cluster';
import { zombie } from '../../support/programs/zombie.ts';

function place(t: ExecutionContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-store-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, 'data', 'config.json');
}

async function open(t: ExecutionContext, file: string | undefined) {
  const damaged: { movedTo: string; reason: string }[] = [];
  const cluster = await openEmbedded({
    id: 'one',
    file,
    onFault() {},
    onDamaged: (movedTo, reason) => damaged.push({ movedTo, reason }),
  });
  t.teardown(() => cluster.close());
  return { cluster, config: cluster.config, damaged };
}

const put = (key: string, value: Json, seen = 0) => [{ key, value, seen }];
const values = ({ config }: Pick<Cluster, 'config'>) =>
  Object.fromEntries([...config.entries()].map(([key, { value }]) => [key, value]));

test('keys keep names apart whatever characters they have', (t) => {
  for (const names of [['a'], ['a/b', 'c'], ['a', 'b/c'], ['ü#?%', '..']])
    t.deepEqual(splitKey(joinKey(...names)), names);
  t.not(joinKey('a/b', 'c'), joinKey('a', 'b/c'));
});

test('values that were written are there after a restart, in a file that only its owner can read', async (t) => {
  const file = place(t);
  const { cluster } = await open(t, file);
  await cluster.config.write([...put('v', { a: [1, null, 'ü'] }), ...put('v/app', true)]);
  t.is(statSync(file).mode & 0o777, 0o600);
  t.deepEqual(readdirSync(join(file, '..')).sort(), ['config.json', 'config.json.lock']);
  await cluster.close();
  t.false(existsSync(`${file}.lock`));
  const again = await open(t, file);
  t.deepEqual(values(again), { v: { a: [1, null, 'ü'] }, 'v/app': true });
  t.deepEqual(again.damaged, []);
});

test('a write on what the caller has not seen changes nothing', async (t) => {
  const { config } = await open(t, undefined);
  await config.write(put('a', 1));
  await t.throwsAsync(config.write(put('a', 2)), { instanceOf: ConflictError });
  await t.throwsAsync(config.write([...put('b', 1), ...put('a', 2, 99)]), { instanceOf: ConflictError });
  t.deepEqual(values({ config }), { a: 1 });
  const { revision } = config.entries().get('a') as { revision: number };
  await config.write(put('a', 3, revision));
  t.deepEqual(values({ config }), { a: 3 });
  t.true((config.entries().get('a')?.revision ?? 0) > revision);
});

test('of writes at once that make one name exactly one succeeds', async (t) => {
  const { config } = await open(t, place(t));
  const results = await Promise.allSettled(Array.from({ length: 20 }, (_, index) => config.write(put('name', index))));
  t.is(results.filter(({ status }) => status === 'fulfilled').length, 1);
  t.is(results.filter((result) => result.status === 'rejected' && result.reason instanceof ConflictError).length, 19);
});

test('removing takes what is below along, and not what only begins alike', async (t) => {
  const { config } = await open(t, undefined);
  await config.write([...put('v', 1), ...put('v/a', 2), ...put('v/a/b', 3), ...put('vv', 4)]);
  await config.write([{ key: 'v', seen: config.entries().get('v')?.revision ?? 0 }]);
  t.deepEqual(values({ config }), { vv: 4 });
});

test('a revision is never given twice, across removals and restarts', async (t) => {
  const file = place(t);
  const { cluster } = await open(t, file);
  await cluster.config.write(put('a', 1));
  const first = cluster.config.entries().get('a')?.revision ?? 0;
  await cluster.config.write([{ key: 'a', seen: first }]);
  await cluster.close();
  const { config } = await open(t, file);
  await config.write(put('a', 2));
  t.true((config.entries().get('a')?.revision ?? 0) > first + 1);
});

for (const [what, text] of Object.entries({
  'cut off': '{"version":1,"revision":1,"entries":{"a":{"val',
  'of another version': '{"version":2,"revision":1,"entries":{}}',
  'a list': '[]',
  empty: '',
  'with a malformed entry': '{"version":1,"revision":1,"entries":{"a":{"value":1}}}',
  'with a malformed key': '{"version":1,"revision":1,"entries":{"100%":{"value":{},"revision":1}}}',
  'without a revision': '{"version":1,"entries":{}}',
})) {
  test(`a file that is ${what} is kept aside and reported; writing goes on`, async (t) => {
    const file = place(t);
    const first = await open(t, file);
    await first.cluster.close();
    writeFileSync(file, text);
    const { config, damaged } = await open(t, file);
    t.is(damaged.length, 1);
    t.is(readFileSync(damaged[0]?.movedTo ?? '', 'utf8'), text);
    await config.write(put('a', 1));
    t.is(readFileSync(damaged[0]?.movedTo ?? '', 'utf8'), text);
  });
}

test('fields of the file that are not known are kept', async (t) => {
  const file = place(t);
  const { cluster } = await open(t, file);
  await cluster.close();
  writeFileSync(file, JSON.stringify({ version: 1, revision: 4, entries: {}, note: { by: 'hand' } }));
  const again = await open(t, file);
  await again.config.write(put('a', 1));
  t.like(JSON.parse(readFileSync(file, 'utf8')), { note: { by: 'hand' }, revision: 5 });
});

test('a second process is refused while the first lives; one that was killed holds nothing', async (t) => {
  const file = place(t);
  const script =
    "const { openEmbedded } = await import('#cluster');" +
    `await openEmbedded({ id: 'one', file: ${JSON.stringify(file)}, onDamaged() {}, onFault() {} }); console.log('open'); setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    cwd: join(import.meta.dirname, '../../..'),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  const error = await t.throwsAsync(open(t, file), { instanceOf: StorageError });
  t.true(error?.message.includes(file) && error.message.includes(String(child.pid)), error?.message);
  child.kill('SIGKILL');
  await once(child, 'exit');
  await t.notThrowsAsync(open(t, file));
});

test('of several that find the lock of a dead process exactly one takes it', async (t) => {
  const file = place(t);
  mkdirSync(join(file, '..'));
  for (const left of ['1 0', '']) {
    writeFileSync(`${file}.lock`, left);
    const opened = await Promise.allSettled(
      Array.from({ length: 8 }, () => openEmbedded({ id: 'one', file, onDamaged() {}, onFault() {} })),
    );
    const winners = opened.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    t.is(winners.length, 1);
    t.deepEqual(readdirSync(join(file, '..')), ['config.json.lock.2']);
    for (const winner of winners) await winner.close();
    t.deepEqual(readdirSync(join(file, '..')), []);
  }
});

test('temporary files of a process that died while it wrote are removed', async (t) => {
  const file = place(t);
  mkdirSync(join(file, '..'));
  for (const name of [`${file}.123.abcdef01.tmp`, `${file}.damaged-1`]) writeFileSync(name, '{');
  await open(t, file);
  t.deepEqual(readdirSync(join(file, '..')).sort(), ['config.json.damaged-1', 'config.json.lock']);
});

test('closing waits for the write under way', async (t) => {
  const file = place(t);
  const { cluster } = await open(t, file);
  const written = cluster.config.write(put('a', 1));
  await cluster.close();
  t.true(existsSync(file));
  await written;
});

test('a write that fails leaves the old file, no other file, and the old entries', async (t) => {
  const file = place(t);
  const { config } = await open(t, file);
  await config.write(put('a', 1));
  const folder = join(file, '..');
  // A folder in the file's place: nothing can be renamed onto it, for root neither.
  const before = readFileSync(file, 'utf8');
  rmSync(file);
  mkdirSync(file);
  await t.throwsAsync(config.write(put('b', 2)), { instanceOf: StorageError });
  t.deepEqual(values({ config }), { a: 1 });
  t.deepEqual(readdirSync(folder).sort(), ['config.json', 'config.json.lock']);
  rmSync(file, { recursive: true });
  writeFileSync(file, before);
  await config.write(put('b', 2));
  t.deepEqual(values({ config }), { a: 1, b: 2 });
});

test('a killed server leaves no lock, though no process has waited for it', async (t) => {
  const file = place(t);
  const { pid, stat } = await zombie(t);
  const lock = `${pid} ${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]}`;
  mkdirSync(join(file, '..'));
  writeFileSync(`${file}.lock`, lock);
  const { cluster } = await open(t, file);
  await cluster.config.write(put('v', 1));
  t.deepEqual(values(cluster), { v: 1 });
});

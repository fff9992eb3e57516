import { mkdtempSync } from 'node:fs';
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { ScannedFolder } from '../../../../src/channels/files/scanned-folder.ts';

function open(t: ExecutionContext) {
  const path = mkdtempSync(join(tmpdir(), 'kiln-scanned-'));
  t.teardown(() => rm(path, { recursive: true, force: true }));
  const told: string[] = [];
  const log = pino({}, { write: (line: string) => void told.push((JSON.parse(line) as { msg: string }).msg) });
  const folder = new ScannedFolder(path, '.sch', log);
  const look = async () => (await folder.look()).map(({ file, bytes }) => [file, bytes?.toString()]);
  return { path, told, look, write: (file: string, text = file) => writeFile(join(path, file), text) };
}

test('of ten thousand files those that were first there count, and a file that comes ends none of them', async (t) => {
  const { told, look, write } = open(t);
  const names = Array.from({ length: 999 }, (_, n) => `m${String(n).padStart(4, '0')}.sch`);
  await Promise.all(names.map((name) => write(name)));
  t.is((await look()).length, 999);
  await Promise.all(Array.from({ length: 9000 }, (_, n) => write(`a${String(n).padStart(4, '0')}.sch`, '')));
  t.deepEqual(await look(), [['a0000.sch', '']]);
  for (let n = 0; n < 4; n++) t.deepEqual(await look(), []);
  t.deepEqual(told, ['the folder has too many channel files: those that came last have no effect']);
});

test('odd names are names, and what is no file of a definition is passed over', async (t) => {
  const { path, told, look, write } = open(t);
  const names = [' .sch', '-rf.sch', '%2e%2e.sch', 'a\nb.sch', '\u{1F4FA}.sch'];
  for (const name of [...names, '.hidden.sch', 'tv.SCH', 'tv.sch.bak']) await write(name);
  await mkdir(join(path, 'folder.sch'));
  await symlink('/nowhere', join(path, 'broken.sch'));
  await symlink('/dev/zero', join(path, 'device.sch'));
  await symlink(join(path, ' .sch'), join(path, 'link.sch'));
  const found = new Map(await look().then((rows) => rows as [string, string][]));
  t.deepEqual([...found.keys()].sort(), [...names, 'link.sch'].sort());
  t.is(found.get('link.sch'), ' .sch', 'as folders are mounted');
  for (let n = 0; n < 4; n++) await look();
  t.is(told.length, 2, 'the folder and the device, once each');
});
